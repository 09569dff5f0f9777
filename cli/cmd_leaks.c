#include "../report/query/estimate.h"
#include "cli.h"

#include "../report/text/leaks.h"

#include <errno.h>
#include <string.h>

static int parse(const struct arguments *a, const char *path, struct report_options *o, struct suppressions *s,
                 struct lens_options *lens, int64_t *exitcode)
{
    struct error err;
    enum { BY_STACK, BY_LINE }; /* as values.def has them */
    int by = BY_STACK;
    *o = (struct report_options){
        .file = path, .sort = -1, .device = a->value[OPTION_device], .kind = a->value[OPTION_kind], .lens = lens};
    if (cli_lens(a, lens) || options_number(a, OPTION_top, 0, INT32_MAX, -1, &o->top) ||
        options_number(a, OPTION_frames, 0, INT32_MAX, 30, &o->frames) ||
        options_number(a, OPTION_error_exitcode, 1, 255, 0, exitcode))
        return EXIT_USAGE;
    if (a->given[OPTION_at] && cli_at(a, "leaks", o))
        return EXIT_USAGE;
    if (cli_has_window(a) && o->at == REPORT_AT_TIME)
        return cli_usage("leaks: --at TIME is an instant and --from, --to and --during are a window; choose one");
    if (options_choose(a, OPTION_leaks_by, &by))
        return EXIT_USAGE;
    o->by = by == BY_LINE ? ROW_LINE : ROW_STACK;
    for (int i = 0; i < a->use_count; i++)
        if (a->use[i].id == OPTION_suppressions && suppressions_load(s, a->use[i].value, &err))
            return cli_usage("%s", err.text);
    return 0;
}

int cmd_leaks(const struct arguments *a)
{
    struct report_options report;
    struct suppressions suppressions = {0};
    struct lens_options lens;
    struct leaks_options options = {&report, &suppressions, a->given[OPTION_all]};
    struct cli_window window = {.ranges = NULL};
    struct report_out out;
    struct error err = {""};
    sqlite3 *db = NULL;
    int64_t exitcode = 0;
    int leaked = 0;
    const char *path = cli_file(a);
    int status = path ? cli_output(a, &out) : EXIT_USAGE;
    if (status == 0)
        status = parse(a, path, &report, &suppressions, &lens, &exitcode);
    if (status == 0) {
        int rc = reader_open_still(path, &db, &err);
        if (rc == 0 && a->given[OPTION_error_exitcode])
            rc = estimate_refuse(db, path, "--error-exitcode holds for each of them", &err);
        int is_open = rc == 0;
        if (is_open)
            rc = cli_at_mark(a, db, &report, &err);
        if (rc == 0)
            rc = cli_window_open(a, db, &lens, &window, &err);
        window.lens.is_self_only = 1;
        window.lens.has_survivors = report.at != REPORT_AT_PEAK;
        out.has_window = lens.window != NULL;
        if (rc == 0)
            rc = lens_apply(db, &lens, &err);
        if (rc == 0)
            rc = leaks_report(db, &options, &out, &leaked, &err);
        if (rc)
            status = rc == -EINVAL && is_open ? cli_usage("%s", err.text) : cli_fail(&err);
        else
            status = leaked ? (int)exitcode : EXIT_OK;
        sqlite3_close(db);
        cli_window_close(&window);
        status = cli_close_output(status);
    }
    suppressions_free(&suppressions);
    return status;
}
