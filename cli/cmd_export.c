#include "cli.h"

#include "../common/buf.h"
#include "../common/db.h"
#include "../common/near.h"
#include "../common/replace.h"
#include "../common/units.h"
#include "../report/export/export.h"

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

/* --from, --to, --during: one part of the run. */
static int choose_window(const struct arguments *a, sqlite3 *db, struct export_options *options, struct error *err)
{
    struct lens_options lens = {.window = NULL};
    struct cli_window window;
    char *import = cli_has_window(a) ? db_meta_text(db, "imported_from") : NULL;
    int rc = cli_window_open(a, db, &lens, &window, err);
    if (rc == 0 && import)
        rc = error_set(err, EINVAL, "an imported snapshot is exported whole; leave out --from, --to and --during");
    else if (rc == 0 && window.lens.count > 1)
        rc = error_set(err, EINVAL, "an export is of one range; say which one of %s, such as %s#1", window.name,
                       window.name);
    else if (rc == 0 && lens.window) {
        options->has_window = 1;
        options->from_ns = window.ranges[0].from_ns;
        options->to_ns = window.ranges[0].to_ns;
    }
    cli_window_close(&window);
    free(import);
    return rc;
}

int cmd_export(const struct arguments *a)
{
    struct error err = {""};
    struct export_result result = {.item = ""};
    struct export_options options = {.device = a->value[OPTION_device]};
    sqlite3 *db = NULL;
    if (a->given[OPTION_format] && strcmp(a->value[OPTION_format], "help") == 0)
        return list_formats();
    const char *file = cli_file(a);
    const struct export_format *format = file ? format_of(a) : NULL;
    if (!format || options_number(a, OPTION_export_max_events, 1, INT64_MAX, 0, &options.max_events) ||
        options_number(a, OPTION_min_size, 1, INT64_MAX, 0, &options.min_size_bytes))
        return EXIT_USAGE;
    char *path =
        a->given[OPTION_export_output] ? xstrdup(a->value[OPTION_export_output]) : db_path_with(file, format->suffix);
    int to_stdout = strcmp(path, "-") == 0;
    if (!to_stdout && db_same_file(file, path)) {
        int status = cli_usage("%s: is the recording itself; give the export another name with -o", path);
        free(path);
        return status;
    }
    int rc = reader_open(file, &db, &err);
    if (rc == 0 && !to_stdout)
        rc = db_check_replaced(path, &err);
    if (rc == 0)
        rc = choose_window(a, db, &options, &err);
    if (rc == 0 && to_stdout)
        rc = write_stream(format, db, &options, stdout, &result, &err);
    else if (rc == 0)
        rc = write_path(format, db, &options, path, &result, &err);
    sqlite3_close(db);
    if (rc == 0 && !to_stdout)
        say(path, &result);
    if (rc == 0)
        say_notes(result.note);
    free(path);
    return rc == 0 ? EXIT_OK : rc == -EINVAL && db ? cli_usage("%s", err.text) : cli_fail(&err);
}
