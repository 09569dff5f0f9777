#include "names.h"

#include "../../common/array.h"
#include "../../common/buf.h"
#include "../../common/hash.h"
#include "account_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Where a block is looked for: what a program handed out of a segment before the segment's own block. */
static const uint8_t kinds[] = {KIND_sub, KIND_pool, KIND_heap, KIND_pinned, KIND_vmm, KIND_array, KIND_map};

static struct live_block *find_block(struct account *a, unsigned process_id, uint64_t address)
{
    struct process_account *p = process_id < ACCOUNT_PROCESSES ? a->processes[process_id] : NULL;
    for (unsigned i = 0; p && i < sizeof kinds; i++) {
        uint64_t key = live_key(address, account_space(kinds[i]));
        struct live_block *b = live_find(p->live, key, 0);
        if (b)
            return b;
    }
    return NULL;
}

/* 0: it is new, and there are as many as there may be rows. */
static uint32_t text_number(struct names *n, const char *text)
{
    if (n->text_count >= NAMES_MAX) {
        const uint32_t *found = text_map_find(&n->number, text, strlen(text));
        return found ? *found : 0;
    }
    uint32_t *slot = text_map_slot(&n->number, text, strlen(text));
    if (!*slot) {
        *ARRAY_ADD(n->texts, n->text_count, n->text_capacity) = text_map_key(slot);
        *slot = n->text_count;
    }
    return *slot;
}

static void change(struct names *n, struct name_row *row)
{
    n->changed += !row->is_changed;
    row->is_changed = 1;
}

static struct name_row *row_at(const struct names *n, uint32_t number)
{
    return number ? &n->rows[number - 1] : NULL;
}

/* --- the live block's rows --- */

static struct name_row *newest_of(const struct names *n, uint64_t key, unsigned process_id)
{
    return row_at(n, (uint32_t)map_get(&n->open, key, process_id));
}

static int is_same_view(const struct memprof_view *a, const struct memprof_view *b)
{
    if (!a || !b)
        return a == b;
    return a->data == b->data && a->item_bytes == b->item_bytes && a->rank == b->rank &&
           !memcmp(a->size, b->size, a->rank * sizeof *a->size) &&
           !memcmp(a->stride, b->stride, a->rank * sizeof *a->stride);
}

/* --- a live block's row of a text and a view, found without going through all of the block's --- */

static uint64_t hash_view(const struct memprof_view *v)
{
    if (!v)
        return 0;
    uint64_t hash = hash_pair((uintptr_t)v->data, hash_pair(v->item_bytes, v->rank));
    for (uint32_t d = 0; d < v->rank; d++)
        hash = hash_pair(hash, hash_pair((uint64_t)v->size[d], (uint64_t)v->stride[d]));
    return hash;
}

static struct name_row *find_row(const struct names *n, uint64_t key, unsigned process_id, uint32_t text,
                                 const struct memprof_view *view)
{
    struct name_row *row =
        row_at(n, (uint32_t)map_get(&n->live, hash_pair(key, process_id), hash_pair(text, hash_view(view))));
    return row && row->key == key && row->process_id == process_id && row->text == text && is_same_view(row->view, view)
               ? row
               : NULL;
}

static void remember_row(struct names *n, const struct name_row *row)
{
    *map_slot(&n->live, hash_pair(row->key, row->process_id), hash_pair(row->text, hash_view(row->view))) =
        (uint64_t)(row - n->rows) + 1;
}

static void forget_row(struct names *n, const struct name_row *row)
{
    map_take(&n->live, hash_pair(row->key, row->process_id), hash_pair(row->text, hash_view(row->view)));
}

/* Takes a row of a live block out of that block's list. */
static void unlink_row(struct names *n, const struct name_row *row)
{
    const uint32_t number = (uint32_t)(row - n->rows) + 1;
    const uint32_t newest = (uint32_t)map_get(&n->open, row->key, row->process_id);
    if (newest == number) {
        if (row->next)
            *map_slot(&n->open, row->key, row->process_id) = row->next;
        else /* not by 0, which would end the search for other keys */
            map_take(&n->open, row->key, row->process_id);
        return;
    }
    for (struct name_row *other = row_at(n, newest); other; other = row_at(n, other->next))
        if (other->next == number) {
            other->next = row->next;
            return;
        }
}

/* --- rows --- */

static struct name_row *add_row(struct names *n)
{
    if (n->count >= NAMES_MAX) {
        n->left_out++;
        return NULL;
    }
    return ARRAY_ADD(n->rows, n->count, n->capacity);
}

static struct name_use *use_of(struct names *n, uint32_t text, unsigned process_id)
{
    const uint32_t at = map_number_or(&n->use, text, process_id, n->use_count);
    if (at == n->use_count)
        ARRAY_ADD(n->uses, n->use_count, n->use_capacity);
    return &n->uses[at];
}

/* A new one, or where the text has had its part, that of its newest block. */
static struct name_row *take_row(struct names *n, uint32_t text, unsigned process_id)
{
    struct name_use *use = use_of(n, text, process_id);
    if (text && use->count > NAMES_OF_TEXT) {
        struct name_row *row = row_at(n, use->last);
        if (!row->free_ns) {
            unlink_row(n, row);
            forget_row(n, row);
        }
        free(row->view);
        n->changed -= row->is_changed;
        n->left_out++;
        *row = (struct name_row){0};
        return row;
    }
    if (!text && n->nameless >= NAMELESS_MAX) {
        n->left_out++;
        return NULL;
    }
    struct name_row *row = add_row(n);
    if (row) {
        n->nameless += !text;
        use->count++;
        use->last = n->count;
    }
    return row;
}

static void set_view(struct name_row *row, const struct memprof_view *view)
{
    if (!view)
        return;
    row->view = xmalloc(sizeof *row->view);
    *row->view = *view;
}

static struct name_row *begin_row(struct account *a, unsigned process_id, uint64_t key, struct live_block *b,
                                  uint32_t text, const struct memprof_view *view)
{
    struct names *n = &a->names;
    struct name_row *row = take_row(n, text, process_id);
    if (!row)
        return NULL;
    uint64_t *newest = map_slot(&n->open, key, process_id);
    *row = (struct name_row){.process_id = process_id,
                             .key = key,
                             .address = b->key & LIVE_ADDRESS_MASK,
                             .size_bytes = b->size,
                             .birth_ns = b->time_ns,
                             .site = b->site,
                             .text = text,
                             .category = *newest ? row_at(n, (uint32_t)*newest)->category : 0,
                             .next = (uint32_t)*newest};
    set_view(row, view);
    *newest = (uint64_t)(row - n->rows) + 1;
    remember_row(n, row);
    b->named = 1;
    return row;
}

/* The block's only row has a category alone: that is the one to have the name. 0: it is not so, or the text has had its
 * part. */
static int give_name(struct names *n, struct name_row *row, uint32_t text, const struct memprof_view *view)
{
    struct name_use *use = row && !row->text && !row->next ? use_of(n, text, (unsigned)row->process_id) : NULL;
    if (!use || use->count > NAMES_OF_TEXT)
        return 0;
    n->nameless--;
    use->count++;
    use->last = (uint32_t)(row - n->rows) + 1;
    forget_row(n, row);
    row->text = text;
    set_view(row, view);
    remember_row(n, row);
    return 1;
}

/* All rows of a live block have the same one. */
static void set_category(struct account *a, struct name_row *first, uint32_t category)
{
    for (struct name_row *row = first; row && row->category != category; row = row_at(&a->names, row->next)) {
        row->category = category;
        change(&a->names, row);
    }
}

/* NULL: it is none, or not of this block. */
static const struct memprof_view *view_in(const struct live_block *b, const struct memprof_view *view)
{
    const uint64_t begin = b->key & LIVE_ADDRESS_MASK;
    uintptr_t low, high;
    return view && memprof_span(view, &low, &high) == 0 && low >= begin && high <= begin + b->size ? view : NULL;
}

int account_name(struct account *a, unsigned process_id, uint64_t time_ns, const struct name_said *said)
{
    struct names *n = &a->names;
    struct live_block *b = find_block(a, process_id, said->block);
    const uint32_t text = b ? text_number(n, said->text) : 0, name = said->is_category ? 0 : text;
    if (!text) {
        n->left_out += b != NULL;
        return b != NULL;
    }
    const uint64_t key = account_block_key(a->processes[process_id], b);
    const struct memprof_view *view = view_in(b, said->view);
    struct name_row *newest = newest_of(n, key, process_id);
    if (said->is_category ? newest != NULL : find_row(n, key, process_id, name, view) != NULL) {
        if (said->is_category)
            set_category(a, newest, text);
        return 1;
    }
    struct name_row *row =
        name && give_name(n, newest, name, view) ? newest : begin_row(a, process_id, key, b, name, view);
    if (row) {
        row->said_ns = time_ns;
        row->category = said->is_category ? text : row->category;
        change(n, row);
    }
    return 1;
}

/* --- ends --- */

static void name_segment(struct account *a, const struct name_row *row)
{
    static const char sql[] = "INSERT INTO memory_name(process_id, address, time_ns, name) VALUES(?, ?, ?, ?)";
    sqlite3_stmt *s = row->text ? store_statement(a->store, sql) : NULL;
    if (!s)
        return;
    sqlite3_bind_int64(s, 1, (int64_t)row->process_id);
    sqlite3_bind_int64(s, 2, (int64_t)row->address);
    sqlite3_bind_int64(s, 3, (int64_t)row->said_ns);
    sqlite3_bind_text(s, 4, a->names.texts[row->text - 1], -1, SQLITE_STATIC);
    store_step(a->store, s);
}

void account_name_end(struct account *a, unsigned process_id, uint64_t key, int is_segment)
{
    struct names *n = &a->names;
    for (struct name_row *row = row_at(n, (uint32_t)map_take(&n->open, key, process_id)); row;
         row = row_at(n, row->next)) {
        forget_row(n, row);
        row->free_ns = a->now_ns ? a->now_ns : 1;
        change(n, row);
        if (is_segment)
            name_segment(a, row);
    }
}

void account_name_move(struct account *a, unsigned process_id, uint64_t key, uint64_t new_key)
{
    struct names *n = &a->names;
    const uint64_t newest = map_take(&n->open, key, process_id);
    if (newest)
        *map_slot(&n->open, new_key, process_id) = newest;
    for (struct name_row *row = row_at(n, (uint32_t)newest); row; row = row_at(n, row->next)) {
        forget_row(n, row);
        row->key = new_key;
        remember_row(n, row);
    }
}

void account_names_process_end(struct account *a, unsigned process_id)
{
    struct name_row *row = a->names.rows;
    for (uint32_t i = 0; i < a->names.count; i++, row++)
        if (row->process_id == process_id && !row->free_ns) {
            map_take(&a->names.open, row->key, process_id);
            forget_row(&a->names, row);
        }
}

void names_close(struct names *n)
{
    for (uint32_t i = 0; i < n->count; i++)
        free(n->rows[i].view);
    free(n->rows);
    free(n->texts);
    free(n->uses);
    map_close(&n->open);
    map_close(&n->live);
    map_close(&n->use);
    text_map_close(&n->number);
}

/* --- the table --- */

static void bind_list(sqlite3_stmt *s, int column, const int64_t *values, uint32_t count)
{
    struct buf text = BUF(1024);
    for (uint32_t i = 0; i < count; i++)
        buf_printf(&text, "%s%" PRId64, i ? "," : "", values[i]);
    sqlite3_bind_text(s, column, buf_text(&text), -1, SQLITE_TRANSIENT);
    buf_free(&text);
}

/* Where strides are 0 a view may have more items than there is memory. */
static int64_t bytes_of(const struct memprof_view *view, int has_items)
{
    const size_t items = memprof_view_items(view);
    int64_t bytes;
    return (has_items && !items) || __builtin_mul_overflow(items, view->item_bytes, &bytes) ? INT64_MAX : bytes;
}

static void bind_view(sqlite3_stmt *s, int column, const struct memprof_view *view)
{
    uintptr_t low, high;
    memprof_span(view, &low, &high);
    sqlite3_bind_int64(s, column, (int64_t)low);
    sqlite3_bind_int64(s, column + 1, (int64_t)(high - low));
    sqlite3_bind_int64(s, column + 2, bytes_of(view, high > low));
    sqlite3_bind_int64(s, column + 3, (int64_t)view->item_bytes);
    bind_list(s, column + 4, view->size, view->rank);
    bind_list(s, column + 5, view->stride, view->rank);
}

static void write_row(struct account *a, uint32_t number, const struct name_row *row)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO block_name(name_id, process_id, device_id, site_id, block_address, block_bytes, "
        "alloc_ns, free_ns, time_ns, name, category, address, span_bytes, view_bytes, item_bytes, shape, stride) "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, coalesce(?12, ?5), coalesce(?13, ?6), "
        "coalesce(?14, ?6), ?15, ?16, ?17)";
    const uint64_t values[] = {number,        row->process_id, site_at(&a->sites, row->site)->device,
                               row->site,     row->address,    row->size_bytes,
                               row->birth_ns, row->free_ns,    row->said_ns};
    sqlite3_stmt *s = store_statement(a->store, sql);
    if (!s)
        return;
    for (int i = 0; i < (int)(sizeof values / sizeof *values); i++)
        sqlite3_bind_int64(s, i + 1, (int64_t)values[i]);
    if (!row->free_ns)
        sqlite3_bind_null(s, 8);
    sqlite3_bind_text(s, 10, row->text ? a->names.texts[row->text - 1] : "", -1, SQLITE_STATIC);
    if (row->category)
        sqlite3_bind_text(s, 11, a->names.texts[row->category - 1], -1, SQLITE_STATIC);
    if (row->view)
        bind_view(s, 12, row->view);
    store_step(a->store, s);
    sqlite3_clear_bindings(s);
}

void account_names_write(struct account *a)
{
    struct names *n = &a->names;
    for (uint32_t i = 0; n->changed && i < n->count; i++)
        if (n->rows[i].is_changed) {
            write_row(a, i + 1, &n->rows[i]);
            n->rows[i].is_changed = 0;
            n->changed--;
        }
}
