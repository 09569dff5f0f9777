#include "sites.h"

#include "../../common/db.h"
#include "../../common/map.h"
#include "../../common/text.h"
#include "../../common/units.h"
#include "../query/at.h"
#include "../query/device.h"
#include "modules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct export_sites {
    sqlite3 *db;
    const struct export_options *options;
    struct walk *walk;
    sqlite3_stmt *site, *device, *function;
    int only;               /* sites that have some of this statistic; -1: all */
    int64_t count, unknown; /* sites whose value was asked for, and of which it is not known */
    struct map owns;        /* frames of ours for lines that are none of their sites' stacks, by line_id */
    struct export_modules *modules;
    const struct walk_frame *shown[WALK_FRAMES_MAX + 1];
};

/* Columns of the statement, before the statistics. */
enum {
    SITE_ID,
    STACK_ID,
    PROCESS_ID,
    DEVICE_ID,
    DEVICE,
    KIND,
    OP,
    PHASE,
    MODULES,
    LINE_ID,
    FUNCTION_ID,
    FILE_ID,
    LINE,
    FUNCTION,
    FILE_PATH,
    MODULE,
    OFFSET,
    STATS
};

static int prepare_sites(struct export_sites *e, struct error *err)
{
    const int is_live = e->options->at == EXPORT_AT_TIME;
    struct buf sql = BUF(1 << 14);
    buf_puts(&sql, "SELECT s.site_id, s.stack_id, s.process_id, s.device_id, d.name, s.kind, o.name, o.phase, o.module,"
                   " l.line_id, l.function_id, l.file_id, l.line, fn.name, f.path, mk.path, l.offset, ");
    if (is_live)
        buf_puts(&sql, "v.live_bytes, v.live_count FROM temp.live v JOIN site s USING(site_id)");
    else
        stat_columns(&sql, "s.");
    buf_printf(&sql,
               "%s JOIN device d ON d.device_id = s.device_id LEFT JOIN site_op so ON so.site_id = s.site_id LEFT JOIN "
               "op o ON o.op_id = so.op_id LEFT JOIN site_line sl ON sl.site_id = s.site_id LEFT JOIN line l ON "
               "l.line_id = sl.line_id LEFT JOIN function fn ON fn.function_id = l.function_id LEFT JOIN file f ON "
               "f.file_id = l.file_id LEFT JOIN module_key mk ON mk.key_id = l.module_key_id WHERE (?1 = -1 OR "
               "s.device_id = ?1) AND (?2 IS NULL OR s.kind = ?2) AND " DEVICE_IS("d.name", "?3") " ORDER BY s.site_id",
               is_live ? "" : " FROM site_stat s");
    int rc = db_prepare(e->db, buf_text(&sql), &e->site, err);
    buf_free(&sql);
    return rc;
}

static int prepare(struct export_sites *e, struct error *err)
{
    int rc = prepare_sites(e, err);
    if (rc == 0)
        rc = db_prepare(e->db,
                        "SELECT DISTINCT t.device_id, d.name FROM total t JOIN device d USING(device_id) WHERE "
                        "t.device_id > ?1 AND t.alloc_count > 0 AND " DEVICE_IS("d.name", "?2") " ORDER BY 1 LIMIT 1",
                        &e->device, err);
    if (rc == 0)
        rc = db_prepare(e->db, "SELECT raw_name, line FROM main.function WHERE function_id = ?", &e->function, err);
    if (rc == 0)
        rc = export_modules_open(e->db, &e->modules, err);
    if (rc == 0)
        rc = walk_open(e->db, e->options->lens->language, &e->walk, err);
    return rc;
}

static const char *kind_of(const struct export_options *o)
{
    return o->kind && strcmp(o->kind, "all") == 0 ? NULL : o->kind;
}

int export_sites_open(sqlite3 *db, const struct export_options *options, struct export_sites **sites, struct error *err)
{
    struct export_sites *e = xcalloc(1, sizeof *e);
    struct at_result at;
    *sites = e;
    e->db = db;
    e->options = options;
    e->only = -1;
    int rc = device_check(db, options->device, options->kind, err);
    if (rc == 0 && options->at == EXPORT_AT_TIME)
        rc = at_check(db, options->at_ns, "--at", err);
    if (rc == 0 && options->at == EXPORT_AT_TIME && options->min_size_bytes)
        rc = error_set(err, EINVAL,
                       "--min-size does not go with --at TIME, whose key frames do not tell sizes; --at peak and --at "
                       "end do");
    options->lens->min_size_bytes = options->min_size_bytes;
    if (rc == 0)
        rc = lens_apply(db, options->lens, err);
    if (rc == 0 && options->at == EXPORT_AT_TIME)
        rc = at_load(db, options->at_ns, options->lens->pid, &at, err);
    if (rc == 0 && options->at == EXPORT_AT_TIME && !at.is_exact)
        rc = error_set(err, EINVAL,
                       "--at: the recording keeps no events around that instant (--aggregate, --max-events); --at peak "
                       "and --at end are known");
    if (rc == 0)
        rc = prepare(e, err);
    return rc ? rc : export_sites_begin(e, -1, err);
}

static void free_own(void *value)
{
    struct walk_frame *f = value;
    free((char *)f->function);
    free((char *)f->file);
    free((char *)f->module);
    free(f);
}

void export_sites_close(struct export_sites *e)
{
    if (!e)
        return;
    sqlite3_finalize(e->site);
    sqlite3_finalize(e->device);
    sqlite3_finalize(e->function);
    export_modules_close(e->modules);
    walk_close(e->walk);
    map_close_pointers(&e->owns, free_own);
    free(e);
}

int export_sites_begin(struct export_sites *e, int64_t device_id, struct error *err)
{
    e->count = e->unknown = 0;
    sqlite3_reset(e->site);
    if (sqlite3_bind_int64(e->site, 1, device_id) == SQLITE_OK &&
        sqlite3_bind_text(e->site, 2, kind_of(e->options), -1, SQLITE_STATIC) == SQLITE_OK &&
        sqlite3_bind_text(e->site, 3, e->options->device, -1, SQLITE_STATIC) == SQLITE_OK)
        return 0;
    return db_error(e->db, err);
}

/* --- frames --- */

static const char *text(sqlite3_stmt *s, int column)
{
    return (const char *)sqlite3_column_text(s, column);
}

static int is_equal(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Whether the line that the site counts for is this frame's: of a function its source line, or all of it without
 * source; of code without a symbol its address. */
static int is_own(sqlite3_stmt *s, const struct walk_frame *f)
{
    const int has_source = f->file_id != 0 && f->line > 0;
    if (!f->function && !has_source)
        return sqlite3_column_type(s, FUNCTION_ID) == SQLITE_NULL && text(s, MODULE) &&
               sqlite3_column_int64(s, OFFSET) == f->offset && is_equal(text(s, MODULE), f->module);
    return sqlite3_column_int64(s, FUNCTION_ID) == f->function_id &&
           sqlite3_column_int64(s, FILE_ID) == (has_source ? f->file_id : 0) &&
           sqlite3_column_int64(s, LINE) == (has_source ? f->line : 0);
}

static int find_own(sqlite3_stmt *s, const struct walk_stack *stack)
{
    for (int i = 0; sqlite3_column_type(s, LINE) != SQLITE_NULL && i < stack->count; i++)
        if (is_own(s, stack->frames[i]))
            return i;
    return -1;
}

/* The line as a frame, of a stack that has none for it. */
static const struct walk_frame *make_own(struct export_sites *e)
{
    const uint64_t line_id = (uint64_t)sqlite3_column_int64(e->site, LINE_ID);
    struct walk_frame *f = map_pointer(&e->owns, line_id);
    if (f)
        return f;
    f = xcalloc(1, sizeof *f);
    *f = (struct walk_frame){.function = db_own_text(e->site, FUNCTION),
                             .file = db_own_text(e->site, FILE_PATH),
                             .module = db_own_text(e->site, MODULE),
                             .line = sqlite3_column_int64(e->site, LINE),
                             .offset = sqlite3_column_int64(e->site, OFFSET),
                             .function_id = sqlite3_column_int64(e->site, FUNCTION_ID),
                             .file_id = sqlite3_column_int64(e->site, FILE_ID)};
    map_set_pointer(&e->owns, line_id, f);
    return f;
}

/* From the site's own frame outwards. */
static void show_frames(struct export_sites *e, struct walk_stack *stack, struct export_site *site)
{
    int own = find_own(e->site, stack), first = own, end = stack->count;
    if (own < 0) {
        walk_shown(stack, &first, &end);
        e->shown[site->count++] = make_own(e);
    } else {
        walk_fold_behind(stack, own);
        end = stack->count;
    }
    for (int i = first; i < end && !(i > first && walk_is_start(stack->frames[i])); i++)
        e->shown[site->count++] = stack->frames[i];
}

static int read_frames(struct export_sites *e, struct export_site *site, struct error *err)
{
    struct walk_stack stack;
    int rc = walk_stack(e->walk, site->stack_id, &stack, err);
    if (rc)
        return rc;
    site->frames = e->shown;
    site->is_cut = stack.is_cut;
    site->is_unknown = stack.is_unknown;
    if (!e->options->all_frames || !stack.count) {
        show_frames(e, &stack, site);
        return 0;
    }
    site->frames = stack.frames;
    site->count = stack.count;
    return 0;
}

/* --- values --- */

/* Where an instant is shown, what was live then lies where what is live at the end does. */
static void read_stats(struct export_sites *e, struct stat_row *stats)
{
    const uint32_t live = 1u << STAT_end_bytes | 1u << STAT_end_count;
    if (e->options->at == EXPORT_AT_TIME) {
        *stats = (struct stat_row){.known = live};
        stats->value[STAT_end_bytes] = sqlite3_column_int64(e->site, STATS);
        stats->value[STAT_end_count] = sqlite3_column_int64(e->site, STATS + 1);
        return;
    }
    stat_read(stats, e->site, STATS);
    if (e->options->at == EXPORT_AT_PEAK) {
        const int peak = export_peak_stat(e->options);
        uint32_t known = (stats->known >> peak & 1) << STAT_end_bytes;
        if (peak == STAT_at_peak_bytes)
            known |= (stats->known >> STAT_at_peak_count & 1) << STAT_end_count;
        stats->value[STAT_end_bytes] = stats->value[peak];
        stats->value[STAT_end_count] = stats->value[STAT_at_peak_count];
        stats->known = known;
    }
}

void export_sites_only(struct export_sites *e, int stat)
{
    e->only = stat;
}

/* Whether the site of the current row is wanted. */
static int is_wanted(struct export_sites *e, const struct stat_row *stats)
{
    int known;
    if (e->only < 0 || stat_value(stats, e->only, &known) != 0 || !known)
        return 1;
    e->count++;
    return 0;
}

int export_sites_next(struct export_sites *e, struct export_site *site, struct error *err)
{
    sqlite3_stmt *s = e->site;
    struct stat_row stats;
    int rc = 0;
    do {
        if (!db_next(s, &rc, err))
            return rc;
        read_stats(e, &stats);
    } while (!is_wanted(e, &stats));
    *site = (struct export_site){.site_id = sqlite3_column_int64(s, SITE_ID),
                                 .stack_id = sqlite3_column_int64(s, STACK_ID),
                                 .process_id = sqlite3_column_int64(s, PROCESS_ID),
                                 .device_id = sqlite3_column_int64(s, DEVICE_ID),
                                 .device = text(s, DEVICE),
                                 .kind = text(s, KIND),
                                 .op = text(s, OP),
                                 .phase = text(s, PHASE),
                                 .module = text(s, MODULES),
                                 .stats = stats};
    rc = read_frames(e, site, err);
    return rc ? rc : 1;
}

int export_sites_device(struct export_sites *e, int64_t after, int64_t *device_id, const char **name, struct error *err)
{
    sqlite3_reset(e->device);
    sqlite3_bind_int64(e->device, 1, after);
    sqlite3_bind_text(e->device, 2, e->options->device, -1, SQLITE_STATIC);
    int rc = 0;
    if (!db_next(e->device, &rc, err))
        return rc;
    *device_id = sqlite3_column_int64(e->device, 0);
    *name = db_text(e->device, 1);
    return 1;
}

int export_sites_module(struct export_sites *e, const struct walk_frame *frame, struct export_module *module,
                        struct error *err)
{
    return export_modules_find(e->modules, frame->address_id, module, err);
}

int export_sites_program(struct export_sites *e, struct export_module *module, struct error *err)
{
    return export_modules_program(e->modules, module, err);
}

int export_sites_function(struct export_sites *e, const struct walk_frame *frame, struct export_function *function,
                          struct error *err)
{
    int rc = 0;
    *function = (struct export_function){.raw_name = NULL};
    sqlite3_reset(e->function);
    sqlite3_bind_int64(e->function, 1, frame->function_id);
    if (db_next(e->function, &rc, err))
        *function = (struct export_function){text(e->function, 0), sqlite3_column_int64(e->function, 1)};
    return rc;
}

void export_frame_name(const struct walk_frame *frame, struct buf *out)
{
    if (frame->function)
        buf_puts(out, frame->function);
    if (frame->function && frame->is_python && *frame->function == '<' && frame->file)
        buf_printf(out, " (%s)", text_filename(frame->file));
    if (frame->function)
        return;
    if (frame->module)
        buf_printf(out, "%s+0x%llx", text_basename(frame->module), (unsigned long long)frame->offset);
    else
        buf_puts(out, "??");
}

void export_frame_label(const struct walk_frame *frame, struct buf *out)
{
    const size_t before = out->length;
    export_frame_name(frame, out);
    if (out->length == before)
        buf_puts(out, "??");
    if (out->length - before <= EXPORT_NAME_MOST)
        return;
    size_t end = before + EXPORT_NAME_MOST;
    while (end > before && ((unsigned char)out->data[end] & 0xc0) == 0x80)
        end--; /* not within a letter of UTF-8 */
    out->data[out->length = end] = 0;
}

int export_peak_stat(const struct export_options *o)
{
    return kind_of(o) ? STAT_at_kind_peak_bytes : STAT_at_peak_bytes;
}

int export_stat(const struct export_options *o)
{
    return o->at != EXPORT_AT_ALL ? STAT_end_bytes : o->stat >= 0 ? o->stat : export_peak_stat(o);
}

void export_stat_text(const struct export_options *o, int stat, struct buf *out)
{
    char time[UNITS_TEXT];
    if (o->at == EXPORT_AT_PEAK)
        buf_puts(out, kind_of(o) ? "bytes live at the peak of their kind" : "bytes live at their device's peak");
    else if (o->at == EXPORT_AT_TIME)
        buf_printf(out, "bytes live at %s", units_ns(time, o->at_ns));
    else
        buf_printf(out, "%s, %s", stat_infos[stat].name, stat_infos[stat].text);
}

int64_t export_value(struct export_sites *e, const struct export_site *site, int stat)
{
    int known;
    int64_t value = stat_value(&site->stats, stat, &known);
    e->count++;
    e->unknown += !known;
    return value;
}

int export_check_known(const struct export_sites *e, int stat, struct error *err)
{
    if (!e->count || e->unknown < e->count)
        return 0;
    return error_set(err, EINVAL,
                     "%s is not known of what was asked for, which the recording's totals or events do not tell; "
                     "--stat end.bytes is",
                     stat_infos[stat].name);
}
