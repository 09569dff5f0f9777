#include "torch_run.h"

#include "python_hook.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char profiler_collect_torch_hook_py[];
extern const unsigned long profiler_collect_torch_hook_py_length;

int torch_run_prepare(struct torch_run *t, struct error *err)
{
    return python_hook_prepare("torch", profiler_collect_torch_hook_py, profiler_collect_torch_hook_py_length,
                               "MEMPROF_TORCH", &t->directory, err);
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
        long snapshot = python_hook_number(entry->d_name, "snapshot-", ".pickle"),
             failed = python_hook_number(entry->d_name, "error-", "");
        char *path = python_hook_path(t->directory, entry->d_name), problem[512];
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

void torch_run_close(struct torch_run *t)
{
    python_hook_close(t->directory);
    t->directory = NULL;
}
