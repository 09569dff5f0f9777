/*
 * Every reader on a database that somebody else changed (change.h). The input is a list of changes to a good one; then
 * a report runs on it.
 */
#include "../../cli/cli.h"
#include "../../common/db.h"
#include "../../report/check/check.h"
#include "../../report/export/export.h"
#include "../../report/findings/many_notes.h"
#include "../../report/live/glance.h"
#include "../../report/page/diff_page.h"
#include "../../report/page/html.h"
#include "../../report/page/many_page.h"
#include "../../report/query/marks.h"
#include "../../report/query/vtab_event.h"
#include "../../report/text/advise.h"
#include "../../report/text/diff.h"
#include "../../report/text/every.h"
#include "../../report/text/info.h"
#include "../../report/text/leaks.h"
#include "../../report/text/lines.h"
#include "../../report/text/many.h"
#include "../../report/text/report.h"
#include "../../report/text/sql.h"
#include "change.h"

static char page_path[64];
static FILE *null_file;

static void remove_file(void)
{
    unlink(path);
    unlink(page_path);
}

static void start(void)
{
    change_start();
    snprintf(page_path, sizeof page_path, "/dev/shm/memprof-fuzz-%d.html", (int)getpid());
    atexit(remove_file);
    null_file = fopen("/dev/null", "w");
}

/* Against the good one, on either side, by any key, or as a page. */
static void compare(sqlite3 *db, unsigned by, unsigned is_old, const struct report_out *out)
{
    static sqlite3 *good;
    struct error err;
    if (!good && reader_open(seeds[0].path, &good, &err))
        abort();
    sqlite3 *old = is_old ? db : good, *new = is_old ? good : db;
    const char *name = path;
    const struct diff_report report = {.what = {.by = (enum row_key)(by % ROW_KEY_COUNT), .sort = STAT_at_peak_bytes},
                                       .files = {&name, &name},
                                       .dbs = {&old, &new},
                                       .counts = {1, 1},
                                       .top = -1,
                                       .frames = 30};
    if (report.what.by != ROW_THREAD && report.what.by != ROW_PROCESS)
        diff_report(&report, out, &err);
    else
        diff_page_write((sqlite3 *const[]){old, new},
                        &(struct diff_page_options){.database_paths = {name, name}, .page_path = page_path}, &err);
}

/* As one of three, as a table or a page. */
static void read_many(unsigned is_page, const struct report_out *out)
{
    const char *words[] = {path, seeds[0].path, "/dev/null"};
    const struct many_options options = {.lines = 3, .look = many_notes};
    const struct many_report report = {.sort = -1, .top = -1};
    const struct many_page_options page = {.page_path = page_path};
    struct recordings list;
    struct many many;
    struct error err;
    if (recordings_find(words, 3, &list, &err) || many_load(&list, reader_open_some, &options, &many, &err))
        abort(); /* one of them can be read */
    if (is_page)
        many_page_write(&many, &page, &err);
    else
        many_print(&many, &report, out);
    many_free(&many);
    recordings_free(&list);
}

/* Every rule, broken by anything that is there. */
static void check(sqlite3 *db, const struct lens_options *lens, struct suppressions *none, const struct report_out *out)
{
    static const char text[] =
        "max-peak 0\nmax-reserved 0\nmax-leak 0\nmax-leak-blocks 0\nmax-live-at-end 0\nmax-allocs 0\nmax-allocated "
        "0\nmax-temporary 0\n"
        "max-largest 0\nmax-line *=0\nmax-line *.c:=0\nmax-line *.c:42=0\nmax-line-total *=0\nmax-growth-per *=0\n";
    struct check_rules rules = {0};
    struct check_baseline baseline = {.file = path, .db = db};
    struct check_options o = {.file = path,
                              .lens = lens,
                              .suppressions = none,
                              .rules = &rules,
                              .baseline = &baseline,
                              .top = 3,
                              .frames = 10};
    struct check_results results = {0};
    struct error err;
    if (check_rules_parse(&rules, "rules", text, sizeof text - 1, &err))
        abort();
    if (check_rules_of(db, &o, &baseline.values, &err) == 0 && check_measure(db, &o, &results, &err) == 0) {
        check_print(db, &o, &results, out, &err);
        check_junit(db, &o, &results, null_file, &err);
        check_annotate(&o, &results, "/", null_file);
        check_write_rules(&db, 1, &o, null_file, &err);
    }
    check_results_free(&results);
    check_rules_free(&rules);
    check_rules_free(&baseline.values);
}

/* A window: all ranges that have names, or two times. 0: there is none. */
static int choose_window(sqlite3 *db, struct input *in, struct marks_found *found, struct lens_window *window)
{
    struct error err;
    if (input_take(in) & 1) {
        if (marks_find_ranges(db, "*#all", found, &err))
            return 0;
    } else {
        int64_t a = take_integer(in), b = take_integer(in);
        a = a < 0 ? 0 : a;
        found->ranges = calloc(1, sizeof *found->ranges);
        found->ranges[0] = (struct window_range){a, b < a ? WINDOW_END : b};
        found->count = 1;
    }
    *window = (struct lens_window){
        .ranges = found->ranges, .count = found->count, .name = found->name, .nth = found->nth, .of = found->of};
    return found->count > 0;
}

/* What has tables of its own, as a report or another tool's file. */
static void read_own(sqlite3 *db, unsigned which, struct report_options *o, struct lens_options *lens,
                     const struct report_out *out)
{
    static const struct export_options none;
    struct export_options export = none;
    struct export_result result = {.item = ""};
    struct glance look = {.pid = 0};
    struct error err;
    switch (which) {
    case 1:
        report_frees(db, o, out, &err);
        break;
    case 2:
        report_policy(db, o, out, &err);
        break;
    case 3:
        o->with_plan = out->format != REPORT_CSV;
        report_names(db, o, out, &err);
        break;
    case 4:
        report_segments(db, o, out, &err);
        break;
    case 5:
        report_transfers(db, o, out, &err);
        break;
    case 6:
        report_sizes(db, o, out, &err);
        break;
    case 7:
        glance_take(path, NULL, &look, &err);
        glance_close(&look);
        break;
    default:
        export.file = path;
        export.stat = -1;
        export.lens = lens;
        export_formats[which % (unsigned)export_format_count].write(db, &export, null_file, &result, &err);
    }
}

/* One report of those that there are: all of them on each input would be ten times as slow. */
static void read_some(sqlite3 *db, struct input *in)
{
    struct error err;
    enum { BY_FIRST = 1, LINES = BY_FIRST + ROW_KEY_COUNT, LEAKS, INFO, SQL, HTML, KINDS };
    unsigned what = input_take(in) % KINDS, format = input_take(in) % 3, view = input_take(in) % 8;
    struct lens_options lens = {.skips = {"*a*"},
                                .skip_count = view == 1,
                                .pid = view == 2 ? db_int(db, "SELECT max(pid) FROM process", 0) : 0,
                                .language = view == 3   ? TREE_NATIVE
                                            : view == 4 ? TREE_PYTHON
                                                        : TREE_BOTH};
    struct report_out out = {.file = null_file,
                             .format = (enum report_format)format,
                             .width = format == REPORT_TEXT ? 100 : 0,
                             .color = 1,
                             .utf8 = 1};
    struct report_options o = {.top = -1, .frames = 30, .sort = -1, .callers = view == 5 ? 3 : -1, .lens = &lens};
    struct lines_options lines = {.report = &o};
    struct suppressions none = {0};
    struct leaks_options leaks = {.report = &o, .suppressions = &none};
    struct html_options html = {.database_path = path, .page_path = page_path, .with_source = 1};
    struct marks_found found = {0};
    struct lens_window window;
    int leaked;
    if (view == 0 && choose_window(db, in, &found, &window)) {
        lens.window = &window;
        window.is_by_event = what == BY_FIRST + ROW_THREAD || what == BY_FIRST + ROW_PROCESS;
        window.is_summed = window.is_by_event;
        window.has_survivors = what == LEAKS;
        html.has_window = 1;
        html.from_ns = window.ranges[0].from_ns;
        html.to_ns = window.ranges[window.count - 1].to_ns;
        html.window_name = found.name;
    }
    if (view > 5) {
        if (input_take(in) & 1)
            read_many(what & 1, &out);
        else
            compare(db, what, view & 1, &out);
        return;
    }
    if (what != HTML && lens_apply(db, &lens, &err)) {
        free(found.ranges);
        free(found.name);
        return;
    }
    if (what == 0) {
        report_summary(db, &o, &out, &err);
    } else if (what < LINES) {
        o.by = (enum row_key)(what - BY_FIRST);
        o.at = (enum report_at)(input_take(in) % 4);
        o.at_ns = take_integer(in);
        o.inclusive = input_take(in) & 1;
        report_by(db, &o, &out, &err);
    } else if (what == LINES && input_take(in) & 1) {
        every_report(db, &(struct every_options){.report = &o, .name = "*", .warmup = 3}, &out, &err);
    } else if (what == LINES) {
        if (lines_columns(NULL, &lines, &err) == 0)
            lines_report(db, &lines, &out, &err);
    } else if (what == LEAKS) {
        leaks_report(db, &leaks, &out, &leaked, &err);
        check(db, &lens, &none, &out);
    } else if (what == INFO) {
        info_report(db, path, &out, &err);
        advise_report(db, &(struct advise_options){.file = path}, &out, &err);
    } else if (what == SQL && (input_take(in) & 1)) {
        read_own(db, input_take(in) % 24, &o, &lens, &out);
    } else if (what == SQL) {
        if (vtab_event_register(db) == SQLITE_OK)
            sql_run(db,
                    "SELECT count(*), sum(size_bytes), max(time_ns) FROM v_event; SELECT * FROM v_stack LIMIT 100; "
                    "SELECT * FROM v_line",
                    &out, &err);
    } else {
        html_write(db, &html, &err);
    }
    free(found.ranges);
    free(found.name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!seed_count)
        start();
    struct input choice = {data, size < 8 ? size : 8}, in = {data + choice.size, size - choice.size};
    change_write(&in, size < 8 ? 0 : data[7] / 32);
    sqlite3 *db;
    struct error err;
    if (reader_open(path, &db, &err) == 0)
        read_some(db, &choice);
    sqlite3_close(db);
    return 0;
}
