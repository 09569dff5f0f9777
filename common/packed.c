#include "packed.h"

#include "chunk_stream.h"
#include "db.h"
#include "hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef MEMPROF_LOADABLE
SQLITE_EXTENSION_INIT3
#endif

enum coding {
    CODING_plain,
    CODING_change, /* from the row before, zigzag; from 0 in the first of a chunk */
    CODING_below,  /* how far below the row's own number; 0: none */
};

static const struct {
    const char *name;
    enum packed_table table;
    enum coding coding;
} columns[PACKED_COLUMNS + 1] = {
#define COLUMN(table, column, coding) {#column, PACKED_TABLE_##table, CODING_##coding},
#include "packed.def"
#undef COLUMN
    {"row_id", 0, CODING_change}};

/* Columns that are written in another way than earlier versions did, and under another name, so that both are read. The
 * level at which a site had its own most rises and falls little from one new site to the next. */
static const struct {
    enum packed_column column;
    const char *name;
    enum coding coding;
} recoded[] = {{PACKED_site_active_peak_bytes, "active_peak_changes", CODING_change}};
#define RECODED (sizeof recoded / sizeof *recoded)

static const char *const table_names[PACKED_TABLES] = {"stack", "site", "resident_site"};
static const enum packed_column keys[PACKED_TABLES] = {PACKED_KEY_stack, PACKED_KEY_site, PACKED_KEY_resident_site};

static int recoded_as(enum packed_column column)
{
    for (size_t i = 0; i < RECODED; i++)
        if (recoded[i].column == column)
            return (int)i;
    return -1;
}

int packed_schema(enum packed_column column)
{
    int is_later = column == PACKED_site_torn_bytes || column == PACKED_site_torn_count ||
                   column == PACKED_site_kept_count || columns[column].table == PACKED_TABLE_resident_site;
    return is_later ? DB_SCHEMA_LOOKS : recoded_as(column) >= 0 ? DB_SCHEMA_CHANGES : DB_SCHEMA_PACKED;
}

const char *packed_table_name(enum packed_table table)
{
    return table_names[table];
}

/* --- writing --- */

int packed_encode(struct chunk_codec *codec, enum packed_column column, uint32_t first_row, uint64_t *values,
                  uint32_t count, struct buf *out)
{
    int as = recoded_as(column);
    enum coding coding = as < 0 ? columns[column].coding : recoded[as].coding;
    int is_key = column == PACKED_ROW_IDS || column == keys[columns[column].table];
    uint64_t before = 0, any = is_key;
    for (uint32_t i = 0; i < count; i++)
        any |= values[i];
    if (!any)
        return 0;
    for (uint32_t i = 0; i < count && coding == CODING_change; i++) {
        uint64_t value = values[i];
        values[i] = zigzag(value - before);
        before = value;
    }
    for (uint32_t i = 0; i < count && coding == CODING_below; i++)
        values[i] = values[i] ? first_row + i - values[i] : 0;
    buf_reset(out);
    return chunk_encode_numbers(codec, values, count, out) == 0 && !out->failed ? 1 : -ENOMEM;
}

void packed_bind(sqlite3_stmt *insert, enum packed_table table, uint32_t part, enum packed_column column,
                 uint32_t first_row, uint32_t count, const struct buf *data)
{
    sqlite3_bind_text(insert, 1, table_names[table], -1, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 2, part);
    int as = recoded_as(column);
    sqlite3_bind_text(insert, 3, as < 0 ? columns[column].name : recoded[as].name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 4, first_row);
    sqlite3_bind_int64(insert, 5, count);
    sqlite3_bind_blob(insert, 6, data->data, (int)data->length, SQLITE_STATIC);
}

enum packed_table packed_table_of(enum packed_column column)
{
    return columns[column].table;
}

/* --- reading --- */

struct chunk { /* of the key column, and so of every other one */
    int64_t part;
    uint32_t first_row, count;
    uint32_t place;    /* the number of its first row in the table */
    uint32_t *row_ids; /* of a later part */
};

struct table {
    int is_read;
    long count; /* rows, or an error */
    long given; /* rows that chunks have: no fewer, as ids are without gaps */
    struct chunk *chunks;
    size_t chunk_count, capacity;
};

struct packed {
    sqlite3 *db;
    struct chunk_codec *codec;
    struct table tables[PACKED_TABLES];
    struct packed_values values[PACKED_COLUMNS];
    int rc[PACKED_COLUMNS];           /* 1: not read */
    uint32_t *site_first, *site_next; /* the sites of stacks: by hash, and by site */
    uint32_t site_mask;
    uint32_t *depths; /* of stacks */
    unsigned version;
    int holders, owners;
    int is_kept;
};

struct packed *packed_open(sqlite3 *db)
{
    struct packed *p = packed_shared(db);
    if (p && p->is_kept) {
        p->owners++;
        return p;
    }
    p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->db = db;
    p->owners = 1;
    p->codec = chunk_codec_open();
    for (int i = 0; i < PACKED_COLUMNS; i++)
        p->rc[i] = 1;
    if (!p->codec) {
        free(p);
        return NULL;
    }
    return p;
}

static void forget(struct packed *p)
{
    for (int i = 0; i < PACKED_TABLES; i++) {
        struct table *t = &p->tables[i];
        for (size_t k = 0; k < t->chunk_count; k++)
            free(t->chunks[k].row_ids);
        free(t->chunks);
        *t = (struct table){0};
    }
    for (int i = 0; i < PACKED_COLUMNS; i++) {
        free(p->values[i].narrow);
        free(p->values[i].wide);
        p->values[i] = (struct packed_values){0};
        p->rc[i] = 1;
    }
    free(p->site_first);
    free(p->site_next);
    free(p->depths);
    p->site_first = p->site_next = p->depths = NULL;
}

void packed_close(struct packed *p)
{
    if (!p || --p->owners > 0)
        return;
    forget(p);
    chunk_codec_close(p->codec);
    free(p);
}

const char *packed_error(long rc)
{
    return rc == -ENOMEM    ? "out of memory"
           : rc == -EBADMSG ? "the packed rows of 'stack' or 'site' are damaged; record again with 'memprof run'"
                            : "the table 'packed' cannot be read";
}

void packed_hold(struct packed *p)
{
    if (p->holders++ == 0)
        packed_renew(p);
}

void packed_let(struct packed *p)
{
    p->holders--;
}

void packed_keep(struct packed *p)
{
    p->is_kept = 1;
}

int packed_is_kept(const struct packed *p)
{
    return p->is_kept;
}

void packed_set(struct packed *p, enum packed_column column, uint64_t *values)
{
    struct packed_values *v = &p->values[column];
    free(v->narrow);
    free(v->wide);
    *v = (struct packed_values){.wide = values};
    p->rc[column] = 0;
}

void packed_renew(struct packed *p)
{
    if (p->is_kept)
        return;
    unsigned version = 0;
    if (sqlite3_file_control(p->db, "main", SQLITE_FCNTL_DATA_VERSION, &version) != SQLITE_OK || version != p->version)
        forget(p);
    p->version = version;
}

void packed_move(struct packed *p, sqlite3 *db)
{
    p->db = db;
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_DATA_VERSION, &p->version) != SQLITE_OK)
        p->version = 0;
}

int packed_has(sqlite3 *db, enum packed_table table)
{
    sqlite3_stmt *s = NULL;
    int has = 0;
    if (sqlite3_prepare_v2(db, "SELECT 1 FROM main.packed WHERE table_name = ? LIMIT 1", -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_text(s, 1, table_names[table], -1, SQLITE_STATIC);
        has = sqlite3_step(s) == SQLITE_ROW;
    }
    sqlite3_finalize(s);
    return has;
}

int packed_has_column(sqlite3 *db, enum packed_column column)
{
    static const char sql[] = "SELECT 1 FROM main.packed WHERE table_name = ? AND column_name = ? LIMIT 1";
    sqlite3_stmt *s = NULL;
    int has = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_text(s, 1, table_names[columns[column].table], -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 2, columns[column].name, -1, SQLITE_STATIC);
        has = sqlite3_step(s) == SQLITE_ROW;
    }
    sqlite3_finalize(s);
    return has;
}

const char *packed_source(sqlite3 *db, enum packed_table table)
{
    static const char *const sources[PACKED_TABLES][2] = {
        {"main.stack", "packed_stack"}, {"main.site", "packed_site"}, {"main.resident_site", "packed_resident_site"}};
    return sources[table][packed_has(db, table)];
}

const char *packed_column_name(enum packed_column column)
{
    return columns[column].name;
}

typedef int take_chunk(struct packed *p, void *arg, sqlite3_stmt *s, const uint64_t *values, long count);

/* Calls take with each chunk of a column, in the order of parts and rows; without its values where they are not wanted.
 */
static int each_chunk(struct packed *p, enum packed_table table, enum packed_column column, int has_values,
                      take_chunk *take, void *arg)
{
    static const char sql[] = "SELECT part, first_row, row_count, data, column_name = ?3 FROM main.packed WHERE "
                              "table_name = ?1 AND column_name IN (?2, ?3) ORDER BY part, first_row";
    int as = recoded_as(column);
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(p->db, sql, -1, &s, NULL) != SQLITE_OK)
        return -EIO;
    sqlite3_bind_text(s, 1, table_names[table], -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, columns[column].name, -1, SQLITE_STATIC);
    if (as >= 0)
        sqlite3_bind_text(s, 3, recoded[as].name, -1, SQLITE_STATIC);
    int rc = 0, step;
    while ((step = sqlite3_step(s)) == SQLITE_ROW && rc == 0) {
        const uint64_t *values = NULL;
        const void *data = sqlite3_column_blob(s, 3);
        const size_t length = (size_t)sqlite3_column_bytes(s, 3);
        long count = !data        ? -EBADMSG
                     : has_values ? chunk_decode_numbers(p->codec, data, length, &values)
                                  : chunk_count_numbers(data, length);
        if (count >= 0 && (count == 0 || sqlite3_column_int64(s, 2) != count))
            count = -EBADMSG;
        rc = count < 0 ? (int)count : take(p, arg, s, values, count);
    }
    if (rc == 0 && step != SQLITE_DONE)
        rc = -EIO;
    sqlite3_finalize(s);
    return rc;
}

static struct chunk *add_chunk(struct table *t)
{
    if (t->chunk_count == t->capacity) {
        size_t capacity = t->capacity ? t->capacity * 2 : 64;
        struct chunk *larger = realloc(t->chunks, capacity * sizeof *larger);
        if (!larger)
            return NULL;
        t->chunks = larger;
        t->capacity = capacity;
    }
    t->chunks[t->chunk_count] = (struct chunk){0};
    return &t->chunks[t->chunk_count++];
}

/* The rows of part 0, or of a look, are all there, one after the other. */
static int take_key(struct packed *p, void *arg, sqlite3_stmt *s, const uint64_t *values, long count)
{
    struct table *t = arg;
    (void)values;
    int64_t part = sqlite3_column_int64(s, 0), first_row = sqlite3_column_int64(s, 1);
    int is_look = t == &p->tables[PACKED_TABLE_resident_site];
    const struct chunk *before = t->chunk_count ? &t->chunks[t->chunk_count - 1] : NULL;
    if (!is_look && part != 0)
        return 0;
    if (first_row != (before && before->part == part ? before->first_row + (int64_t)before->count : 1) ||
        t->count + count > (long)PACKED_ROWS_MAX)
        return -EBADMSG;
    struct chunk *c = add_chunk(t);
    if (!c)
        return -ENOMEM;
    *c = (struct chunk){part, (uint32_t)first_row, (uint32_t)count, (uint32_t)t->count + 1, NULL};
    t->given = t->count += count;
    return 0;
}

/* Stacks never change: and a caller's number, told from that of its row, would be read elsewhere. */
static int take_row_ids(struct packed *p, void *arg, sqlite3_stmt *s, const uint64_t *values, long count)
{
    struct table *t = arg;
    int64_t part = sqlite3_column_int64(s, 0), first_row = sqlite3_column_int64(s, 1);
    if (t == &p->tables[PACKED_TABLE_stack] || part <= 0 || first_row < 0 || first_row > (int64_t)PACKED_ROWS_MAX)
        return -EBADMSG;
    uint32_t *ids = malloc((size_t)count * sizeof *ids);
    struct chunk *c = ids ? add_chunk(t) : NULL;
    if (!c) {
        free(ids);
        return -ENOMEM;
    }
    *c = (struct chunk){part, (uint32_t)first_row, (uint32_t)count, 0, ids};
    t->given += count;
    uint64_t id = 0;
    for (long i = 0; i < count; i++) {
        id += unzigzag(values[i]);
        if (id < 1 || id > PACKED_ROWS_MAX)
            return -EBADMSG;
        ids[i] = (uint32_t)id;
        if ((long)id > t->count)
            t->count = (long)id;
    }
    return 0;
}

long packed_count(struct packed *p, enum packed_table table)
{
    struct table *t = &p->tables[table];
    if (t->is_read)
        return t->count;
    t->is_read = 1;
    int rc = each_chunk(p, table, keys[table], 0, take_key, t);
    if (rc == 0 && table != PACKED_TABLE_resident_site)
        rc = each_chunk(p, table, PACKED_ROW_IDS, 1, take_row_ids, t);
    if (rc == 0 && t->count > t->given)
        rc = -EBADMSG;
    if (rc)
        t->count = rc;
    return t->count;
}

int packed_is_whole(const struct packed *p, enum packed_table table)
{
    const struct table *t = &p->tables[table];
    return !t->chunk_count || t->chunks[t->chunk_count - 1].part == 0;
}

void packed_look_rows(const struct packed *p, int64_t scan_id, uint32_t *first, uint32_t *last)
{
    const struct table *t = &p->tables[PACKED_TABLE_resident_site];
    *first = 1;
    *last = 0;
    for (size_t i = 0; i < t->chunk_count; i++) {
        const struct chunk *c = &t->chunks[i];
        if (c->part != scan_id)
            continue;
        if (*last == 0)
            *first = c->place;
        *last = c->place + c->count - 1;
    }
}

int64_t packed_look_of(const struct packed *p, uint32_t row)
{
    const struct table *t = &p->tables[PACKED_TABLE_resident_site];
    size_t low = 0, high = t->chunk_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (t->chunks[middle].place <= row)
            low = middle;
        else
            high = middle;
    }
    return t->chunk_count ? t->chunks[low].part : 0;
}

static int make_room(struct packed_values *v, long rows, int is_wide)
{
    if (!is_wide && !v->narrow && !v->wide)
        return (v->narrow = calloc((size_t)rows + 1, sizeof *v->narrow)) ? 0 : -ENOMEM;
    if (!is_wide || v->wide)
        return 0;
    v->wide = calloc((size_t)rows + 1, sizeof *v->wide);
    if (!v->wide)
        return -ENOMEM;
    for (long i = 0; v->narrow && i <= rows; i++)
        v->wide[i] = v->narrow[i];
    free(v->narrow);
    v->narrow = NULL;
    return 0;
}

struct reading {
    const struct table *table;
    struct packed_values *values;
    enum coding coding, recoding; /* by its name, and by the other one */
    size_t next;                  /* chunk */
};

/* The rows that later parts leave out keep their values; those whose column is left out are 0. */
static void clear_chunk(struct packed_values *v, const struct chunk *c)
{
    for (uint32_t i = 0; c->row_ids && i < c->count; i++) {
        if (v->narrow)
            v->narrow[c->row_ids[i]] = 0;
        else if (v->wide)
            v->wide[c->row_ids[i]] = 0;
    }
}

/* Undoes the coding, a loop for each: columns have millions of values. Their bits say how wide they are. */
static uint64_t undo_change(uint64_t *values, uint32_t count)
{
    uint64_t before = 0, bits = 0;
    for (uint32_t i = 0; i < count; i++)
        bits |= values[i] = before += unzigzag(values[i]);
    return bits;
}

/* -EBADMSG where one is as far below as to be none. */
static int undo_below(uint64_t *values, uint32_t count, uint64_t first_row)
{
    unsigned is_bad = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t below = values[i], row = first_row + i;
        is_bad |= below >= row;
        values[i] = below ? row - below : 0;
    }
    return is_bad ? -EBADMSG : 0;
}

static uint64_t bits_of(const uint64_t *values, uint32_t count)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < count; i++)
        bits |= values[i];
    return bits;
}

static int decode(enum coding coding, uint32_t first_row, uint64_t *values, uint32_t count, uint64_t *bits)
{
    *bits = coding == CODING_change ? undo_change(values, count) : 0;
    if (coding == CODING_below)
        return undo_below(values, count, first_row);
    if (coding == CODING_plain)
        *bits = bits_of(values, count);
    return 0;
}

int packed_decode(enum packed_column column, uint32_t first_row, uint64_t *values, uint32_t count)
{
    uint64_t bits;
    return decode(columns[column].coding, first_row, values, count, &bits);
}

static void store(struct packed_values *v, const struct chunk *c, const uint64_t *values)
{
    uint32_t *narrow = v->narrow;
    if (narrow && !c->row_ids)
        for (uint32_t i = 0; i < c->count; i++)
            narrow[c->place + i] = (uint32_t)values[i];
    else if (narrow)
        for (uint32_t i = 0; i < c->count; i++)
            narrow[c->row_ids[i]] = (uint32_t)values[i];
    else
        for (uint32_t i = 0; i < c->count; i++)
            v->wide[c->row_ids ? c->row_ids[i] : c->place + i] = values[i];
}

static int take_values(struct packed *p, void *arg, sqlite3_stmt *s, const uint64_t *coded, long count)
{
    struct reading *r = arg;
    const struct table *t = r->table;
    int64_t part = sqlite3_column_int64(s, 0), first_row = sqlite3_column_int64(s, 1);
    (void)p;
    while (r->next < t->chunk_count && (t->chunks[r->next].part < part ||
                                        (t->chunks[r->next].part == part && t->chunks[r->next].first_row < first_row)))
        clear_chunk(r->values, &t->chunks[r->next++]);
    if (r->next == t->chunk_count)
        return -EBADMSG;
    const struct chunk *c = &t->chunks[r->next++];
    if (c->part != part || c->first_row != first_row || c->count != count)
        return -EBADMSG;
    uint64_t *values = (uint64_t *)(uintptr_t)coded; /* the codec's until its next call */
    enum coding coding = sqlite3_column_int(s, 4) ? r->recoding : r->coding;
    uint64_t bits;
    int rc = decode(coding, c->first_row, values, c->count, &bits);
    if (rc == 0)
        rc = make_room(r->values, t->count, bits > UINT32_MAX);
    if (rc == 0)
        store(r->values, c, values);
    return rc;
}

int packed_read(struct packed *p, enum packed_column column, const struct packed_values **values)
{
    *values = &p->values[column];
    if (p->rc[column] <= 0)
        return p->rc[column];
    enum packed_table table = columns[column].table;
    long count = packed_count(p, table);
    int as = recoded_as(column);
    struct reading r = {.table = &p->tables[table],
                        .values = &p->values[column],
                        .coding = columns[column].coding,
                        .recoding = as < 0 ? columns[column].coding : recoded[as].coding};
    int rc = count < 0 ? (int)count : each_chunk(p, table, column, 1, take_values, &r);
    while (rc == 0 && r.next < r.table->chunk_count)
        clear_chunk(r.values, &r.table->chunks[r.next++]);
    return p->rc[column] = rc;
}

int packed_depths(struct packed *p, const uint32_t **depths)
{
    const struct packed_values *parents;
    int rc = packed_read(p, PACKED_stack_parent_id, &parents);
    long count = packed_count(p, PACKED_TABLE_stack);
    if (rc == 0 && !p->depths) {
        p->depths = calloc((size_t)count + 1, sizeof *p->depths);
        rc = p->depths ? 0 : -ENOMEM;
        for (uint32_t i = 1; rc == 0 && i <= count; i++) /* a caller has a lower id */
            p->depths[i] = p->depths[packed_at(parents, i)] + 1;
    }
    *depths = p->depths;
    return rc;
}

/* --- sites by stack --- */

static uint32_t slot_of(const struct packed *p, uint64_t stack_id)
{
    return (uint32_t)hash_pair(stack_id, 0) & p->site_mask;
}

static int index_sites(struct packed *p, const struct packed_values *stacks)
{
    long count = packed_count(p, PACKED_TABLE_site);
    p->site_mask = 1023;
    while (p->site_mask < (unsigned long)count)
        p->site_mask = p->site_mask * 2 + 1;
    p->site_first = calloc((size_t)p->site_mask + 1, sizeof *p->site_first);
    p->site_next = calloc((size_t)count + 1, sizeof *p->site_next);
    if (!p->site_first || !p->site_next) {
        free(p->site_first);
        free(p->site_next);
        p->site_first = p->site_next = NULL;
        return -ENOMEM;
    }
    for (uint32_t site = (uint32_t)count; site >= 1; site--) { /* so that the first comes first */
        uint32_t slot = slot_of(p, packed_at(stacks, site));
        p->site_next[site] = p->site_first[slot];
        p->site_first[slot] = site;
    }
    return 0;
}

/* From a place in the list of a slot on, the next site of the stack. */
static uint32_t seek(const struct packed *p, uint32_t site, uint64_t stack_id)
{
    while (site && packed_at(&p->values[PACKED_site_stack_id], site) != stack_id)
        site = p->site_next[site];
    return site;
}

int packed_site_of_stack(struct packed *p, int64_t stack_id, uint32_t *site)
{
    const struct packed_values *stacks;
    int rc = packed_read(p, PACKED_site_stack_id, &stacks);
    if (rc == 0 && !p->site_first)
        rc = index_sites(p, stacks);
    if (rc == 0)
        *site = seek(p, p->site_first[slot_of(p, (uint64_t)stack_id)], (uint64_t)stack_id);
    return rc;
}

uint32_t packed_next_site(const struct packed *p, uint32_t site)
{
    return seek(p, p->site_next[site], packed_at(&p->values[PACKED_site_stack_id], site));
}
