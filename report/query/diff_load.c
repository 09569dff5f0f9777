/* The rows of a recording, put into those of its side: equal ones become one. */
#include "diff_private.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/hash.h"
#include "../../common/sum.h"
#include "../../common/text.h"
#include "device.h"
#include "estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_LIMIT = 64 << 20 };

static uint32_t number_of(struct text_map *map, const char *text, uint32_t next, int *is_new)
{
    uint32_t *slot = text_map_slot(map, text, strlen(text));
    *is_new = *slot == 0;
    if (*is_new)
        *slot = next + 1;
    return *slot - 1;
}

uint32_t diff_device(struct diff_state *d, const char *name)
{
    int is_new;
    uint32_t *slot = text_map_slot(&d->devices, name, strlen(name));
    is_new = *slot == 0;
    if (is_new) {
        *slot = d->device_count + 1;
        *ARRAY_ADD(d->device_names, d->device_count, d->device_capacity) = text_map_key(slot);
    }
    return *slot - 1;
}

static uint32_t first_value(const struct diff_side *s, uint32_t item)
{
    return item == DIFF_TOTAL ? s->first_total : s->items[item].first_value;
}

uint32_t diff_find_value(const struct diff_side *s, uint32_t device, uint32_t item)
{
    uint32_t value = item == DIFF_NONE ? DIFF_NONE : first_value(s, item);
    while (value != DIFF_NONE && s->values[value].device != device)
        value = s->values[value].next;
    return value;
}

static uint32_t add_value(struct diff_side *s, uint32_t device, uint32_t item)
{
    const uint32_t next = first_value(s, item), number = s->value_count, runs = (uint32_t)s->count;
    *ARRAY_ADD(s->values, s->value_count, s->value_capacity) = (struct diff_value){device, item, next};
    ARRAY_ROOM_ZERO(s->stats, (size_t)s->value_count * runs, s->stats_capacity);
    ARRAY_ROOM_ZERO(s->is_there, (size_t)s->value_count * runs, s->there_capacity);
    *(item == DIFF_TOTAL ? &s->first_total : &s->items[item].first_value) = number;
    return number;
}

struct stat_row *diff_stats_at(struct diff_side *s, uint32_t device, uint32_t item, int recording, int *is_first)
{
    uint32_t value = diff_find_value(s, device, item);
    if (value == DIFF_NONE)
        value = add_value(s, device, item);
    size_t at = (size_t)value * (uint32_t)s->count + (uint32_t)recording;
    *is_first = !s->is_there[at];
    s->is_there[at] = 1;
    return &s->stats[at];
}

uint32_t diff_add_item(struct diff_side *s, const struct buf *key, int *is_new)
{
    uint32_t *slot = text_map_slot(&s->item_of, key->length ? key->data : "", key->length);
    *is_new = *slot == 0;
    if (*is_new) {
        struct diff_item *item = ARRAY_ADD(s->items, s->item_count, s->item_capacity);
        *item = (struct diff_item){.key = text_map_key(slot), .key_length = key->length, .first_value = DIFF_NONE};
        *slot = s->item_count;
    }
    return *slot - 1;
}

uint32_t diff_find_file(struct diff_side *s, const char *path)
{
    return *text_map_slot(&s->file_of, path, strlen(path)) - 1;
}

static uint32_t add_file(struct diff_side *s, const char *path)
{
    int is_new;
    uint32_t number = number_of(&s->file_of, path, s->file_count, &is_new);
    if (is_new)
        *ARRAY_ADD(s->files, s->file_count, s->file_capacity) = (struct diff_file){
            .path = xstrdup(path), .first_function = DIFF_NONE, .item = DIFF_NONE, .other = DIFF_NONE};
    return number;
}

uint32_t diff_add_function(struct diff_side *s, const struct diff_item *item, const struct buf *key)
{
    uint32_t *slot = text_map_slot(&s->function_of, key->data, key->length);
    if (*slot)
        return *slot - 1;
    struct diff_function *f = ARRAY_ADD(s->functions, s->function_count, s->function_capacity);
    *slot = s->function_count;
    *f = (struct diff_function){.name = xstrdup_if(item->name),
                                .raw_name = xstrdup_if(item->function),
                                .module = xstrdup_if(item->module),
                                .key = text_map_key(slot),
                                .key_length = key->length,
                                .file = DIFF_NONE,
                                .next_of_file = DIFF_NONE,
                                .item = DIFF_NONE,
                                .other = DIFF_NONE};
    if (item->file && item->name) {
        f->file = add_file(s, item->file);
        f->next_of_file = s->files[f->file].first_function;
        s->files[f->file].first_function = *slot - 1;
    }
    return *slot - 1;
}

/* --- modules --- */

static int load_builds(struct diff_state *d, sqlite3 *db, int recording, int recordings, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, "SELECT DISTINCT path, build_id FROM module_key", &s, err);
    while (db_next(s, &rc, err)) {
        int is_new;
        const char *build = (const char *)sqlite3_column_text(s, 1);
        uint32_t module = number_of(&d->modules, text_basename(db_text(s, 0)), d->module_count, &is_new);
        if (is_new) {
            d->module_count++;
            ARRAY_ROOM_ZERO(d->builds, (size_t)d->module_count * (size_t)recordings, d->module_capacity);
        }
        /* one without an id is never known to be the same */
        uint64_t sum = build ? hash_pair(hash_text(HASH_START, build), 1) : hash_pair((uint64_t)recording, 2);
        d->builds[(size_t)module * (size_t)recordings + (size_t)recording] += sum | 1;
    }
    sqlite3_finalize(s);
    return rc;
}

int diff_load_modules(struct diff_state *d, struct error *err)
{
    const int recordings = d->side[DIFF_OLD].count + d->side[DIFF_NEW].count;
    int rc = 0, recording = 0;
    for (int side = 0; side < DIFF_SIDES; side++)
        for (int i = 0; rc == 0 && i < d->side[side].count; i++)
            rc = load_builds(d, d->side[side].dbs[i], recording++, recordings, err);
    return rc;
}

int diff_is_one_build(struct diff_state *d, const char *module)
{
    const size_t recordings = (size_t)(d->side[DIFF_OLD].count + d->side[DIFF_NEW].count);
    const char *name = text_basename(module);
    uint32_t *slot = text_map_slot(&d->modules, name, strlen(name));
    uint64_t one = 0;
    for (size_t i = 0; *slot && i < recordings; i++) {
        uint64_t builds = d->builds[(*slot - 1) * recordings + i];
        if (builds && one && builds != one)
            return 0;
        one = builds ? builds : one;
    }
    return *slot != 0;
}

/* --- rows --- */

/* Columns 1 to 11 of each key, then the statistics. */
static const struct {
    const char *scope, *columns, *joins;
} scopes[ROW_KEY_COUNT] = {
    [ROW_LINE] = {"line",
                  "fn.name, coalesce(f.path, ff.path), l.line, iif(fn.file_id IS l.file_id, fn.line, NULL), l.file_id, "
                  "coalesce(m.path, t.path), l.offset, NULL, NULL, m.build_id, a.key_id",
                  "LEFT JOIN line l ON l.line_id = a.key_id LEFT JOIN function fn ON fn.function_id = l.function_id "
                  "LEFT JOIN file f ON f.file_id = l.file_id LEFT JOIN file ff ON ff.file_id = fn.file_id "
                  "LEFT JOIN module_key m ON m.key_id = l.module_key_id "
                  "LEFT JOIN temp.diff_module t ON t.function_id = l.function_id"},
    [ROW_FUNCTION] = {"function",
                      "fn.name, f.path, iif(fn.function_id IS NULL, l.line, fn.line), fn.line, f.file_id, "
                      "coalesce(m.path, t.path), l.offset, NULL, NULL, m.build_id, a.key_id",
                      "LEFT JOIN function fn ON fn.function_id = a.key_id LEFT JOIN line l ON l.line_id = -a.key_id "
                      "LEFT JOIN module_key m ON m.key_id = l.module_key_id "
                      "LEFT JOIN file f ON f.file_id = coalesce(fn.file_id, l.file_id) "
                      "LEFT JOIN temp.diff_module t ON t.function_id = fn.function_id"},
    [ROW_FILE] = {"file", "NULL, f.path, NULL, NULL, a.key_id, NULL, NULL, NULL, NULL, NULL, a.key_id",
                  "LEFT JOIN file f ON f.file_id = a.key_id"},
    [ROW_MODULE] = {"module", "NULL, NULL, NULL, NULL, NULL, m.path, NULL, NULL, NULL, NULL, a.key_id",
                    "LEFT JOIN module_key m ON m.key_id = a.key_id"},
    [ROW_OP] = {"op", "NULL, NULL, NULL, NULL, NULL, o.module, NULL, o.name, o.phase, NULL, a.key_id",
                "LEFT JOIN op o ON o.op_id = a.key_id"},
};
enum { COLUMN_OF_STATS = 12 };

static void read_item(struct diff_item *item, sqlite3_stmt *s)
{
    *item = (struct diff_item){.function = db_own_text(s, 1),
                               .file = db_own_text(s, 2),
                               .line = sqlite3_column_int64(s, 3),
                               .declared = sqlite3_column_int64(s, 4),
                               .file_id = sqlite3_column_int64(s, 5),
                               .module = db_own_text(s, 6),
                               .offset = sqlite3_column_int64(s, 7),
                               .op = db_own_text(s, 8),
                               .phase = db_own_text(s, 9),
                               .key_id = sqlite3_column_int64(s, 11)};
    if (!item->function)
        return;
    struct buf name = BUF(KEY_LIMIT);
    if (item->module) /* of Python, "Tensor.clone" is a name */
        diff_bare_name(item->function, &name);
    else
        buf_puts(&name, item->function);
    item->name = name.failed ? xstrdup(item->function) : buf_take(&name);
}

static void free_item(struct diff_item *item)
{
    char *texts[] = {item->function, item->name, item->file, item->module, item->op, item->phase, item->caller};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
}

void diff_key(struct buf *key, const char *text)
{
    buf_putc(key, text ? '+' : '-');
    buf_puts(key, text ? text : "");
    buf_putc(key, '\0');
}

/* Code without a symbol: its offset, or all of a module that is not the same in all recordings. */
static void add_address(struct diff_state *d, struct diff_item *item, const char *build_id, struct buf *key)
{
    diff_key(key, item->module ? text_basename(item->module) : NULL);
    if (!item->module || diff_is_one_build(d, item->module)) {
        diff_key(key, build_id);
        buf_printf(key, "%llx", (unsigned long long)item->offset);
        return;
    }
    item->match = DIFF_MODULE;
    item->offset = -1;
}

static void add_function_key(struct diff_state *d, struct diff_item *item, const char *build_id, struct buf *key)
{
    diff_key(key, item->name);
    if (!item->name)
        add_address(d, item, build_id, key);
    else
        diff_key(key, item->file ? item->file : item->module ? text_basename(item->module) : NULL);
}

static void make_key(struct diff_state *d, enum row_key by, struct diff_item *item, const char *build_id,
                     struct buf *key)
{
    buf_reset(key);
    if (by == ROW_LINE || by == ROW_FUNCTION)
        add_function_key(d, item, build_id, key);
    else if (by == ROW_FILE)
        diff_key(key, item->file);
    else
        diff_key(key, item->module);
    if (by == ROW_OP) {
        diff_key(key, item->op);
        diff_key(key, item->phase);
    }
}

/* The item that a row belongs to: one that is there, or the row's own, which it then takes. */
static uint32_t place_item(struct diff_state *d, struct diff_side *side, enum row_key by, struct diff_item *item,
                           const char *build_id, struct buf *key)
{
    int is_new;
    uint32_t function = DIFF_NONE;
    make_key(d, by, item, build_id, key);
    if (by == ROW_LINE || by == ROW_FUNCTION)
        function = diff_add_function(side, item, key);
    if (by == ROW_LINE && item->name)
        buf_printf(key, "%lld", (long long)item->line);
    uint32_t number = diff_add_item(side, key, &is_new);
    if (!is_new) {
        free_item(item);
        return number;
    }
    item->function_number = function;
    item->first_value = DIFF_NONE;
    item->key = side->items[number].key;
    item->key_length = side->items[number].key_length;
    side->items[number] = *item;
    if (function != DIFF_NONE)
        side->functions[function].item = number;
    if (by == ROW_FILE && item->file) {
        uint32_t file = add_file(side, item->file);
        side->files[file].item = number;
    }
    return number;
}

static int name_modules(sqlite3 *db, struct error *err)
{
    return db_exec(
        db,
        "CREATE TEMP TABLE IF NOT EXISTS diff_module(function_id INTEGER PRIMARY KEY, path TEXT); DELETE FROM "
        "temp.diff_module; INSERT INTO temp.diff_module SELECT fr.function_id, min(m.path) FROM frame fr JOIN address "
        "a "
        "USING(address_id) JOIN module m USING(module_id) WHERE fr.function_id IS NOT NULL AND fr.language = 'native' "
        "GROUP BY fr.function_id",
        err);
}

static int prepare(const struct diff_options *o, enum row_key by, sqlite3 *db, sqlite3_stmt **s, struct error *err)
{
    struct buf sql = BUF(1 << 16);
    buf_printf(&sql, "SELECT d.name, %s, ", scopes[by].columns);
    stat_columns(&sql, "a.");
    buf_printf(&sql,
               " FROM account_stat a LEFT JOIN device d ON d.device_id = a.device_id %s WHERE a.scope = ?1 AND "
               "a.inclusive = 0 AND a.kind = 'all' AND " DEVICE_IS("d.name", "?2") "",
               scopes[by].joins);
    int rc = db_prepare(db, sql.data, s, err);
    buf_free(&sql);
    if (rc == 0) {
        sqlite3_bind_text(*s, 1, scopes[by].scope, -1, SQLITE_STATIC);
        sqlite3_bind_text(*s, 2, o->device, -1, SQLITE_STATIC);
    }
    return rc;
}

static int load_rows(struct diff_state *d, struct diff_side *side, int recording, struct error *err)
{
    const enum row_key by = d->options.by;
    struct buf key = BUF(KEY_LIMIT);
    sqlite3_stmt *s = NULL;
    struct estimates *estimates = estimates_open(side->dbs[recording]);
    int is_first, rc = prepare(&d->options, by, side->dbs[recording], &s, err);
    while (db_next(s, &rc, err)) {
        struct diff_item item;
        struct stat_row stats;
        read_item(&item, s);
        item.recording = (uint32_t)recording;
        stat_read(&stats, s, COLUMN_OF_STATS);
        estimates_fill(estimates, by, 0, "all", db_text(s, 0), item.key_id, &stats);
        uint32_t number = place_item(d, side, by, &item, (const char *)sqlite3_column_text(s, 10), &key);
        if (side->items[number].recording == (uint32_t)recording)
            sum_add(&side->items[number].alloc_count, stats.value[STAT_alloc_count]);
        struct stat_row *sum = diff_stats_at(side, diff_device(d, db_text(s, 0)), number, recording, &is_first);
        stat_add(sum, &stats, is_first);
    }
    sqlite3_finalize(s);
    estimates_close(estimates);
    buf_free(&key);
    return rc;
}

/* By file: the functions in it tell which renamed file is which. */
static int load_functions(struct diff_state *d, struct diff_side *side, int recording, struct error *err)
{
    struct buf key = BUF(KEY_LIMIT);
    sqlite3_stmt *s = NULL;
    int rc = prepare(&d->options, ROW_FUNCTION, side->dbs[recording], &s, err);
    while (db_next(s, &rc, err)) {
        struct diff_item item;
        read_item(&item, s);
        make_key(d, ROW_FUNCTION, &item, NULL, &key);
        diff_add_function(side, &item, &key);
        free_item(&item);
    }
    sqlite3_finalize(s);
    buf_free(&key);
    return rc;
}

/* --- totals --- */

static int load_totals(struct diff_state *d, struct diff_side *side, int recording, struct error *err)
{
    const struct rows_query query = {.by = ROW_DEVICE, .device = d->options.device, .sort = STAT_alloc_bytes};
    struct rows rows;
    int is_first, is_new, rc = rows_load(side->dbs[recording], &query, &rows, err);
    struct buf key = BUF(1);
    for (int i = 0; rc == 0 && i < rows.count; i++) {
        uint32_t device = diff_device(d, rows.row[i].device ? rows.row[i].device : "");
        *diff_stats_at(side, device, DIFF_TOTAL, recording, &is_first) = rows.row[i].stats;
        if (d->options.by == ROW_DEVICE)
            *diff_stats_at(side, device, diff_add_item(side, &key, &is_new), recording, &is_first) = rows.row[i].stats;
    }
    if (rc == 0)
        rows_free(&rows);
    return rc;
}

static void subtract(struct stat_row *from, const struct stat_row *row)
{
    for (int i = 0; i < STAT_VALUE_COUNT; i++)
        if (stat_infos[i].combine != STAT_COMBINE_sum || !(row->known & from->known & 1u << i) ||
            __builtin_sub_overflow(from->value[i], row->value[i], &from->value[i]))
            from->known &= ~(1u << i);
    for (int i = 0; i < STAT_COUNT; i++) { /* variances add up: those of the rows are parts of the whole's */
        const double rest = from->error[i] * from->error[i] - row->error[i] * row->error[i];
        from->error[i] = from->error[i] < 0 || row->error[i] < 0 ? -1 : rest > 0 ? sqrt(rest) : 0;
    }
}

static int is_nothing(const struct stat_row *row)
{
    int is_nothing = 1;
    for (int i = 0; i < STAT_COUNT; i++)
        is_nothing &= !(row->known & 1u << i) || row->value[i] == 0;
    return is_nothing;
}

/* What is in no row is one of its own, so that the rows are all. */
static void add_rest(struct diff_state *d, struct diff_side *side, int recording)
{
    static const char rest_key[] = "rest";
    struct buf key = BUF(16);
    const uint32_t runs = (uint32_t)side->count, at = (uint32_t)recording, values = side->value_count;
    struct stat_row *rest = xcalloc((size_t)d->device_count + 1, sizeof *rest);
    for (uint32_t i = 0; i < values; i++)
        if (side->values[i].item == DIFF_TOTAL && side->is_there[i * runs + at])
            rest[side->values[i].device] = side->stats[i * runs + at];
    for (uint32_t i = 0; i < values; i++)
        if (side->values[i].item != DIFF_TOTAL && side->is_there[i * runs + at])
            subtract(&rest[side->values[i].device], &side->stats[i * runs + at]);
    buf_puts(&key, rest_key);
    for (uint32_t device = 0; device < d->device_count; device++) {
        int is_new, is_first;
        if (is_nothing(&rest[device]))
            continue;
        uint32_t number = diff_add_item(side, &key, &is_new);
        side->items[number].is_rest = 1;
        side->items[number].function_number = DIFF_NONE;
        *diff_stats_at(side, device, number, recording, &is_first) = rest[device];
    }
    buf_free(&key);
    free(rest);
}

static void find_exe(struct diff_side *side)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(side->dbs[0],
                           "SELECT exe FROM process WHERE not_recorded IS NULL ORDER BY process_id LIMIT 1", -1, &s,
                           NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW)
        side->exe = xstrdup(db_text(s, 0));
    sqlite3_finalize(s);
}

int diff_load_side(struct diff_state *d, int number, struct error *err)
{
    struct diff_side *side = &d->side[number];
    const enum row_key by = d->options.by;
    int rc = 0;
    side->first_total = DIFF_NONE;
    find_exe(side);
    for (int i = 0; rc == 0 && i < side->count; i++) {
        if (by == ROW_LINE || by == ROW_FUNCTION || by == ROW_FILE)
            rc = name_modules(side->dbs[i], err);
        if (rc == 0 && by == ROW_STACK)
            rc = diff_load_stacks(d, side, i, err);
        else if (rc == 0 && by != ROW_DEVICE)
            rc = load_rows(d, side, i, err);
        if (rc == 0 && by == ROW_FILE)
            rc = load_functions(d, side, i, err);
        if (rc == 0)
            rc = load_totals(d, side, i, err);
        if (rc == 0)
            add_rest(d, side, i);
    }
    return rc;
}

void diff_close_side(struct diff_side *side)
{
    for (uint32_t i = 0; i < side->item_count; i++)
        free_item(&side->items[i]);
    for (uint32_t i = 0; i < side->function_count; i++) {
        free(side->functions[i].name);
        free(side->functions[i].raw_name);
        free(side->functions[i].module);
    }
    for (uint32_t i = 0; i < side->file_count; i++)
        free(side->files[i].path);
    text_map_close(&side->item_of);
    text_map_close(&side->function_of);
    text_map_close(&side->file_of);
    free(side->items);
    free(side->functions);
    free(side->files);
    free(side->values);
    free(side->stats);
    free(side->is_there);
    free(side->exe);
    free(side->script);
}
