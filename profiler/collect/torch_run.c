#include "torch_run.h"

#include "../../common/buf.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const char profiler_collect_torch_hook_py[];
extern const unsigned long profiler_collect_torch_hook_py_length;

static char *join(const char *directory, const char *name)
{
    struct buf path = BUF(2 * PATH_MAX);
    buf_printf(&path, "%s/%s", directory, name);
    return path.data;
}

static int write_hook(const char *directory, struct error *err)
{
    char *path = join(directory, "sitecustomize.py");
    FILE *f = fopen(path, "w");
    int rc = 0;
    if (!f || fwrite(profiler_collect_torch_hook_py, 1, profiler_collect_torch_hook_py_length, f) !=
                  profiler_collect_torch_hook_py_length)
        rc = error_set(err, errno, "%s: %s", path, strerror(errno));
    if (f && fclose(f) && rc == 0)
        rc = error_set(err, errno, "%s: %s", path, strerror(errno));
    free(path);
    return rc;
}

int torch_run_prepare(struct torch_run *t, struct error *err)
{
    const char *parent = getenv("TMPDIR"), *before = getenv("PYTHONPATH");
    char *directory = join(parent && *parent ? parent : "/tmp", "memprof-torch-XXXXXX");
    struct buf path = BUF(1 << 20);
    if (!mkdtemp(directory)) {
        int rc = error_set(err, errno, "%s: %s; TMPDIR says where temporary files go", directory, strerror(errno));
        free(directory);
        return rc;
    }
    t->directory = directory;
    buf_printf(&path, "%s%s%s", directory, before && *before ? ":" : "", before ? before : "");
    int rc = write_hook(directory, err);
    if (rc == 0 && (setenv("PYTHONPATH", path.data, 1) || setenv("MEMPROF_TORCH", directory, 1)))
        rc = error_set(err, errno, "the environment: %s", strerror(errno));
    buf_free(&path);
    if (rc)
        torch_run_close(t);
    return rc;
}

/* The number in PREFIXnSUFFIX; 0: another name. */
static long number_in(const char *name, const char *prefix, const char *suffix)
{
    char *end;
    size_t n = strlen(prefix);
    long number = strncmp(name, prefix, n) == 0 ? strtol(name + n, &end, 10) : 0;
    return number > 0 && strcmp(end, suffix) == 0 ? number : 0;
}

static void read_problem(const char *path, char text[512])
{
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, 511, f) : 0;
    text[n] = 0;
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
    if (f)
        fclose(f);
}

void torch_run_each(const struct torch_run *t,
                    void (*visit)(void *context, long pid, const char *path, const char *problem), void *context)
{
    DIR *d = t->directory ? opendir(t->directory) : NULL;
    const struct dirent *entry;
    while (d && (entry = readdir(d))) {
        long snapshot = number_in(entry->d_name, "snapshot-", ".pickle"),
             failed = number_in(entry->d_name, "error-", "");
        char *path = join(t->directory, entry->d_name), problem[512];
        if (snapshot) {
            visit(context, snapshot, path, NULL);
        } else if (failed) {
            read_problem(path, problem);
            visit(context, failed, NULL, problem);
        }
        free(path);
    }
    if (d)
        closedir(d);
}

static void remove_inside(const char *directory, int depth)
{
    DIR *d = opendir(directory);
    const struct dirent *entry;
    while (d && (entry = readdir(d))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *path = join(directory, entry->d_name);
        if (unlink(path) && depth > 0) { /* __pycache__ */
            remove_inside(path, depth - 1);
            rmdir(path);
        }
        free(path);
    }
    if (d)
        closedir(d);
}

void torch_run_close(struct torch_run *t)
{
    if (!t->directory)
        return;
    remove_inside(t->directory, 1);
    rmdir(t->directory);
    free(t->directory);
    t->directory = NULL;
}
