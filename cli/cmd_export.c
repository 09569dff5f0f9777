#include "cli.h"

#include "../common/buf.h"
#include "../common/db.h"
#include "../common/near.h"
#include "../common/replace.h"
#include "../common/units.h"
#include "../report/export/export.h"
#include "../report/query/estimate.h"
#include "../report/query/stat.h"
#include "../report/text/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct export_format *format_of(const struct arguments *a)
{
    struct buf names = BUF(1 << 12);
    const char *list[64];
    const struct export_format *format = a->given[OPTION_format] ? export_find(a->value[OPTION_format]) : NULL;
    for (int i = 0; i < export_format_count && i < 64; i++) {
        buf_printf(&names, "%s%s", i ? ", " : "", export_formats[i].name);
        list[i] = export_formats[i].name;
    }
    if (!format && !a->given[OPTION_format]) {
        cli_usage("export: no format given; --format is one of: %s", names.data);
    } else if (!format) {
        const char *near = near_name(a->value[OPTION_format], list, export_format_count);
        if (near)
            cli_usage("export: --format '%s': did you mean '%s'?", a->value[OPTION_format], near);
        else
            cli_usage("export: --format '%s': expected one of: %s", a->value[OPTION_format], names.data);
    }
    buf_free(&names);
    return format;
}

static int list_formats(void)
{
    for (int i = 0; i < export_format_count; i++)
        printf("%-16s %s\n", export_formats[i].name, export_formats[i].text);
    return cli_close_output(EXIT_OK);
}

static int write_stream(const struct export_format *format, sqlite3 *db, const struct export_options *options,
                        FILE *out, struct export_result *result, struct error *err)
{
    int rc = format->write(db, options, out, result, err);
    if (fflush(out) || ferror(out)) {
        if (rc == 0)
            rc = error_set(err, errno ? errno : EIO, "writing the export: %s", strerror(errno ? errno : EIO));
    }
    return rc;
}

static int write_path(const struct export_format *format, sqlite3 *db, const struct export_options *options,
                      const char *path, struct export_result *result, struct error *err)
{
    struct replace file;
    struct error why;
    int rc = replace_open(&file, path, &why);
    if (rc)
        return error_set(err, -rc, "%s; choose another place with -o", why.text);
    return replace_close(&file, write_stream(format, db, options, file.out, result, err), err);
}

static void say_notes(char *notes)
{
    for (char *rest, *line = strtok_r(notes, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        cli_note("%s", line);
}

static void say(const char *path, const struct export_result *result)
{
    struct stat st = {0};
    char count[UNITS_TEXT], size[UNITS_TEXT];
    stat(path, &st);
    cli_note("%s %s written to %s (%s)", units_count(count, result->item_count), result->item, path,
             units_bytes(size, st.st_size));
}

/* --- what is chosen --- */

static const struct {
    enum option_id id;
    unsigned takes;
} choices[] = {{OPTION_at, EXPORT_TAKES_AT},
               {OPTION_from, EXPORT_TAKES_WINDOW},
               {OPTION_to, EXPORT_TAKES_WINDOW},
               {OPTION_during, EXPORT_TAKES_WINDOW},
               {OPTION_device, EXPORT_TAKES_DEVICE},
               {OPTION_kind, EXPORT_TAKES_KIND},
               {OPTION_process, EXPORT_TAKES_PROCESS},
               {OPTION_skip, EXPORT_TAKES_FRAMES | EXPORT_TAKES_OWN_FRAMES},
               {OPTION_native, EXPORT_TAKES_FRAMES | EXPORT_TAKES_OWN_FRAMES},
               {OPTION_python_only, EXPORT_TAKES_FRAMES | EXPORT_TAKES_OWN_FRAMES},
               {OPTION_all_frames, EXPORT_TAKES_FRAMES},
               {OPTION_min_size, EXPORT_TAKES_MIN_SIZE},
               {OPTION_stat, EXPORT_TAKES_STAT},
               {OPTION_commit, EXPORT_TAKES_COMMIT},
               {OPTION_export_max_events, EXPORT_TAKES_MAX_EVENTS}};

static int check_takes(const struct arguments *a, const struct export_format *format)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (a->given[choices[i].id] && !(format->takes & choices[i].takes))
            return cli_usage("export: --format %s does not go with --%s; leave that out", format->name,
                             option_infos[choices[i].id].name);
    return 0;
}

static int parse_stat(const struct arguments *a, struct export_options *options)
{
    options->stat = -1;
    if (cli_stat(a, &options->stat))
        return EXIT_USAGE;
    const struct stat_info *info = options->stat >= 0 ? &stat_infos[options->stat] : NULL;
    if (info && (info->how == STAT_PER || info->combine != STAT_COMBINE_sum))
        return cli_usage("export: --stat %s: its values do not add up, as those of stacks must; 'memprof report --by "
                         "stack --sort %s' lists them",
                         info->name, info->name);
    if (info && a->given[OPTION_at])
        return cli_usage("export: --at says what was live then; leave out --stat");
    return 0;
}

/* Of --at, what is not known before the recording is open is still to come. */
static int parse(const struct arguments *a, const struct export_format *format, struct export_options *options,
                 struct report_options *at)
{
    static const enum export_at instants[] = {[REPORT_AT_ALL] = EXPORT_AT_ALL,
                                              [REPORT_AT_PEAK] = EXPORT_AT_PEAK,
                                              [REPORT_AT_END] = EXPORT_AT_END,
                                              [REPORT_AT_TIME] = EXPORT_AT_TIME};
    if (check_takes(a, format) || cli_lens(a, options->lens) || parse_stat(a, options) ||
        (a->given[OPTION_at] && cli_at(a, "export", at)) ||
        options_number(a, OPTION_export_max_events, 1, INT64_MAX, 0, &options->max_events) ||
        options_number(a, OPTION_min_size, 1, INT64_MAX, 0, &options->min_size_bytes))
        return EXIT_USAGE;
    options->at = instants[at->at];
    options->lens->is_of_sites = 1;
    options->all_frames = a->given[OPTION_all_frames];
    if (a->given[OPTION_at] && cli_has_window(a) && !(format->takes & EXPORT_TAKES_RANGES))
        return cli_usage("export: --format %s: --at is all up to an instant, and --from, --to and --during are a "
                         "window; choose one",
                         format->name);
    if (options->at == EXPORT_AT_TIME && cli_has_window(a))
        return cli_usage("export: --at TIME is an instant and --from, --to and --during are a window; choose one");
    return 0;
}

/* Of a format of one part of the run --at is all up to then, whose end shows what is live there. */
static struct arguments at_as_window(const struct arguments *a, int is_one)
{
    struct arguments as = *a;
    if (is_one && a->given[OPTION_at] && !cli_has_window(a)) {
        as.given[OPTION_to] = 1;
        as.value[OPTION_to] = strcmp(a->value[OPTION_at], "now") == 0 ? "end" : a->value[OPTION_at];
    }
    return as;
}

/* --from, --to, --during: one part of the run, or where the format takes it several. */
static int choose_window(const struct arguments *a, sqlite3 *db, const struct export_format *format,
                         struct export_options *options, struct cli_window *window, struct error *err)
{
    const int is_one = !(format->takes & EXPORT_TAKES_RANGES);
    const struct arguments as = at_as_window(a, is_one);
    char *import = cli_has_window(&as) && is_one ? db_meta_text(db, "imported_from") : NULL;
    int rc = cli_window_open(&as, db, options->lens, window, err);
    window->lens.is_self_only = 1;
    if (rc == 0 && import)
        rc =
            error_set(err, EINVAL, "an imported snapshot is exported whole; leave out --at, --from, --to and --during");
    else if (rc == 0 && is_one && window->lens.count > 1)
        rc = error_set(err, EINVAL, "an export is of one range; say which one of %s, such as %s#1", window->name,
                       window->name);
    else if (rc == 0 && options->lens->window) {
        options->has_window = 1;
        options->from_ns = window->ranges[0].from_ns;
        options->to_ns = window->ranges[window->lens.count - 1].to_ns;
    }
    free(import);
    return rc;
}

/* --commit, else what the systems that build and test say of the job that this runs in; NULL: neither. */
static const char *commit_of(const struct arguments *a)
{
    static const char *const names[] = {"GITHUB_SHA",       "CI_COMMIT_SHA", "GIT_COMMIT",
                                        "BUILDKITE_COMMIT", "CIRCLE_SHA1",   "BUILD_SOURCEVERSION"};
    if (a->given[OPTION_commit])
        return a->value[OPTION_commit];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return value;
    }
    return NULL;
}

/* --- all --- */

/* Where it goes; NULL after a message. */
static char *output_path(const struct arguments *a, const struct export_format *format, const char *file)
{
    char *path =
        a->given[OPTION_export_output] ? xstrdup(a->value[OPTION_export_output]) : db_path_with(file, format->suffix);
    if (strcmp(path, "-") == 0 || !db_same_file(file, path))
        return path;
    cli_usage("%s: is the recording itself; give the export another name with -o", path);
    free(path);
    return NULL;
}

/* Of the recording that is open. */
static int export_to(const struct arguments *a, sqlite3 *db, const struct export_format *format,
                     struct export_options *options, struct report_options *at, const char *path, struct error *err)
{
    struct export_result result = {.item = ""};
    struct cli_window window = {.ranges = NULL};
    const int to_stdout = strcmp(path, "-") == 0;
    int rc = to_stdout ? 0 : db_check_replaced(path, err);
    if (rc == 0)
        rc = cli_at_mark(a, db, at, err);
    options->at_ns = at->at_ns;
    if (rc == 0)
        rc = choose_window(a, db, format, options, &window, err);
    if (rc == 0 && to_stdout)
        rc = write_stream(format, db, options, stdout, &result, err);
    else if (rc == 0)
        rc = write_path(format, db, options, path, &result, err);
    cli_window_close(&window);
    if (rc == 0 && !to_stdout)
        say(path, &result);
    if (rc == 0)
        say_notes(result.note);
    if (rc == 0 && estimate_mean_bytes(db))
        cli_note("the recording is sampled: what is exported of the heap are estimates, without their errors, which "
                 "'memprof report' shows");
    return rc;
}

int cmd_export(const struct arguments *a)
{
    struct error err = {""};
    struct lens_options lens;
    struct export_options options = {.device = a->value[OPTION_device], .kind = a->value[OPTION_kind], .lens = &lens};
    struct report_options at = {.at = REPORT_AT_ALL};
    struct report_out out = {.file = stdout};
    sqlite3 *db = NULL;
    if (a->given[OPTION_format] && strcmp(a->value[OPTION_format], "help") == 0)
        return list_formats();
    if (cli_stat_help(a, &out))
        return cli_close_output(EXIT_OK);
    const char *file = cli_file(a);
    const struct export_format *format = file ? format_of(a) : NULL;
    if (!format || parse(a, format, &options, &at))
        return EXIT_USAGE;
    options.file = file;
    options.commit = commit_of(a);
    char *path = output_path(a, format, file);
    if (!path)
        return EXIT_USAGE;
    int rc = reader_open_still(file, &db, &err);
    if (rc == 0)
        rc = export_to(a, db, format, &options, &at, path, &err);
    sqlite3_close(db);
    free(path);
    return rc == 0 ? EXIT_OK : rc == -EINVAL && db ? cli_usage("%s", err.text) : cli_fail(&err);
}
