#include "cli.h"

#include "../common/buf.h"
#include "../common/build.h"
#include "../common/units.h"
#include "../common/wallclock.h"
#include "../report/text/report.h"

#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

char *cli_library(struct error *err)
{
    static const char *const beside[] = {"/", "/../lib/memprof/", NULL};
    char self[PATH_MAX], tried[2 * PATH_MAX], absolute[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        if (beside[i])
            snprintf(tried, sizeof tried, "%s%slibmemprof.so", self, beside[i]);
        else
            snprintf(tried, sizeof tried, "%s/libmemprof.so", build_library_dir);
        if (!realpath(tried, absolute))
            continue;
        /* the dynamic loader separates the paths in LD_PRELOAD at these */
        if (strpbrk(absolute, " :\t\n")) {
            error_set(err, EINVAL,
                      "%s: LD_PRELOAD cannot name a path with spaces or colons; move memprof to another directory",
                      absolute);
            return NULL;
        }
        return xstrdup(absolute);
    }
    error_set(err, ENOENT,
              "libmemprof.so: not beside %s/memprof, in ../lib/memprof or in %s; run 'make' or 'make install'", self,
              build_library_dir);
    return NULL;
}

char *cli_python_path(struct error *err)
{
    struct buf path = BUF(2 * PATH_MAX);
    char *library = cli_library(err);
    if (!library)
        return NULL;
    buf_printf(&path, "%.*s/python", (int)(strrchr(library, '/') - library), library);
    free(library);
    char *directory = buf_take(&path);
    if (access(directory, R_OK | X_OK) == 0)
        return directory;
    error_set(err, errno, "%s: %s; 'make' or 'make install' puts the Python module there", directory, strerror(errno));
    free(directory);
    return NULL;
}

char *cli_options_text(const struct arguments *a)
{
    struct buf text = BUF(1 << 16);
    for (int i = 0; i < a->use_count; i++) {
        buf_printf(&text, "%s--%s", i ? " " : "", option_infos[a->use[i].id].name);
        if (a->use[i].value) {
            buf_putc(&text, '=');
            buf_shell(&text, a->use[i].value);
        }
    }
    return buf_take(&text);
}

const char *cli_file(const struct arguments *a)
{
    if (a->rest_count > 1) {
        cli_usage("%s: one FILE at a time, not also '%s'", command_infos[a->command].name, a->rest[1]);
        return NULL;
    }
    return a->rest_count ? a->rest[0] : "out.db";
}

static int terminal_width(void)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    int width = columns ? atoi(columns) : 0;
    if (width <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        width = size.ws_col;
    if (width <= 0)
        width = 80;
    return width < 40 ? 40 : width > 1000 ? 1000 : width;
}

int cli_output(const struct arguments *a, struct report_out *out)
{
    int terminal = isatty(STDOUT_FILENO);
    enum { COLOR_AUTO, COLOR_ALWAYS }; /* as values.def has them */
    int color = COLOR_AUTO;
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    *out = (struct report_out){.file = stdout};
    if (a->given[OPTION_json] && a->given[OPTION_csv])
        return cli_usage("%s: --json and --csv exclude each other", command_infos[a->command].name);
    out->format = a->given[OPTION_json] ? REPORT_JSON : a->given[OPTION_csv] ? REPORT_CSV : REPORT_TEXT;
    out->width = terminal ? terminal_width() : 0;
    out->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    if (options_choose(a, OPTION_color, &color))
        return EXIT_USAGE;
    out->color = color == COLOR_ALWAYS ||
                 (color == COLOR_AUTO && terminal && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0);
    return 0;
}

int cli_lens(const struct arguments *a, struct lens_options *lens)
{
    const char *command = command_infos[a->command].name;
    *lens = (struct lens_options){0};
    if (a->given[OPTION_native] && a->given[OPTION_python_only])
        return cli_usage("%s: --native and --python-only exclude each other", command);
    lens->language = a->given[OPTION_native] ? TREE_NATIVE : a->given[OPTION_python_only] ? TREE_PYTHON : TREE_BOTH;
    for (int i = 0; i < a->use_count; i++) {
        if (a->use[i].id != OPTION_skip)
            continue;
        if (!*a->use[i].value)
            return cli_usage("%s: --skip '': expected the name of a function", command);
        if (lens->skip_count == LENS_SKIPS_MAX)
            return cli_usage("%s: more than %d --skip; use a pattern such as 'xm*alloc'", command, LENS_SKIPS_MAX);
        lens->skips[lens->skip_count++] = a->use[i].value;
    }
    return options_number(a, OPTION_process, 1, INT32_MAX, 0, &lens->pid);
}

int cli_close_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    cli_note("standard output: %s", strerror(errno ? errno : EIO));
    return status ? status : EXIT_FAILED;
}

int cli_at(const struct arguments *a, const char *command, struct report_options *o)
{
    enum { AT_PEAK }; /* as values.def has them; the others are the end */
    const char *text = a->value[OPTION_at];
    const int word = options_word(OPTION_at, text);
    if (word >= 0) { /* that something is recorded now, cli_at_mark looks */
        o->at = word == AT_PEAK ? REPORT_AT_PEAK : REPORT_AT_END;
    } else if (strncmp(text, "mark:", 5) == 0 || wallclock_is(text)) {
        o->at = REPORT_AT_TIME; /* at_ns comes with cli_at_mark */
    } else {
        o->at = REPORT_AT_TIME;
        if (units_parse_ns(text, &o->at_ns))
            return cli_usage("%s: --at '%s': expected peak, end, now, mark:NAME, or a time since the start such as "
                             "1.5s, 300ms or 2m, "
                             "or of day such as 14:03:10",
                             command, text);
    }
    return 0;
}

void cli_show_progress(void *context, int percent)
{
    (void)context;
    if (percent < 100)
        fprintf(stderr, "\rmemprof: reading events, %d%% \x1b[K", percent);
    else
        fputs("\r\x1b[K", stderr);
    fflush(stderr);
}
