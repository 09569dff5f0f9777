#include "lines.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "../findings/notes.h"
#include "../query/bare_code.h"
#include "../query/device.h"
#include "../query/ending.h"
#include "../query/reserved.h"
#include "../query/stat_near.h"
#include "lines_private.h"
#include "nothing.h"
#include "own_peak.h"
#include "row_columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_GROUPS = 10, /* of those that were asked for */
    TITLE_NAME = 160,    /* columns of a function over its lines, with its arguments */
    DEFAULT_BEST = 5,    /* when none was */
};

static const int default_stats[] = {STAT_at_peak_bytes,       STAT_own_peak_bytes,   STAT_active_peak_bytes,
                                    STAT_reserved_peak_bytes, STAT_net_growth_bytes, STAT_alloc_count,
                                    STAT_temporary_count};

int lines_is_asked(const struct lines_options *options, int stat)
{
    for (int i = 0; i < options->stat_count; i++)
        if (options->stats[i] == stat)
            return 1;
    return 0;
}

static int no_statistic(const char *name, size_t length, struct error *err)
{
    struct buf text = BUF(4096), near = BUF(4096);
    buf_add(&text, name, length);
    if (stat_list_near(buf_text(&text), STAT_LINES_COUNT, &near))
        error_set(err, EINVAL, "--columns: no statistic '%s'; did you mean %s?", buf_text(&text), buf_text(&near));
    else
        error_set(err, EINVAL, "--columns: no statistic '%s'; 'memprof lines --columns help' lists them",
                  buf_text(&text));
    buf_free(&text);
    buf_free(&near);
    return -EINVAL;
}

int lines_columns(const char *list, struct lines_options *options, struct error *err)
{
    options->stat_count = 0;
    if (!list) {
        memcpy(options->stats, default_stats, sizeof default_stats);
        options->stat_count = sizeof default_stats / sizeof *default_stats;
        options->has_default_stats = 1;
        return 0;
    }
    while (*list) {
        size_t length = strcspn(list, ", ");
        int stat = stat_find(list, length);
        if (length && stat < 0)
            return no_statistic(list, length, err);
        if (length && !lines_is_asked(options, stat))
            options->stats[options->stat_count++] = stat;
        list += length + (list[length] != 0);
    }
    return options->stat_count
               ? 0
               : error_set(err, EINVAL, "--columns: empty; 'memprof lines --columns help' lists the statistics");
}

static void use_source(struct lines *l, const struct lines_group *g)
{
    if (l->source_file_id == g->file_id && g->file_id != 0)
        return;
    source_free(&l->source);
    l->source_file_id = g->file_id;
    if (g->path)
        source_load(l->db, g->file_id, g->path, &l->source);
}

static int has_device_peak(const struct lines *l)
{
    for (int i = 0; i < l->stat_count; i++)
        if (lines_is_of_device(l->stats[i]))
            return 1;
    return 0;
}

/* Whether a run of its own could have kept the source: of an imported snapshot, and of <stdin>, none can. */
static int is_recorded_here(struct lines *l, const struct lines_group *g)
{
    char *from = db_meta_text(l->db, "imported_from");
    free(from);
    return !from && *g->path != '<';
}

/* Managed memory, and that of other processes, is no part of what the device has reserved. */
static int has_unreserved(const struct lines *l, const struct lines_group *g)
{
    int has = 0, active_known, reserved_known;
    for (int i = 0; i < g->line_count && has_device_peak(l) && strcmp(g->device, "host") != 0; i++) {
        int64_t active = stat_value(&g->lines[i].stats, STAT_active_peak_bytes, &active_known);
        int64_t reserved = stat_value(&g->lines[i].stats, STAT_reserved_peak_bytes, &reserved_known);
        has |= active_known && reserved_known && active > reserved;
    }
    return has;
}

/* The host's heap, of which no call tells: between two samples it may have been more. */
static int has_samples(const struct lines *l, const struct lines_group *g)
{
    int is_shown = 0;
    for (int i = 0; i < l->stat_count; i++)
        is_shown |= l->stats[i] == STAT_reserved_peak_bytes;
    return is_shown && *reserved_mark(l->db, g->device, "all");
}

/* Whether a column is of an end that is not that of the process. */
static int ends_early(const struct lines *l)
{
    const struct report_options *o = l->options->report;
    int is_shown = 0;
    for (int i = 0; i < l->stat_count; i++)
        is_shown |= l->stats[i] == STAT_net_growth_bytes;
    return is_shown && !report_window(o) && ending_is_teardown(l->db, o->lens ? o->lens->pid : 0);
}

/* What of reserved growth is not known. */
static void say_reserved(struct lines *l, const struct lines_group *g)
{
    static const char *const texts[] = {
        [LINE_RESERVED_LEAST] = "(reserved growth: of segments; the driver's pools, arrays, and mappings that no "
                                "allocator hands out are not in it)",
        [LINE_RESERVED_UNKNOWN] = "(reserved growth -: known of a GPU's listed segments alone, of all kinds together, "
                                  "and not of code without a symbol)"};
    if (g->reserved != LINE_RESERVED_KNOWN && lines_is_asked(l->options, STAT_reserved_growth_bytes) &&
        !l->is_growth_said[g->reserved]++)
        table_prose(l->out, TABLE_DIM, texts[g->reserved]);
}

static void print_title(struct lines *l, const struct lines_group *g)
{
    struct buf title = BUF(1 << 20);
    int64_t line = g->declared_line > 0 && g->declared_file_id == g->file_id ? g->declared_line : g->lines[0].line;
    buf_puts(&title, "## ");
    if (g->bare_line_id)
        buf_puts(&title, g->name);
    else
        text_bare_name(&title, g->name, TITLE_NAME);
    buf_puts(&title, "   ");
    if (g->path)
        text_path(&title, g->path, l->cwd);
    if (g->path)
        buf_printf(&title, ":%lld", (long long)line);
    else
        buf_puts(&title, "(no line information)");
    buf_printf(&title, "   %s", g->device);
    table_line(l->out, TABLE_STRONG, title.data);
    buf_reset(&title);
    if (l->source.is_newer && l->warned_file_id != g->file_id) {
        buf_printf(&title, "! %s was changed after the recording: numbers may stand at wrong lines", g->path);
        l->warned_file_id = g->file_id;
    } else if (g->path && !l->source.text) {
        int can_keep = is_recorded_here(l, g);
        if (!l->is_missing_said[can_keep]++)
            buf_printf(&title, "! the source cannot be read here%s",
                       can_keep ? "; 'memprof run --source' puts it into the database" : "");
    }
    if (title.length)
        table_prose(l->out, TABLE_PLAIN, title.data);
    if (has_device_peak(l) && !l->is_device_said++)
        table_prose(l->out, TABLE_DIM,
                    "(device active, reserved: the highest of the whole device while the line was on the stack)");
    if (has_samples(l, g) && !l->is_sampled_said++)
        table_prose(l->out, TABLE_DIM,
                    "(device reserved of the host: at least, as its heap is sampled, and not the run's peak, which may "
                    "be of another time)");
    if (ends_early(l) && !l->is_end_said++)
        table_prose(l->out, TABLE_DIM, "(net growth: until Python began to take itself down, as 'live at end' is)");
    say_reserved(l, g);
    if (has_unreserved(l, g) && !l->is_unreserved_said++)
        table_prose(l->out, TABLE_DIM,
                    "(more active than reserved: managed memory and that of other processes is not reserved here)");
    fputc('\n', l->out->file);
    buf_free(&title);
}

/* Why lines have no own peak: none is known, or each instance's is, and they are not to be summed. */
static void say_own_peaks(struct lines *l, const struct lines_group *g)
{
    int is_shown = 0, is_unknown = 0, is_several = 0;
    for (int i = 0; i < l->stat_count; i++)
        is_shown |= l->stats[i] == STAT_own_peak_bytes;
    for (int i = 0; i < g->line_count; i++) {
        int is_lacking = !(g->lines[i].stats.known >> STAT_own_peak_bytes & 1);
        is_unknown |= is_lacking && !g->lines[i].has_own_peaks;
        is_several |= is_lacking && g->lines[i].has_own_peaks;
    }
    if (is_shown && is_unknown && !l->is_own_said++)
        own_peak_say_unknown(l->db, ROW_LINE, l->out);
    if (is_shown && is_several && !l->is_instances_said++)
        table_prose(
            l->out, TABLE_DIM,
            "(own peak -: several instances of a template, or clones, make the line, and what one of them calls "
            "of another counts in both; 'memprof report --by line --inclusive' has each one's)");
}

static void print_group(struct lines *l, struct record *document, const struct lines_group *g)
{
    use_source(l, g);
    lines_choose_stats(l, g->device);
    print_title(l, g);
    lines_open_listing(l, document);
    lines_list_group(l, g);
    listing_print(l->listing);
    listing_close(l->listing);
    say_own_peaks(l, g);
}

/* The keys of those that were asked for, in their order: whoever gave names need not know their keys. */
static void record_columns(const struct lines *l, struct record *document)
{
    struct buf keys = BUF(4096);
    for (int i = 0; i < l->options->stat_count; i++)
        buf_printf(&keys, "%s%s", i ? "," : "", stat_infos[l->options->stats[i]].column);
    record_member_text(document, "columns", buf_text(&keys));
    buf_free(&keys);
}

static void record_groups(struct lines *l, struct record *document, const struct lines_groups *groups)
{
    int64_t top = l->options->report->top;
    record_document_begin(document);
    notes_record(l->db, l->options->report->file, document);
    record_member_int(document, "is_focused", l->options->is_focused);
    record_columns(l, document);
    lines_open_listing(l, document);
    for (int i = 0; i < groups->count && (top <= 0 || i < top); i++) {
        const struct lines_group *g = &groups->group[i];
        use_source(l, g);
        for (int k = 0; k < g->line_count; k++)
            lines_list_line(l, g, g->lines[k].line, &g->lines[k], 0);
    }
    listing_close(l->listing);
    record_document_end(document);
}

/* "'a', 'b'": the patterns whose bit is not set. How many. */
static int list_missing(struct buf *list, const char *const *patterns, int count, uint32_t found)
{
    int missing = 0;
    for (int i = 0; i < count; i++)
        if (!(found >> i & 1))
            buf_printf(list, "%s'%s'", missing++ ? ", " : "", patterns[i]);
    return missing;
}

/* What may help: a pattern matched nothing already, and what looks like code without a symbol is in no list of names.
 */
static int no_function(const char *list, const char *first, struct error *err)
{
    if (bare_code_is_name(first))
        return error_set(err, ENOENT,
                         "no function %s in this recording: " BARE_CODE_OF_ONE_BUILD
                         "; 'memprof report --by function --inclusive --top 0' lists those that are here",
                         list);
    if (strpbrk(first, "*?"))
        return error_set(err, ENOENT,
                         "no function %s in this recording; 'memprof report --by function --inclusive --top 0' lists "
                         "those that are here",
                         list);
    return error_set(
        err, ENOENT,
        "no function %s in this recording; try a pattern such as '*%s*', or 'memprof report --by function'", list,
        first);
}

/* 0, or -ENOENT with a message that names every pattern that shows nothing. */
static int missing(const struct lines_options *o, const struct lines_groups *groups, struct error *err)
{
    struct buf list = BUF(1 << 16);
    const char *on = o->report->device ? ", on " : "", *device = o->report->device ? o->report->device : "";
    int rc = 0;
    if (list_missing(&list, o->functions, o->function_count, groups->known_functions))
        rc = no_function(list.data, o->functions[__builtin_ctz(~groups->known_functions)], err);
    else if (list_missing(&list, o->files, o->file_count, groups->shown_files))
        rc = error_set(err, ENOENT,
                       "no matching function in a file %s%s%s; 'memprof report --by file' lists those that allocated",
                       list.data, on, device);
    else if (list_missing(&list, o->functions, o->function_count, groups->shown_functions))
        rc = error_set(err, ENOENT,
                       "no function %s allocated, or called what allocates%s%s; 'memprof report' lists those that did",
                       list.data, on, device);
    buf_free(&list);
    return rc;
}

static int is_default(const struct lines_options *o)
{
    return o->function_count == 0 && o->file_count == 0;
}

static int nothing(sqlite3 *db, const struct lines_options *o, struct error *err)
{
    if (db_int(db, "SELECT count(*) FROM line WHERE file_id IS NOT NULL", 0) == 0)
        return error_set(err, ENOENT,
                         "no function in this recording has line information: 'memprof report --by function' shows "
                         "them without; compile with -g, see 'memprof info'");
    if (is_default(o))
        return error_set(err, ENOENT,
                         "no function with line information holds anything itself%s%s: 'memprof report --by function' "
                         "shows those that do",
                         o->report->device ? ", on " : "", o->report->device ? o->report->device : "");
    return error_set(err, ENOENT, "nothing to show%s%s", o->report->device ? ", on " : "",
                     o->report->device ? o->report->device : "");
}

/* What functions without lines hold cannot be shown here, and is most of some recordings. */
static void print_lineless(struct lines *l)
{
    static const char sql[] =
        "SELECT CAST(total(at_peak_bytes) AS INTEGER), CAST(total(CASE WHEN file_id IS NULL THEN at_peak_bytes END) AS "
        "INTEGER) FROM account JOIN line ON line_id = key_id WHERE scope = 'line' AND inclusive = 0 AND kind = 'all' "
        "AND " DEVICE_ID_IS("device_id", "?1");
    sqlite3_stmt *s = NULL;
    struct buf text = BUF(1024);
    if (db_prepare(l->db, sql, &s, NULL) == 0) {
        sqlite3_bind_text(s, 1, l->options->report->device, -1, SQLITE_STATIC);
        if (sqlite3_step(s) == SQLITE_ROW) {
            double all = (double)sqlite3_column_int64(s, 0), lineless = (double)sqlite3_column_int64(s, 1);
            if (lineless > all / 2)
                buf_printf(&text,
                           "! %d %% of the peak is in code without line information, which is not here: 'memprof "
                           "report --by function' shows it",
                           (int)(100 * lineless / all));
        }
    }
    sqlite3_finalize(s);
    if (text.length)
        table_prose(l->out, TABLE_STRONG, text.data);
    buf_free(&text);
}

/* Nobody asked for a certain function: those whose source can be shown say more. */
static void print_best(struct lines *l, struct record *document, struct lines_groups *groups)
{
    const struct report_options *o = l->options->report;
    int64_t top = o->top > 0 ? o->top : o->top == 0 ? groups->count : DEFAULT_BEST;
    int printed = 0, skipped = 0;
    lines_own_first(l->db, groups);
    for (int pass = 0; pass < 2 && printed == 0; pass++) {
        for (int i = 0; i < groups->count && printed < top; i++) {
            use_source(l, &groups->group[i]);
            if (pass == 0 && !l->source.text) {
                skipped++;
                continue;
            }
            if (printed++)
                fputc('\n', l->out->file);
            print_group(l, document, &groups->group[i]);
        }
    }
    if (printed && skipped && skipped < groups->count) {
        fputc('\n', l->out->file);
        table_prose(l->out, TABLE_DIM,
                    "Functions whose source cannot be read here are left out; --func NAME shows any.");
    }
}

static void print_groups(struct lines *l, struct record *document, struct lines_groups *groups)
{
    const struct report_options *o = l->options->report;
    int64_t top = o->top >= 0 ? o->top : DEFAULT_GROUPS;
    struct buf left_out = BUF(1 << 17);
    lines_prefer_own(l->db, l->options, groups, &left_out);
    int shown = top > 0 && top < groups->count ? (int)top : groups->count;
    for (int i = 0; i < shown; i++) {
        if (i)
            fputc('\n', l->out->file);
        print_group(l, document, &groups->group[i]);
    }
    if (shown < groups->count) {
        struct buf text = BUF(256);
        char count[UNITS_TEXT];
        buf_printf(&text, "%s more function%s; --top 0 shows all", units_count(count, groups->count - shown),
                   groups->count - shown == 1 ? "" : "s");
        fputc('\n', l->out->file);
        table_prose(l->out, TABLE_DIM, text.data);
        buf_free(&text);
    }
    if (left_out.length) {
        fputc('\n', l->out->file);
        table_prose(l->out, TABLE_DIM, left_out.data);
    }
    buf_free(&left_out);
}

int lines_report(sqlite3 *db, const struct lines_options *options, const struct report_out *out, struct error *err)
{
    struct lines l = {.db = db, .options = options, .out = out, .cwd = db_meta_text(db, "cwd")};
    struct lines_groups groups = {0};
    struct record document;
    int rc = device_check(db, options->report->device, options->report->kind, err);
    if (rc == 0)
        rc = lines_load(db, options, &groups, err);
    if (rc == 0 && groups.count == 0 && nothing_was_recorded(db))
        rc = error_set(err, ENOENT, "no allocation was recorded: 'memprof info' says what was");
    if (rc == 0 && groups.count == 0)
        rc = missing(options, &groups, err);
    if (rc == 0 && groups.count == 0)
        rc = nothing(db, options, err);
    record_open(&document, out);
    if (rc == 0 && out->format == REPORT_TEXT) {
        notes_print(db, out);
        if (is_default(options)) {
            print_lineless(&l);
            print_best(&l, &document, &groups);
        } else {
            print_groups(&l, &document, &groups);
        }
    } else if (rc == 0) {
        record_groups(&l, &document, &groups);
    }
    record_close(&document);
    if (rc == 0)
        rc = missing(options, &groups, err);
    lines_unload(&groups);
    source_free(&l.source);
    free(l.cwd);
    return rc;
}
