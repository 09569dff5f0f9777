#include "range_run.h"

#include "../../common/array.h"
#include "../../common/buf.h"
#include "python_hook.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAID_MAX = 1 << 20, NAMES_SHOWN = 8, NAMES_MAX = 1000 };

extern const char profiler_collect_range_hook_py[];
extern const unsigned long profiler_collect_range_hook_py_length;

static int check_name(const char *function, struct error *err)
{
    const char *colon = strrchr(function, ':');
    int is_bad = !*function || colon == function || (colon && !colon[1]);
    for (const char *p = function; *p; p++)
        is_bad |= (unsigned char)*p <= ' ' || *p == 0x7f;
    if (is_bad)
        return error_set(err, EINVAL,
                         "--range '%.200s': expected FUNC of the program's own file, FILE.py:FUNC or "
                         "MODULE:FUNC",
                         function);
    return 0;
}

static int write_functions(const struct range_run *r, struct error *err)
{
    char *path = python_hook_path(r->directory, "functions");
    FILE *f = fopen(path, "w");
    int is_bad = !f;
    for (int i = 0; f && i < r->count; i++)
        is_bad |= fprintf(f, "%s\n", r->functions[i]) < 0;
    is_bad |= f && fclose(f);
    int rc = is_bad ? error_set(err, errno, "%s: %s", path, strerror(errno)) : 0;
    free(path);
    return rc;
}

int range_run_prepare(struct range_run *r, const char *const *functions, int count, struct error *err)
{
    *r = (struct range_run){.functions = functions, .count = count};
    for (int i = 0; i < count; i++)
        if (check_name(functions[i], err))
            return -EINVAL;
    const struct python_part part = {profiler_collect_range_hook_py, profiler_collect_range_hook_py_length};
    int rc = python_hook_prepare("range", &part, 1, "MEMPROF_RANGE", &r->directory, err);
    if (rc == 0)
        rc = write_functions(r, err);
    if (rc)
        range_run_close(r);
    return rc;
}

void range_run_close(struct range_run *r)
{
    python_hook_close(r->directory);
    r->directory = NULL;
}

/* --- what the processes said ------------------------------------------------------------------------------------- */

struct said {
    uint8_t is_found[RANGE_RUN_MAX];
    char *why[RANGE_RUN_MAX];
    char *names[NAMES_MAX]; /* of functions that there are */
    int name_count;
};

static void add_name(struct said *s, const char *name)
{
    for (int i = 0; i < s->name_count; i++)
        if (strcmp(s->names[i], name) == 0)
            return;
    if (s->name_count < NAMES_MAX)
        s->names[s->name_count++] = xstrdup(name);
}

/* "found 0", "refused 0 a generator", "has Net.forward", "failed KeyError: x": by whoever is in the directory. */
static void read_line(struct said *s, char *line)
{
    char *rest = strchr(line, ' '), *end;
    line[strcspn(line, "\n")] = 0;
    for (char *p = line; *p; p++)
        if (iscntrl((unsigned char)*p))
            *p = '?';
    if (!rest || !*rest++)
        return;
    if (strncmp(line, "has ", 4) == 0) {
        add_name(s, rest);
        return;
    }
    long number = strtol(rest, &end, 10);
    const int is_failed = strncmp(line, "failed ", 7) == 0;
    if (!is_failed && (end == rest || number < 0 || number >= RANGE_RUN_MAX))
        return;
    if (strncmp(line, "found ", 6) == 0)
        s->is_found[number] = 1;
    for (int i = 0; i < RANGE_RUN_MAX; i++)
        if ((is_failed || (i == number && strncmp(line, "refused ", 8) == 0)) && !s->why[i])
            s->why[i] = xstrdup(is_failed ? rest : *end ? end + 1 : end);
}

static void read_file(struct said *s, const char *path)
{
    FILE *f = fopen(path, "r");
    char line[1024];
    for (long bytes = 0; f && bytes < SAID_MAX && fgets(line, sizeof line, f); bytes += (long)strlen(line))
        read_line(s, line);
    if (f)
        fclose(f);
}

static void read_all(const struct range_run *r, struct said *s)
{
    DIR *d = opendir(r->directory);
    const struct dirent *entry;
    while (d && (entry = readdir(d))) {
        char *path =
            python_hook_number(entry->d_name, "said-", "") ? python_hook_path(r->directory, entry->d_name) : NULL;
        if (path)
            read_file(s, path);
        free(path);
    }
    if (d)
        closedir(d);
}

/* The function's own name, at the end of another qualified one. */
static int is_end_of(const char *name, const char *whole)
{
    size_t length = strlen(name), all = strlen(whole);
    return all > length && whole[all - length - 1] == '.' && strcmp(whole + all - length, name) == 0;
}

static void explain(const struct said *s, int i, const char *function, struct buf *text)
{
    const char *colon = strrchr(function, ':'), *name = colon ? colon + 1 : function;
    if (s->why[i]) {
        buf_printf(text, "%s", s->why[i]);
        return;
    }
    buf_puts(text, "no Python function of that name was loaded");
    for (int k = 0; k < s->name_count; k++)
        if (is_end_of(name, s->names[k])) {
            buf_printf(text, "; is it '%s'?", s->names[k]);
            return;
        }
    for (int k = 0; !colon && k < s->name_count && k < NAMES_SHOWN; k++)
        buf_printf(text, "%s%s", k ? ", " : "; the program's own file has ", s->names[k]);
    if (!colon && s->name_count > NAMES_SHOWN)
        buf_printf(text, " and %d more", s->name_count - NAMES_SHOWN);
}

void range_run_missing(const struct range_run *r, void (*tell)(const char *function, const char *why))
{
    struct said s = {.name_count = 0};
    read_all(r, &s);
    for (int i = 0; i < r->count; i++) {
        struct buf text = BUF(1 << 20);
        if (!s.is_found[i]) {
            explain(&s, i, r->functions[i], &text);
            tell(r->functions[i], buf_text(&text));
        }
        buf_free(&text);
    }
    for (int i = 0; i < RANGE_RUN_MAX; i++)
        free(s.why[i]);
    for (int i = 0; i < s.name_count; i++)
        free(s.names[i]);
}
