/* memprof report with several files: what goes with it, and the way to the table or the page. */
#include "cli.h"

#include "../common/near.h"
#include "../report/findings/many_notes.h"
#include "../report/page/many_page.h"
#include "../report/text/many.h"

#include <errno.h>
#include <string.h>

int cli_is_many(const struct arguments *a)
{
    return a->rest_count > 1 || (a->rest_count == 1 && recordings_is_pattern(a->rest[0]));
}

static int is_html(const struct arguments *a)
{
    return a->given[OPTION_html] || a->given[OPTION_html_output];
}

static int is_page_name(const char *path)
{
    size_t length = strlen(path);
    return length > 5 && strcmp(path + length - 5, ".html") == 0;
}

/* What a merged recording, which has no events, tells as well. */
static int is_of_merged(enum option_id id)
{
    static const enum option_id ids[] = {OPTION_by,      OPTION_kind,   OPTION_inclusive,   OPTION_frames,
                                         OPTION_callers, OPTION_native, OPTION_python_only, OPTION_skip};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (ids[i] == id)
            return 1;
    return 0;
}

/* All but these are about what is within one recording. */
static int check_options(const struct arguments *a)
{
    static const enum option_id allowed[] = {OPTION_device,      OPTION_top,  OPTION_sort,  OPTION_json, OPTION_csv,
                                             OPTION_html_output, OPTION_html, OPTION_color, OPTION_open};
    static const enum option_id not_html[] = {OPTION_top, OPTION_sort, OPTION_json, OPTION_csv};
    for (int i = 0; i < OPTION_COUNT; i++) {
        int is_allowed = !a->given[i];
        for (size_t k = 0; k < sizeof allowed / sizeof *allowed; k++)
            is_allowed |= allowed[k] == (enum option_id)i;
        if (!is_allowed && is_of_merged((enum option_id)i))
            return cli_usage(
                "report: --%s looks into one recording: 'memprof merge -o all.db FILE...' makes one of them, "
                "or 'memprof report FILE --%s', a file at a time",
                option_infos[i].name, option_infos[i].name);
        if (!is_allowed)
            return cli_usage("report: --%s looks into one recording: 'memprof report FILE --%s', a file at a time",
                             option_infos[i].name, option_infos[i].name);
    }
    for (size_t i = 0; is_html(a) && i < sizeof not_html / sizeof *not_html; i++)
        if (a->given[not_html[i]])
            return cli_usage("report: --html writes one page of everything; leave out --%s",
                             option_infos[not_html[i]].name);
    if (a->given[OPTION_html] && !a->value[OPTION_html] && is_page_name(a->rest[a->rest_count - 1]))
        return cli_usage("report: '%s' would be read as a recording; to name the page: --html=%s",
                         a->rest[a->rest_count - 1], a->rest[a->rest_count - 1]);
    if (!is_html(a) && a->given[OPTION_open])
        return cli_usage("report: --open belongs to --html");
    return 0;
}

static int parse_sort(const char *text, int *sort)
{
    for (int i = 0; i < MANY_SORT_COUNT; i++)
        if (strcmp(many_sort_names[i], text) == 0) {
            *sort = i;
            return 0;
        }
    const char *near = near_name(text, many_sort_names, MANY_SORT_COUNT);
    if (near)
        return cli_usage("report: --sort '%s': did you mean '%s'?", text, near);
    return cli_usage("report: --sort '%s': not of several files; 'memprof report FILE FILE --sort help' lists what is",
                     text);
}

static int write_page(const struct arguments *a, struct many *many, struct error *err)
{
    struct many_page_options page = {
        .page_path = a->value[a->given[OPTION_html_output] ? OPTION_html_output : OPTION_html],
        .open = a->given[OPTION_open],
    };
    page.to_stdout = page.page_path && strcmp(page.page_path, "-") == 0;
    return many_page_write(many, &page, err);
}

int cli_report_many(const struct arguments *a)
{
    struct many_report report = {.sort = -1};
    struct report_out out;
    struct recordings list;
    struct many many = {.files = NULL};
    struct error err = {""};
    int status = cli_output(a, &out);
    if (status == 0)
        status = check_options(a);
    if (status == 0 && a->given[OPTION_sort] && strcmp(a->value[OPTION_sort], "help") == 0) {
        many_sort_list(&out);
        return cli_close_output(EXIT_OK);
    }
    if (status == 0 && a->given[OPTION_sort])
        status = parse_sort(a->value[OPTION_sort], &report.sort);
    if (status == 0)
        status = options_number(a, OPTION_top, 0, INT32_MAX, -1, &report.top);
    if (status)
        return status;
    int rc = recordings_find((const char *const *)a->rest, a->rest_count, &list, &err);
    const struct many_options options = {
        .device = a->value[OPTION_device], .lines = is_html(a) ? many_page_lines(list.count) : 1, .look = many_notes};
    if (rc == 0)
        rc = many_load(&list, reader_open_some, &options, &many, &err);
    if (rc == 0 && is_html(a))
        rc = write_page(a, &many, &err);
    else if (rc == 0)
        many_print(&many, &report, &out);
    status = rc == 0 ? EXIT_OK : rc == -EINVAL ? cli_usage("%s", err.text) : cli_fail(&err);
    many_free(&many);
    recordings_free(&list);
    return cli_close_output(status);
}
