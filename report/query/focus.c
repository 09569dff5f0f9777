#include "focus.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/match.h"
#include "../../common/packed.h"
#include "../../common/wrap.h"
#include "focus_private.h"
#include "line_reserved.h"
#include "site_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int focus_is_python(const char *pattern)
{
    size_t length = strlen(pattern);
    return (length > 3 && strcmp(pattern + length - 3, ".py") == 0) || (length > 2 && pattern[length - 1] == '>');
}

/* --- the wanted lines -------------------------------------------------------------------------------------------- */

static int is_wanted_function(const struct focus *f, const char *name, const char *plain_name)
{
    for (int i = 0; i < f->function_count; i++)
        if (match_function(f->functions[i], name, plain_name))
            return 1;
    return f->function_count == 0;
}

static int is_wanted_file(const struct focus *f, const char *path)
{
    for (int i = 0; i < f->file_count; i++)
        if (match_file(f->files[i], path))
            return 1;
    return f->file_count == 0;
}

/* Index 0 is none, as in trees. */
static uint32_t line_index(struct focus_work *w, int64_t function_id, int64_t file_id, int64_t line)
{
    struct tree *t = &w->lens.tree;
    uint32_t next = t->line_count;
    uint32_t i = map_number_or(&w->line_at, (uint64_t)function_id, (uint64_t)file_id << 32 ^ (uint64_t)line, next);
    if (i == next) {
        struct tree_function *f = ARRAY_ADD(t->functions, t->function_count, t->function_capacity);
        f->id = function_id;
        *ARRAY_ADD(t->lines, t->line_count, t->line_capacity) =
            (struct tree_line){.id = next, .function = t->function_count - 1, .file_id = file_id, .line = line};
    }
    return i;
}

/* The files and functions are compared once each, not once a frame. */
static int load_wanted(struct focus_work *w, struct error *err)
{
    static const char sql[] =
        "SELECT a.address_id, fn.function_id, f.file_id, a.line, fn.name, fn.plain_name, f.path FROM frame a JOIN file "
        "f USING(file_id) JOIN function fn USING(function_id) WHERE a.language = 'python' AND a.line > 0 AND "
        "a.line <= 2147483647 ORDER BY f.file_id, fn.function_id";
    sqlite3_stmt *s = NULL;
    int64_t limit = db_int(w->lens.db, "SELECT max(address_id) FROM frame", 0) + 1, function_id = -1, file_id = -1;
    int is_function = 0, is_file = 0;
    int rc = limit > 0 && limit <= FOCUS_IDS_MAX ? db_prepare(w->lens.db, sql, &s, err) : -EAGAIN;
    ARRAY_ADD(w->lens.tree.functions, w->lens.tree.function_count, w->lens.tree.function_capacity);
    ARRAY_ADD(w->lens.tree.lines, w->lens.tree.line_count, w->lens.tree.line_capacity);
    w->lens.tree.stored_lines = 1;
    w->address_limit = rc == 0 ? (uint32_t)limit : 0;
    w->line_of = xcalloc(w->address_limit + 1ul, sizeof *w->line_of);
    while (db_next(s, &rc, err)) {
        if (sqlite3_column_int64(s, 2) != file_id) {
            is_file = is_wanted_file(w->focus, db_text(s, 6));
            file_id = sqlite3_column_int64(s, 2);
            function_id = -1;
        }
        if (is_file && sqlite3_column_int64(s, 1) != function_id) {
            char *name = xstrdup(db_text(s, 4));
            is_function = is_wanted_function(w->focus, name, db_text(s, 5));
            free(name);
            function_id = sqlite3_column_int64(s, 1);
        }
        const int64_t address = sqlite3_column_int64(s, 0);
        if (!is_file || !is_function || address < 1 || address >= limit)
            continue;
        w->line_of[address] = line_index(w, function_id, file_id, sqlite3_column_int64(s, 3));
        w->wanted_low = w->wanted_count && w->wanted_low < address ? w->wanted_low : (uint32_t)address;
        w->wanted_high = w->wanted_high > address ? w->wanted_high : (uint32_t)address;
        w->wanted_count++;
    }
    sqlite3_finalize(s);
    return rc == 0 && !w->wanted_count ? -EAGAIN : rc; /* who asks for what is not there, is told by others */
}

/* --- the sites below them ---------------------------------------------------------------------------------------- */

/* -1: there are too many. */
static int level_index(struct focus_work *w, int64_t device, int64_t kind)
{
    if (device < 0 || device > UINT8_MAX || kind < 0 || kind > KIND_all)
        return -1;
    for (int i = 0; i < w->level_count; i++)
        if (w->levels[i].device == device && w->levels[i].kind == kind)
            return i;
    if (w->level_count == FOCUS_LEVELS)
        return -1;
    w->levels[w->level_count] = (struct focus_level){.device = (uint8_t)device, .kind = (uint8_t)kind};
    return w->level_count++;
}

/* Most sites have the device and the kind of the one before, which *before has. */
static int find_levels(struct focus_work *w, int64_t device, int64_t kind, struct focus_levels *before)
{
    if (before->is_known && before->device == device && before->kind == kind)
        return 0;
    const int levels[] = {level_index(w, device, KIND_all), level_index(w, device, kind)};
    if (levels[0] < 0 || levels[1] < 0)
        return -EAGAIN;
    *before = (struct focus_levels){1, device, kind, {(uint8_t)levels[0], (uint8_t)levels[1]}};
    return 0;
}

static int add_site(struct focus_work *w, int64_t id, int64_t stack, const uint8_t levels[2])
{
    memcpy(w->levels_of[id], levels, sizeof w->levels_of[id]);
    if (stack < 1 || !focus_is_below(&w->stacks, (uint64_t)stack))
        return 0;
    *ARRAY_ADD(w->sites, w->site_count, w->site_capacity) =
        (struct focus_site){.id = id, .stack_id = (uint32_t)stack, .levels = {levels[0], levels[1]}};
    w->site_of[id] = w->site_count;
    return 0;
}

static int load_sites(struct focus_work *w, struct error *err)
{
    static const enum packed_column columns[] = {PACKED_site_stack_id, PACKED_site_device_id, PACKED_site_kind};
    struct focus_levels levels = {0};
    struct site_rows rows;
    int rc = site_rows_open(w->lens.db, columns, 3, &rows, err);
    const int64_t last = rows.packed ? rows.count : db_int(w->lens.db, "SELECT max(site_id) FROM site", 0);
    const int64_t limit = last + 1;
    if (rc == 0 && (last < 0 || last >= FOCUS_IDS_MAX))
        rc = -EAGAIN;
    if (rc) {
        site_rows_close(&rows);
        return rc;
    }
    w->site_limit = (uint32_t)limit;
    w->site_of = xcalloc(w->site_limit + 1ul, sizeof *w->site_of);
    w->levels_of = xcalloc(w->site_limit + 1ul, sizeof *w->levels_of);
    while (rc == 0 && (rc = site_rows_next(&rows, err)) == 1) {
        rc = rows.site_id < 1 || rows.site_id >= limit ? -EAGAIN : 0;
        if (rc == 0)
            rc = find_levels(w, site_rows_value(&rows, 1), site_rows_value(&rows, 2), &levels);
        if (rc == 0)
            rc = add_site(w, rows.site_id, site_rows_value(&rows, 0), levels.place);
    }
    site_rows_close(&rows);
    return rc;
}

/* --- accounts ---------------------------------------------------------------------------------------------------- */

static void add_to_line(struct focus_work *w, uint32_t line, const struct focus_site *site)
{
    struct lens *l = &w->lens;
    const uint32_t device = w->levels[site->levels[0]].device;
    uint32_t i = map_number_or(&l->row_of, line, device, l->row_count);
    if (i == l->row_count)
        *ARRAY_ADD(l->rows, l->row_count, l->row_capacity) =
            (struct lens_row){.scope = LENS_LINE, .inclusive = 1, .key = line, .device_id = device};
    struct lens_row *row = &l->rows[i];
    stat_add(&row->stats, &site->stats, row->site_count++ == 0);
}

/* The caller of a stack, 0: it is below no wanted line any more. *line: the stack's own; 0: it is not wanted. */
static uint32_t focus_step(const struct focus_work *w, uint32_t stack, uint32_t *line)
{
    const uint32_t place = focus_stack_place(&w->stacks, stack), address = w->stacks.addresses[place];
    const uint32_t parent = w->stacks.parents[place];
    *line = address < w->address_limit ? w->line_of[address] : 0;
    return focus_is_below(&w->stacks, parent) ? parent : 0;
}

/* Each line of its stack once. */
static void account_site(struct focus_work *w, uint32_t index)
{
    const struct focus_site *site = &w->sites[index];
    uint32_t stack = site->stack_id, line;
    for (uint32_t depth = 0; stack && depth < TREE_DEPTH_MAX; depth++) {
        stack = focus_step(w, stack, &line);
        if (!line || map_number(&w->lens.seen, line, 0) == index)
            continue;
        map_set_number(&w->lens.seen, line, 0, index);
        add_to_line(w, line, site);
    }
}

static void account(struct focus_work *w)
{
#define OF(statistic) (1u << STAT_##statistic)
    const uint32_t known = OF(start_bytes) | OF(start_count) | OF(end_bytes) | OF(end_count) | OF(alloc_count) |
                           OF(alloc_bytes) | OF(free_count) | OF(free_bytes) | OF(temporary_count) | OF(at_peak_bytes) |
                           OF(at_peak_count) | OF(at_kind_peak_bytes) | OF(own_peak_bytes);
#undef OF
    for (uint32_t i = 0; i < w->site_count; i++) {
        w->sites[i].stats.known = known;
        if (!replay_is_nothing(&w->sites[i].stats))
            account_site(w, i);
    }
}

/* Those of devices, which say what there is. */
static void fill_totals(struct focus_work *w)
{
    struct replay *r = &w->lens.replay;
    r->totals = xcalloc((size_t)w->level_count + 1, sizeof *r->totals);
    for (int i = 0; i < w->level_count; i++)
        r->totals[r->total_count++] = (struct replay_total){.device = w->levels[i].device, .kind = w->levels[i].kind};
}

static void close(struct focus_work *w)
{
    tree_close(&w->lens.tree);
    replay_free(&w->lens.replay);
    map_close(&w->lens.row_of);
    map_close(&w->lens.seen);
    map_close(&w->line_at);
    free(w->lens.rows);
    free(w->lens.kinds);
    free(w->line_of);
    focus_stacks_free(&w->stacks);
    free(w->site_of);
    free(w->levels_of);
    free(w->sites);
    free(w->changes);
}

/* --- segments ---------------------------------------------------------------------------------------------------- */

struct taking {
    struct focus_work *work;
    struct error *err;
    uint32_t count; /* of stacks, which seen has beside the sites */
    int rc;
};

/* Each line of the stack that took segments, once. */
static void take_segments(void *arg, int64_t stack_id, int64_t device_id, int64_t bytes)
{
    struct taking *t = arg;
    struct focus_work *w = t->work;
    const struct tree *tree = &w->lens.tree;
    const uint32_t mark = w->site_count + t->count++;
    uint32_t stack = focus_is_below(&w->stacks, (uint64_t)stack_id) ? (uint32_t)stack_id : 0, line;
    for (uint32_t depth = 0; t->rc == 0 && stack && depth < TREE_DEPTH_MAX; depth++) {
        stack = focus_step(w, stack, &line);
        if (!line || map_number(&w->lens.seen, line, 0) == mark)
            continue;
        map_set_number(&w->lens.seen, line, 0, mark);
        const struct tree_line *l = &tree->lines[line];
        t->rc = line_reserved_add(w->lens.db, device_id, tree->functions[l->function].id, l->file_id, l->line, bytes,
                                  t->err);
    }
}

static int account_segments(struct focus_work *w, struct error *err)
{
    struct taking t = {.work = w, .err = err};
    int rc = line_reserved_begin(w->lens.db, err);
    if (rc == 0)
        rc = line_reserved_stacks(w->lens.db, w->lens.options, take_segments, &t, err);
    return rc ? rc : t.rc;
}

int focus_apply(sqlite3 *db, const struct lens_options *options, const struct focus *focus, struct error *err)
{
    struct focus_work w = {.lens = {.db = db, .options = options, .is_replayed = 1}, .focus = focus};
    struct lens_window *window = options->window;
    int rc = window && window->count && db_int(db, "SELECT count(*) FROM teardown", 0) == 0 ? 0 : -EAGAIN;
    lens_kind(&w.lens, "all");
    if (rc == 0)
        rc = load_wanted(&w, err);
    if (rc == 0)
        rc = focus_stacks_load(&w, err);
    if (rc == 0)
        rc = load_sites(&w, err);
    if (rc == 0)
        rc = focus_events(&w, err);
    if (rc == 0) {
        account(&w);
        fill_totals(&w);
        window->result = (struct window_result){
            .is_counted = 1, .start_ns = window->ranges[0].from_ns, .end_ns = window->ranges[window->count - 1].to_ns};
        rc = w.lens.row_count ? lens_write(&w.lens, err) : -EAGAIN;
    }
    if (rc == 0)
        rc = account_segments(&w, err);
    close(&w);
    return rc;
}
