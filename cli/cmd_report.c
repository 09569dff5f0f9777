#include "cli.h"

#include "../common/units.h"
#include "../report/page/html.h"
#include "../report/query/device.h"
#include "../report/query/estimate.h"
#include "../report/query/growth.h"
#include "../report/text/every.h"
#include "../report/text/report.h"
#include "../report/text/row_columns.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* What --by takes behind the keys of rows.h (values.def), which have reports of their own. */
enum { BY_SIZE = ROW_KEY_COUNT, BY_NAME, BY_CATEGORY };

static int parse_by(const struct arguments *a, struct report_options *o)
{
    int by = ROW_LINE;
    if (options_choose(a, OPTION_by, &by))
        return EXIT_USAGE;
    o->by = by < ROW_KEY_COUNT ? (enum row_key)by : ROW_LINE;
    o->is_by_size = by == BY_SIZE;
    if (by == BY_NAME || by == BY_CATEGORY)
        o->names = by == BY_NAME ? REPORT_NAMES_BY_NAME : REPORT_NAMES_BY_CATEGORY;
    return 0;
}

static int write_page(const struct arguments *a, sqlite3 *db, const char *path, const struct lens_options *lens,
                      const struct cli_window *window, struct error *err)
{
    struct html_options html = {
        .skips = lens->skips,
        .skip_count = lens->skip_count,
        .database_path = path,
        .page_path = a->given[OPTION_html] ? a->value[OPTION_html] : NULL,
        .with_source = !a->given[OPTION_no_source],
        .open = a->given[OPTION_open],
        .device = a->value[OPTION_device],
        .has_window = window->ranges != NULL,
        .window_name = window->name,
    };
    int rc = device_check(db, html.device, NULL, err);
    if (rc)
        return rc;
    if (window->lens.count > 1)
        return error_set(err, EINVAL, "--html opens with one range chosen; say which one of %s, such as %s#1",
                         window->name, window->name);
    if (html.has_window) {
        html.from_ns = window->ranges[0].from_ns;
        html.to_ns = window->ranges[0].to_ns;
    }
    if (a->given[OPTION_html_output])
        html.page_path = a->value[OPTION_html_output];
    if (html.page_path && strcmp(html.page_path, "-") == 0) {
        html.to_stdout = 1;
        html.page_path = NULL;
    }
    return html_write(db, &html, err);
}

static int parse_every(const struct arguments *a, const struct report_options *o, struct every_options *every)
{
    static const enum option_id others[] = {OPTION_by,        OPTION_at,          OPTION_sort,      OPTION_from,
                                            OPTION_to,        OPTION_during,      OPTION_transfers, OPTION_segments,
                                            OPTION_frees,     OPTION_names,       OPTION_policies,  OPTION_html,
                                            OPTION_inclusive, OPTION_html_output, OPTION_callers,   OPTION_process};
    *every = (struct every_options){
        .report = o, .name = a->value[OPTION_every], .progress = isatty(STDERR_FILENO) ? cli_show_progress : NULL};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (a->given[OPTION_every] && a->given[others[i]])
            return cli_usage("report: --every is a report of its own; leave out --%s", option_infos[others[i]].name);
    if (a->given[OPTION_warmup] && !a->given[OPTION_every])
        return cli_usage("report: --warmup belongs to --every");
    return options_number(a, OPTION_warmup, 0, INT32_MAX, GROWTH_WARMUP, &every->warmup);
}

/* Reports that are about something else than lines and their like: what they go with. */
static int parse_own(const struct arguments *a, struct report_options *o, int is_html)
{
    const int count = a->given[OPTION_transfers] + a->given[OPTION_segments] + a->given[OPTION_names] +
                      a->given[OPTION_policies] + a->given[OPTION_frees];
    const int is_by_name = o->names != REPORT_NAMES_ALL;
    const int is_whole = a->given[OPTION_transfers] || a->given[OPTION_frees] || a->given[OPTION_policies];
    const char *name = a->given[OPTION_transfers]  ? "--transfers"
                       : a->given[OPTION_frees]    ? "--frees"
                       : a->given[OPTION_segments] ? "--segments"
                       : a->given[OPTION_policies] ? "--policy"
                       : is_by_name                ? "--by name and --by category"
                                                   : "--names";
    o->with_names = a->given[OPTION_names] || is_by_name;
    o->with_plan = a->given[OPTION_plan];
    if (a->given[OPTION_plan] && (!a->given[OPTION_names] || a->given[OPTION_csv]))
        return cli_usage("report: --plan belongs to --names, and not to its --csv");
    if (!count && !is_by_name)
        return 0;
    if (count > 1)
        return cli_usage("report: --transfers, --frees, --segments, --names and --policy are reports of their own; ask "
                         "for one at a time");
    if (cli_has_window(a))
        return cli_usage("report: %s %s not go with --from, --to and --during", name, is_by_name ? "do" : "does");
    if ((a->given[OPTION_by] && !o->heaps && !is_by_name) || (is_by_name && count && !a->given[OPTION_names]) ||
        a->given[OPTION_sort] || a->given[OPTION_inclusive] || is_html || a->given[OPTION_callers] ||
        a->given[OPTION_kind])
        return cli_usage("report: %s %s with --device, --top, --json and --csv alone%s", name,
                         is_by_name ? "go" : "goes",
                         is_whole                    ? ""
                         : a->given[OPTION_segments] ? ", and with --at, --by line and --by heap"
                                                     : ", and with --at");
    if (o->lens->skip_count || o->lens->pid || o->lens->language != TREE_BOTH)
        return cli_usage("report: %s %s not go with --skip, --process, --native and --python-only", name,
                         is_by_name ? "do" : "does");
    if (is_whole && a->given[OPTION_at])
        return cli_usage("report: %s covers the whole run; leave out --at", name);
    return 0;
}

static int parse(const struct arguments *a, struct report_options *o, struct lens_options *lens,
                 struct every_options *every)
{
    *o = (struct report_options){.sort = -1, .lens = lens};
    o->device = a->value[OPTION_device];
    o->kind = a->value[OPTION_kind];
    o->inclusive = a->given[OPTION_inclusive];
    int is_html = a->given[OPTION_html] || a->given[OPTION_html_output];
    int is_table = a->given[OPTION_by] || a->given[OPTION_at] || a->given[OPTION_sort];
    if (parse_every(a, o, every) || cli_lens(a, lens) || options_number(a, OPTION_callers, 0, 1000, -1, &o->callers) ||
        options_number(a, OPTION_top, 0, INT32_MAX, -1, &o->top) ||
        options_number(a, OPTION_frames, 0, INT32_MAX, 30, &o->frames))
        return EXIT_USAGE;
    if (a->given[OPTION_by] && a->given[OPTION_segments])
        o->heaps = strcmp(a->value[OPTION_by], "line") == 0   ? REPORT_HEAPS_BY_LINE
                   : strcmp(a->value[OPTION_by], "heap") == 0 ? REPORT_HEAPS_EACH
                                                              : REPORT_HEAPS_BESIDE;
    if (a->given[OPTION_by] && o->heaps != REPORT_HEAPS_EACH && parse_by(a, o))
        return EXIT_USAGE;
    if (a->given[OPTION_at] && cli_at(a, "report", o))
        return EXIT_USAGE;
    if (a->given[OPTION_sort] && cli_sort("report", a->value[OPTION_sort], &o->sort))
        return EXIT_USAGE;
    if (a->given[OPTION_sort] && o->at == REPORT_AT_TIME)
        return cli_usage("report: --sort does not go with --at TIME, where the only statistic is what was live");
    if (o->is_by_size && (a->given[OPTION_at] || a->given[OPTION_sort] || o->inclusive || lens->pid))
        return cli_usage("report: --by size is the histogram of the whole run: it does not go with --at, --sort, "
                         "--inclusive and --process");
    if (is_html && (a->given[OPTION_by] || a->given[OPTION_at] || a->given[OPTION_json] || a->given[OPTION_csv] ||
                    a->given[OPTION_also_json]))
        return cli_usage("report: --html writes one page of everything; leave out --by, --at, --json and --csv");
    if (is_html && (lens->pid || lens->language != TREE_BOTH))
        return cli_usage("report: --html does not go with --process, --native and --python-only: a page's timeline and "
                         "instants are of the whole recording");
    lens->hides_skipped = is_html;
    if (cli_has_window(a) && o->at == REPORT_AT_TIME)
        return cli_usage("report: --at TIME is an instant and --from, --to and --during are a window; choose one");
    if (parse_own(a, o, is_html))
        return EXIT_USAGE;
    if (a->given[OPTION_callers] && (is_html || is_table))
        return cli_usage("report: --callers belongs to the report without --by, --at, --sort and --html");
    if (!is_html && (a->given[OPTION_open] || a->given[OPTION_no_source]))
        return cli_usage("report: --open and --no-source belong to --html");
    return 0;
}

/* The summary, or a table of the whole run, of what rows allocated themselves. */
static int is_of_selves(const struct arguments *a, const struct report_options *o, const struct lens_options *lens)
{
    static const enum option_id others[] = {OPTION_at,          OPTION_every, OPTION_inclusive, OPTION_policies,
                                            OPTION_transfers,   OPTION_frees, OPTION_segments,  OPTION_html,
                                            OPTION_html_output, OPTION_from,  OPTION_to,        OPTION_during};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (a->given[others[i]])
            return 0;
    return !o->is_by_size && !o->with_names && !lens->skip_count && !lens->pid && lens->language == TREE_BOTH;
}

static int print_report(const struct arguments *a, sqlite3 *db, const struct report_options *options,
                        const struct every_options *every, const struct report_out *out, struct error *err)
{
    if (a->given[OPTION_every])
        return every_report(db, every, out, err);
    if (a->given[OPTION_transfers])
        return report_transfers(db, options, out, err);
    if (a->given[OPTION_frees])
        return report_frees(db, options, out, err);
    if (a->given[OPTION_segments])
        return report_segments(db, options, out, err);
    if (a->given[OPTION_policies])
        return report_policy(db, options, out, err);
    if (options->with_names)
        return report_names(db, options, out, err);
    if (options->is_by_size)
        return report_sizes(db, options, out, err);
    if (a->given[OPTION_by] || a->given[OPTION_at] || a->given[OPTION_sort])
        return report_by(db, options, out, err);
    return report_summary(db, options, out, err);
}

static int refuse_sampled(sqlite3 *db, const struct report_options *o, const char *path, struct error *err)
{
    return o->with_names ? estimate_refuse(db, path, "--names tells which of them have names", err) : 0;
}

int cmd_report(const struct arguments *a)
{
    struct report_options options;
    struct lens_options lens;
    struct every_options every;
    struct cli_window window = {.ranges = NULL};
    struct report_out out, also = {.file = NULL};
    struct error err = {""};
    sqlite3 *db = NULL;
    int is_html = a->given[OPTION_html] || a->given[OPTION_html_output];
    if (cli_is_many(a))
        return cli_report_many(a);
    const char *path = cli_file(a);
    int status = path ? cli_output(a, &out) : EXIT_USAGE;
    if (status == 0 && cli_stat_help(a, &out))
        return cli_close_output(EXIT_OK);
    if (status == 0)
        status = parse(a, &options, &lens, &every);
    if (status)
        return status;
    options.file = path;
    int rc = is_of_selves(a, &options, &lens) ? reader_open_self(path, &db, &err) : reader_open_still(path, &db, &err);
    if (rc == 0)
        rc = refuse_sampled(db, &options, path, &err);
    if (rc == 0)
        rc = cli_at_mark(a, db, &options, &err);
    if (rc == 0)
        rc = cli_window_open(a, db, &lens, &window, &err);
    window.lens.is_self_only = !options.inclusive;
    window.lens.is_by_event = options.is_by_size || options.by == ROW_THREAD || options.by == ROW_PROCESS;
    window.lens.is_by_process = options.by == ROW_PROCESS;
    window.lens.is_by_size = options.is_by_size;
    window.lens.is_summed = !window_lacks(options.sort);
    if (rc == 0 && is_html)
        lens.window = NULL; /* a page has the whole run, and opens with the window chosen */
    out.has_window = lens.window != NULL;
    if (rc == 0)
        rc = lens_apply(db, &lens, &err);
    if (rc == 0)
        rc = cli_also_open(a, path, &out, &also, &err);
    if (rc == 0)
        rc = cli_also_first(db, &also, &err);
    if (rc == 0 && is_html)
        rc = write_page(a, db, path, &lens, &window, &err);
    else if (rc == 0)
        rc = print_report(a, db, &options, &every, &out, &err);
    if (rc == 0 && also.file)
        rc = cli_also_second(db, &err);
    if (rc == 0 && also.file)
        rc = print_report(a, db, &options, &every, &also, &err);
    rc = cli_also_close(&also, a, rc, &err);
    sqlite3_close(db);
    cli_window_close(&window);
    status = rc == 0 ? EXIT_OK : rc == -EINVAL && db ? cli_usage("%s", err.text) : cli_fail(&err);
    return cli_close_output(status);
}
