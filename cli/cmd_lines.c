#include "cli.h"

#include "../report/query/focus.h"
#include "../report/text/lines.h"
#include "../report/text/row_columns.h"

#include <errno.h>
#include <string.h>

static int parse(const struct arguments *a, const char *path, struct report_options *report, struct lines_options *o,
                 struct lens_options *lens)
{
    struct error err;
    *report = (struct report_options){
        .file = path, .sort = -1, .device = a->value[OPTION_device], .kind = a->value[OPTION_kind], .lens = lens};
    if (cli_lens(a, lens) || options_number(a, OPTION_top, 0, INT32_MAX, -1, &report->top))
        return EXIT_USAGE;
    for (int i = 0; i < a->use_count; i++) {
        int is_func = a->use[i].id == OPTION_func, is_file = a->use[i].id == OPTION_file;
        if ((is_func && o->function_count == LINES_PATTERNS_MAX) || (is_file && o->file_count == LINES_PATTERNS_MAX))
            return cli_usage("lines: more than %d names; use a pattern such as 'net_*'", LINES_PATTERNS_MAX);
        if (is_func)
            o->functions[o->function_count++] = a->use[i].value;
        if (is_file)
            o->files[o->file_count++] = a->use[i].value;
    }
    if (lines_columns(a->value[OPTION_columns], o, &err))
        return cli_usage("lines: %s", err.text);
    return 0;
}

/* Of functions of Python in a window the events of that window tell, and the names that are in the file. */
static int may_focus(const struct arguments *a, const struct lines_options *o, const struct lens_options *lens)
{
    int may = (o->file_count || (o->function_count && lens->language == TREE_PYTHON)) && cli_has_window(a) &&
              !lens->skip_count && !lens->pid && !a->given[OPTION_kind] && !a->given[OPTION_every] &&
              lens->language != TREE_NATIVE;
    for (int i = 0; i < o->file_count; i++)
        may &= focus_is_python(o->files[i]);
    return may;
}

/* 1: the recording goes on, and its tables show these functions; 0: not so, nothing is open. What is wrong is said by
 * who looks at all of it. */
static int open_focused(const struct arguments *a, const char *path, const struct lines_options *o,
                        struct lens_options *lens, struct cli_window *window, sqlite3 **db)
{
    const struct focus focus = {o->functions, o->function_count, o->files, o->file_count};
    struct error unused;
    *db = NULL;
    if (!may_focus(a, o, lens) || reader_open_running(path, db, &unused) != 1)
        return 0;
    if (cli_window_open(a, *db, lens, window, &unused) == 0 && lens->window &&
        focus_apply(*db, lens, &focus, &unused) == 0)
        return 1;
    lens->window = NULL;
    cli_window_close(window);
    sqlite3_close(*db);
    *db = NULL;
    return 0;
}

int cmd_lines(const struct arguments *a)
{
    struct report_options report;
    struct lens_options lens;
    struct lines_options options = {.report = &report};
    struct cli_window window = {.ranges = NULL};
    struct report_out out, also = {.file = NULL};
    struct error err = {""};
    sqlite3 *db = NULL;
    const char *path = cli_file(a);
    int status = path ? cli_output(a, &out) : EXIT_USAGE;
    if (status == 0 && a->given[OPTION_columns] && strcmp(a->value[OPTION_columns], "help") == 0) {
        stat_list(&out, STAT_LINES_COUNT);
        return cli_close_output(EXIT_OK);
    }
    if (status == 0)
        status = parse(a, path, &report, &options, &lens);
    if (status)
        return status;
    int is_focused = open_focused(a, path, &options, &lens, &window, &db);
    int rc = is_focused ? 0 : reader_open_still(path, &db, &err), is_open = rc == 0;
    if (is_open && !is_focused)
        rc = cli_window_open(a, db, &lens, &window, &err);
    window.lens.is_by_line = 1;
    options.is_focused = is_focused;
    out.has_window = lens.window != NULL;
    options.execution_count = a->given[OPTION_every] ? window.lens.of : 0;
    if (rc == 0 && !is_focused)
        rc = lens_apply(db, &lens, &err);
    if (rc == 0)
        rc = cli_also_open(a, path, &out, &also, &err);
    if (rc == 0)
        rc = lines_report(db, &options, &out, &err);
    if (also.file && (rc == 0 || rc == -ENOENT)) { /* what one pattern does not match says nothing of the others */
        struct error again;
        int also_rc = lines_report(db, &options, &also, &again);
        if (rc == 0 && (rc = also_rc))
            err = again;
    }
    rc = cli_also_close(&also, a, rc, &err);
    sqlite3_close(db);
    cli_window_close(&window);
    status = rc == 0 ? EXIT_OK : rc == -EINVAL && is_open ? cli_usage("%s", err.text) : cli_fail(&err);
    return cli_close_output(status);
}
