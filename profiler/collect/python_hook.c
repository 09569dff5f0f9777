#include "python_hook.h"

#include "../../common/buf.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const char profiler_collect_python_next_py[];
extern const unsigned long profiler_collect_python_next_py_length;

char *python_hook_path(const char *directory, const char *name)
{
    struct buf path = BUF(2 * PATH_MAX);
    buf_printf(&path, "%s/%s", directory, name);
    return path.data;
}

static int write_hook(const char *directory, const struct python_part *parts, int count, struct error *err)
{
    char *path = python_hook_path(directory, "sitecustomize.py");
    FILE *f = fopen(path, "w");
    int rc = 0, is_bad = !f;
    for (int i = 0; f && i < count; i++)
        is_bad |= fwrite(parts[i].text, 1, parts[i].length, f) != parts[i].length;
    if (is_bad || fwrite(profiler_collect_python_next_py, 1, profiler_collect_python_next_py_length, f) !=
                      profiler_collect_python_next_py_length)
        rc = error_set(err, errno, "%s: %s", path, strerror(errno));
    if (f && fclose(f) && rc == 0)
        rc = error_set(err, errno, "%s: %s", path, strerror(errno));
    free(path);
    return rc;
}

int python_hook_prepare(const char *word, const struct python_part *parts, int count, const char *variable,
                        char **result, struct error *err)
{
    const char *parent = getenv("TMPDIR"), *before = getenv("PYTHONPATH");
    struct buf name = BUF(2 * PATH_MAX), path = BUF(1 << 20);
    *result = NULL;
    buf_printf(&name, "%s/memprof-%s-XXXXXX", parent && *parent ? parent : "/tmp", word);
    char *directory = buf_take(&name);
    if (!mkdtemp(directory)) {
        int rc = error_set(err, errno, "%s: %s; TMPDIR says where temporary files go", directory, strerror(errno));
        free(directory);
        return rc;
    }
    buf_printf(&path, "%s%s%s", directory, before && *before ? ":" : "", before ? before : "");
    int rc = write_hook(directory, parts, count, err);
    if (rc == 0 && (setenv("PYTHONPATH", path.data, 1) || setenv(variable, directory, 1)))
        rc = error_set(err, errno, "the environment: %s", strerror(errno));
    buf_free(&path);
    if (rc)
        python_hook_close(directory);
    else
        *result = directory;
    return rc;
}

long python_hook_number(const char *name, const char *prefix, const char *suffix)
{
    char *end;
    size_t n = strlen(prefix);
    long number = strncmp(name, prefix, n) == 0 ? strtol(name + n, &end, 10) : 0;
    return number > 0 && strcmp(end, suffix) == 0 ? number : 0;
}

static void remove_inside(const char *directory, int depth)
{
    DIR *d = opendir(directory);
    const struct dirent *entry;
    while (d && (entry = readdir(d))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *path = python_hook_path(directory, entry->d_name);
        if (unlink(path) && depth > 0) { /* __pycache__ */
            remove_inside(path, depth - 1);
            rmdir(path);
        }
        free(path);
    }
    if (d)
        closedir(d);
}

void python_hook_close(char *directory)
{
    if (!directory)
        return;
    remove_inside(directory, 1);
    rmdir(directory);
    free(directory);
}
