/*
 * The columns: time_ns, op, device, address, size_bytes, thread_id, stack_id; hidden ones, which SELECT * leaves out:
 * kind, hook, process_id, site_id, event_number, is_realloc, free_stack_id (NULL: not told). A realloc is two rows with
 * is_realloc 1: 'free' of the old block and 'realloc' of the new one, so that op = 'free' counts what free_count
 * counts.
 */
#ifdef MEMPROF_LOADABLE
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1
#else
#include "vtab_event.h"
#endif

#include "../../common/chunk.h"
#include "../../common/kind.h"
#include "../../common/packed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum column {
    COLUMN_time_ns,
    COLUMN_op,
    COLUMN_device,
    COLUMN_address,
    COLUMN_size_bytes,
    COLUMN_thread_id,
    COLUMN_stack_id,
    COLUMN_kind,
    COLUMN_hook,
    COLUMN_process_id,
    COLUMN_site_id,
    COLUMN_event_number,
    COLUMN_is_realloc,
    COLUMN_free_stack_id,
};

static const char declaration[] =
    "CREATE TABLE v_event(time_ns INTEGER, op TEXT, device TEXT, address INTEGER, size_bytes INTEGER, thread_id "
    "INTEGER,"
    " stack_id INTEGER, kind TEXT HIDDEN, hook TEXT HIDDEN, process_id INTEGER HIDDEN, site_id INTEGER HIDDEN,"
    " event_number INTEGER HIDDEN, is_realloc INTEGER HIDDEN, free_stack_id INTEGER HIDDEN)";

static const char *const op_texts[CHUNK_OP_COUNT] = {
#define X(name) [CHUNK_##name] = #name,
#include "../../common/chunk_ops.def"
#include "../../common/search.h"
#undef X
};

#define IDS 256 /* devices and hooks are one byte in an event */

struct table {
    sqlite3_vtab base;
    sqlite3 *db;
    int has_names; /* the arrays below are filled */
    char *devices[IDS], *hooks[IDS];
    int64_t *site_ids, *stack_ids; /* by site, ascending */
    size_t site_count;
    int64_t damaged_first, damaged_count; /* chunks that were skipped, each counted once */
    int64_t damaged_last;
};

struct cursor {
    sqlite3_vtab_cursor base;
    sqlite3_stmt *chunks;
    struct chunk_codec *codec;
    const struct chunk_event *events; /* the codec's, of the chunk that is being read */
    long count, index;
    int64_t first_event; /* number of events[0] */
    int64_t low_ns, high_ns;
    int device; /* -1: any */
    int is_eof;
    struct freers { /* of the chunk that is being read, if it was asked for them */
        sqlite3_stmt *read;
        struct chunk_codec *codec;
        int64_t chunk_id;
        const uint64_t *numbers;  /* the codec's: one for each event that may have one, in order */
        long count, place, index; /* place: of the number of the event at index, or the next one that has one */
    } freers;
};

/* How xBestIndex tells xFilter which arguments come: in this order. */
enum { PLAN_LOW = 1, PLAN_HIGH = 2, PLAN_EQUAL = 4, PLAN_DEVICE = 8 };

static int set_error(sqlite3_vtab *vtab, const char *text)
{
    sqlite3_free(vtab->zErrMsg);
    vtab->zErrMsg = sqlite3_mprintf("v_event: %s", text);
    return SQLITE_ERROR;
}

static int connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab, char **error)
{
    (void)aux, (void)argc, (void)argv, (void)error;
    int rc = sqlite3_declare_vtab(db, declaration);
    if (rc != SQLITE_OK)
        return rc;
    /* Reads the file's tables alone and changes nothing, so a view in an untrusted file may name it too. */
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    struct table *t = calloc(1, sizeof *t);
    if (!t)
        return SQLITE_NOMEM;
    t->db = db;
    *vtab = &t->base;
    return SQLITE_OK;
}

static void report_damaged(const struct table *t)
{
    if (t->damaged_count > 1)
        fprintf(stderr, "memprof: v_event: %lld damaged chunks of events were skipped\n", (long long)t->damaged_count);
}

static int disconnect(sqlite3_vtab *vtab)
{
    struct table *t = (struct table *)vtab;
    report_damaged(t);
    for (int i = 0; i < IDS; i++) {
        free(t->devices[i]);
        free(t->hooks[i]);
    }
    free(t->site_ids);
    free(t->stack_ids);
    free(t);
    return SQLITE_OK;
}

static int read_names(struct table *t, const char *sql, char *names[IDS])
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(t->db, sql, -1, &s, NULL) != SQLITE_OK)
        return set_error(&t->base, sqlite3_errmsg(t->db));
    while (sqlite3_step(s) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(s, 0);
        const unsigned char *name = sqlite3_column_text(s, 1);
        if (id >= 0 && id < IDS && name && !names[id])
            names[id] = strdup((const char *)name);
    }
    sqlite3_finalize(s);
    return SQLITE_OK;
}

static int add_site(struct table *t, size_t *capacity, int64_t site_id, int64_t stack_id)
{
    if (t->site_count == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 1024;
        int64_t *sites = realloc(t->site_ids, *capacity * sizeof *sites);
        t->site_ids = sites ? sites : t->site_ids;
        int64_t *stacks = realloc(t->stack_ids, *capacity * sizeof *stacks);
        t->stack_ids = stacks ? stacks : t->stack_ids;
        if (!sites || !stacks)
            return SQLITE_NOMEM;
    }
    t->site_ids[t->site_count] = site_id;
    t->stack_ids[t->site_count++] = stack_id;
    return SQLITE_OK;
}

static int read_packed_sites(struct table *t)
{
    const struct packed_values *stacks;
    struct packed *p = packed_open(t->db);
    if (!p)
        return SQLITE_NOMEM;
    size_t capacity = 0;
    long count = packed_count(p, PACKED_TABLE_site);
    int rc = count < 0 ? (int)count : packed_read(p, PACKED_site_stack_id, &stacks);
    if (rc)
        rc = set_error(&t->base, packed_error(rc));
    for (long i = 1; rc == SQLITE_OK && i <= count; i++)
        rc = add_site(t, &capacity, i, (int64_t)packed_at(stacks, (uint32_t)i));
    packed_close(p);
    return rc;
}

static int read_sites(struct table *t)
{
    sqlite3_stmt *s = NULL;
    size_t capacity = 0;
    int rc = SQLITE_OK;
    if (packed_has(t->db, PACKED_TABLE_site))
        return read_packed_sites(t);
    if (sqlite3_prepare_v2(t->db, "SELECT site_id, stack_id FROM main.site ORDER BY site_id", -1, &s, NULL) !=
        SQLITE_OK)
        return set_error(&t->base, sqlite3_errmsg(t->db));
    while (rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        rc = add_site(t, &capacity, sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1));
    sqlite3_finalize(s);
    return rc;
}

static int read_all_names(struct table *t)
{
    if (t->has_names)
        return SQLITE_OK;
    t->has_names = 1;
    int rc = read_names(t, "SELECT device_id, name FROM main.device", t->devices);
    if (rc == SQLITE_OK)
        rc = read_names(t, "SELECT hook_id, name FROM main.hook", t->hooks);
    return rc == SQLITE_OK ? read_sites(t) : rc;
}

static int stack_of(const struct table *t, uint32_t site_id, int64_t *stack_id)
{
    const size_t low = SEARCH_FIRST(t->site_count, i, t->site_ids[i] < (int64_t)site_id);
    if (low == t->site_count || t->site_ids[low] != (int64_t)site_id)
        return 0;
    *stack_id = t->stack_ids[low];
    return 1;
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    (void)vtab;
    int low = -1, high = -1, equal = -1, device = -1, plan = 0, argument = 0;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        if (!c->usable)
            continue;
        if (c->iColumn == COLUMN_time_ns &&
            (c->op == SQLITE_INDEX_CONSTRAINT_GE || c->op == SQLITE_INDEX_CONSTRAINT_GT))
            low = i;
        else if (c->iColumn == COLUMN_time_ns &&
                 (c->op == SQLITE_INDEX_CONSTRAINT_LE || c->op == SQLITE_INDEX_CONSTRAINT_LT))
            high = i;
        else if (c->iColumn == COLUMN_time_ns && c->op == SQLITE_INDEX_CONSTRAINT_EQ)
            equal = i;
        else if (c->iColumn == COLUMN_device && c->op == SQLITE_INDEX_CONSTRAINT_EQ)
            device = i;
    }
    const int chosen[] = {low, high, equal, device}, bits[] = {PLAN_LOW, PLAN_HIGH, PLAN_EQUAL, PLAN_DEVICE};
    double rows = 1e8;
    for (int i = 0; i < 4; i++) {
        if (chosen[i] < 0)
            continue;
        /* SQLite checks each row again (omit stays 0): the bounds only choose chunks */
        info->aConstraintUsage[chosen[i]].argvIndex = ++argument;
        plan |= bits[i];
        rows /= bits[i] == PLAN_EQUAL ? 1e6 : bits[i] == PLAN_DEVICE ? 2 : 4;
    }
    info->idxNum = plan;
    info->estimatedCost = rows;
    info->estimatedRows = (sqlite3_int64)rows;
    /* rows come in order of time */
    if (info->nOrderBy == 1 && info->aOrderBy[0].iColumn == COLUMN_time_ns && !info->aOrderBy[0].desc)
        info->orderByConsumed = 1;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **cursor)
{
    (void)vtab;
    struct cursor *c = calloc(1, sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    c->codec = chunk_codec_open();
    *cursor = &c->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
    struct cursor *c = (struct cursor *)cursor;
    sqlite3_finalize(c->chunks);
    chunk_codec_close(c->codec);
    sqlite3_finalize(c->freers.read);
    chunk_codec_close(c->freers.codec);
    free(c);
    return SQLITE_OK;
}

/* Chunks come in order of their number in every pass, so one that is beyond the last damaged one is new. */
static void count_damaged(struct table *t, int64_t chunk_id)
{
    if (t->damaged_count && chunk_id <= t->damaged_last)
        return;
    if (t->damaged_count++ == 0) {
        t->damaged_first = chunk_id;
        fprintf(stderr, "memprof: v_event: chunk %lld of the events is damaged and was skipped\n", (long long)chunk_id);
    }
    t->damaged_last = chunk_id;
}

/* The next chunk that can be read; none: is_eof. */
static int next_chunk(struct cursor *c)
{
    struct table *t = (struct table *)c->base.pVtab;
    int step;
    c->count = c->index = 0;
    while ((step = sqlite3_step(c->chunks)) == SQLITE_ROW) {
        const void *data = sqlite3_column_blob(c->chunks, 2);
        size_t length = (size_t)sqlite3_column_bytes(c->chunks, 2);
        long n = data ? chunk_decode_events(c->codec, data, length, &c->events) : -EBADMSG;
        if (n == -ENOMEM)
            return SQLITE_NOMEM;
        if (n < 0) {
            count_damaged(t, sqlite3_column_int64(c->chunks, 0));
            continue;
        }
        c->first_event = sqlite3_column_int64(c->chunks, 1);
        c->count = n;
        if (n > 0)
            return SQLITE_OK;
    }
    c->is_eof = 1;
    return step == SQLITE_DONE ? SQLITE_OK : set_error(&t->base, sqlite3_errmsg(t->db));
}

/* Moves to the first event from the current one on that may be asked for. */
static int settle(struct cursor *c)
{
    int rc = SQLITE_OK;
    for (;;) {
        for (; c->index < c->count; c->index++) {
            const struct chunk_event *e = &c->events[c->index];
            if (c->device >= 0 && e->device != c->device)
                continue;
            if ((int64_t)e->time_ns < c->low_ns)
                continue;
            if ((int64_t)e->time_ns <= c->high_ns)
                return SQLITE_OK;
            /* the rest of this chunk is later, and the following chunks are for the query to refuse */
            c->index = c->count - 1;
        }
        rc = next_chunk(c);
        if (rc != SQLITE_OK || c->is_eof)
            return rc;
    }
}

static int device_id(const struct table *t, sqlite3_value *value)
{
    const char *name = (const char *)sqlite3_value_text(value);
    for (int i = 0; name && i < IDS; i++)
        if (t->devices[i] && strcmp(t->devices[i], name) == 0)
            return i;
    return IDS; /* matches no event */
}

/* A bound may be a real number or even text: then it does not narrow, and SQLite's own check decides. */
static int64_t bound(sqlite3_value *value, int64_t otherwise)
{
    return sqlite3_value_type(value) == SQLITE_INTEGER ? sqlite3_value_int64(value) : otherwise;
}

static int filter(sqlite3_vtab_cursor *cursor, int plan, const char *text, int argc, sqlite3_value **argv)
{
    struct cursor *c = (struct cursor *)cursor;
    struct table *t = (struct table *)cursor->pVtab;
    int argument = 0, rc = read_all_names(t);
    (void)text, (void)argc;
    c->low_ns = INT64_MIN;
    c->high_ns = INT64_MAX;
    c->device = -1;
    c->is_eof = 0;
    c->count = c->index = 0;
    if (plan & PLAN_LOW)
        c->low_ns = bound(argv[argument++], INT64_MIN);
    if (plan & PLAN_HIGH)
        c->high_ns = bound(argv[argument++], INT64_MAX);
    if (plan & PLAN_EQUAL) {
        int64_t low = bound(argv[argument], INT64_MIN), high = bound(argv[argument], INT64_MAX);
        c->low_ns = low > c->low_ns ? low : c->low_ns;
        c->high_ns = high < c->high_ns ? high : c->high_ns;
        argument++;
    }
    if (plan & PLAN_DEVICE)
        c->device = device_id(t, argv[argument++]);
    if (rc == SQLITE_OK && !c->chunks &&
        sqlite3_prepare_v2(
            t->db,
            "SELECT chunk_id, first_event, data FROM main.event_chunk WHERE last_ns >= ?1 AND first_ns <= ?2"
            " AND (?3 < 0 OR device_mask >> min(?3, 63) & 1) ORDER BY chunk_id",
            -1, &c->chunks, NULL) != SQLITE_OK)
        rc = set_error(&t->base, sqlite3_errmsg(t->db));
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_reset(c->chunks);
    sqlite3_bind_int64(c->chunks, 1, c->low_ns);
    sqlite3_bind_int64(c->chunks, 2, c->high_ns);
    sqlite3_bind_int(c->chunks, 3, c->device);
    return settle(c);
}

static int next(sqlite3_vtab_cursor *cursor)
{
    struct cursor *c = (struct cursor *)cursor;
    c->index++;
    return settle(c);
}

static int eof(sqlite3_vtab_cursor *cursor)
{
    return ((struct cursor *)cursor)->is_eof;
}

static const char *op_text(unsigned op)
{
    if (op == CHUNK_realloc_free)
        return "free";
    if (op == CHUNK_realloc_alloc)
        return "realloc";
    return op < CHUNK_OP_COUNT ? op_texts[op] : "?";
}

/* Those of the chunk that is being read. Files of older versions, and damaged rows, have none. */
static void read_freers(struct cursor *c, int64_t chunk_id)
{
    struct freers *f = &c->freers;
    f->chunk_id = chunk_id;
    f->count = f->place = f->index = 0;
    if (!f->codec)
        f->codec = chunk_codec_open();
    if (!f->codec || (!f->read && sqlite3_prepare_v2(((struct table *)c->base.pVtab)->db,
                                                     "SELECT data FROM main.chunk_free WHERE chunk_id = ?", -1,
                                                     &f->read, NULL) != SQLITE_OK))
        return;
    sqlite3_reset(f->read);
    sqlite3_bind_int64(f->read, 1, chunk_id);
    if (sqlite3_step(f->read) == SQLITE_ROW && sqlite3_column_type(f->read, 0) == SQLITE_BLOB)
        f->count = chunk_decode_numbers(f->codec, sqlite3_column_blob(f->read, 0),
                                        (size_t)sqlite3_column_bytes(f->read, 0), &f->numbers);
    if (f->count < 0)
        f->count = 0;
}

/* Who freed the current event's block; 0: that is not known. Events are read in order. */
static int64_t freer_of(struct cursor *c)
{
    struct freers *f = &c->freers;
    int64_t chunk_id = sqlite3_column_int64(c->chunks, 0);
    if (!chunk_op_has_freer(c->events[c->index].op))
        return 0;
    if (f->chunk_id != chunk_id || f->index > c->index)
        read_freers(c, chunk_id);
    for (; f->count && f->index < c->index; f->index++)
        f->place += chunk_op_has_freer(c->events[f->index].op);
    return f->place < f->count ? (int64_t)f->numbers[f->place] : 0;
}

static int column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int index)
{
    struct cursor *c = (struct cursor *)cursor;
    const struct table *t = (const struct table *)cursor->pVtab;
    const struct chunk_event *e = &c->events[c->index];
    int64_t stack_id;
    const char *name;
    switch (index) {
    case COLUMN_time_ns:
        sqlite3_result_int64(context, (sqlite3_int64)e->time_ns);
        break;
    case COLUMN_op:
        sqlite3_result_text(context, op_text(e->op), -1, SQLITE_STATIC);
        break;
    case COLUMN_device:
    case COLUMN_hook:
        name = index == COLUMN_device ? t->devices[e->device] : t->hooks[e->hook];
        if (name)
            sqlite3_result_text(context, name, -1, SQLITE_TRANSIENT);
        break;
    case COLUMN_address:
        sqlite3_result_int64(context, (sqlite3_int64)e->address);
        break;
    case COLUMN_size_bytes:
        sqlite3_result_int64(context, (sqlite3_int64)e->size_bytes);
        break;
    case COLUMN_thread_id:
        sqlite3_result_int64(context, e->thread_id);
        break;
    case COLUMN_stack_id:
        if (stack_of(t, e->site_id, &stack_id))
            sqlite3_result_int64(context, stack_id);
        break;
    case COLUMN_kind:
        sqlite3_result_text(context, kind_name(e->kind), -1, SQLITE_STATIC);
        break;
    case COLUMN_process_id:
        sqlite3_result_int64(context, e->process_id);
        break;
    case COLUMN_site_id:
        sqlite3_result_int64(context, e->site_id);
        break;
    case COLUMN_event_number:
        sqlite3_result_int64(context, (sqlite3_int64)((uint64_t)c->first_event + (uint64_t)c->index));
        break;
    case COLUMN_is_realloc:
        sqlite3_result_int(context, e->op == CHUNK_realloc_free || e->op == CHUNK_realloc_alloc);
        break;
    case COLUMN_free_stack_id:
        stack_id = freer_of(c);
        if (stack_id)
            sqlite3_result_int64(context, stack_id);
        break;
    }
    return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id)
{
    const struct cursor *c = (const struct cursor *)cursor;
    *id = (sqlite3_int64)((uint64_t)c->first_event + (uint64_t)c->index);
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .iVersion = 1, /* without xCreate: the table exists by its name alone */
    .xConnect = connect,
    .xBestIndex = best_index,
    .xDisconnect = disconnect,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next,
    .xEof = eof,
    .xColumn = column,
    .xRowid = rowid,
};

#ifdef MEMPROF_LOADABLE
/* The file's views of single stacks and sites, as temporary ones, which look at what packed_views put before the plain
 * tables. */
static int renew_views(sqlite3 *db)
{
    static const char head[] = "CREATE VIEW ";
    sqlite3_stmt *s = NULL;
    int rc =
        sqlite3_prepare_v2(db,
                           "SELECT sql FROM main.sqlite_schema WHERE type = 'view' AND sql LIKE 'CREATE VIEW %' AND "
                           "EXISTS(SELECT 1 FROM temp.sqlite_schema)",
                           -1, &s, NULL);
    while (rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW) {
        const char *definition = (const char *)sqlite3_column_text(s, 0);
        char *sql = sqlite3_mprintf("CREATE TEMP VIEW IF NOT EXISTS %s", definition + sizeof head - 1);
        rc = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
        sqlite3_free(sql);
    }
    sqlite3_finalize(s);
    return rc;
}

__attribute__((visibility("default"))) int sqlite3_memprofevents_init(sqlite3 *db, char **error,
                                                                      const sqlite3_api_routines *api)
{
    struct error err;
    SQLITE_EXTENSION_INIT2(api);
    if (packed_views(db, &err) != 0) {
        *error = sqlite3_mprintf("%s", err.text);
        return SQLITE_ERROR;
    }
    int rc = sqlite3_create_module_v2(db, "v_event", &module, NULL, NULL);
    return rc == SQLITE_OK ? renew_views(db) : rc;
}
#else
int vtab_event_register(sqlite3 *db)
{
    return sqlite3_create_module_v2(db, "v_event", &module, NULL, NULL);
}
#endif
