#include "torch_run.h"

#include "python_hook.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char profiler_collect_torch_hook_py[];
extern const unsigned long profiler_collect_torch_hook_py_length;
extern const char profiler_collect_names_hook_py[];
extern const unsigned long profiler_collect_names_hook_py_length;
extern const char profiler_collect_torch_wait_py[];
extern const unsigned long profiler_collect_torch_wait_py_length;

int torch_run_prepare(struct torch_run *t, struct error *err)
{
    const struct python_part parts[] = {{profiler_collect_torch_hook_py, profiler_collect_torch_hook_py_length},
                                        {profiler_collect_torch_wait_py, profiler_collect_torch_wait_py_length}};
    return python_hook_prepare("torch", parts, 2, "MEMPROF_TORCH", &t->directory, err);
}

int torch_run_prepare_names(struct torch_run *t, struct error *err)
{
    const struct python_part parts[] = {{profiler_collect_names_hook_py, profiler_collect_names_hook_py_length},
                                        {profiler_collect_torch_wait_py, profiler_collect_torch_wait_py_length}};
    return python_hook_prepare("names", parts, 2, "MEMPROF_NAMES", &t->directory, err);
}

static void read_text(const char *path, char text[512])
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
            read_text(path, problem);
            visit(context, failed, NULL, problem);
        }
        free(path);
    }
    if (d)
        closedir(d);
}

static int reads(const struct torch_run *t, const char *prefix, char text[512], int (*is_wanted)(const char *text))
{
    DIR *d = opendir(t->directory);
    const struct dirent *entry;
    int count = 0, is_found = 0;
    while (d && !is_found && (entry = readdir(d))) {
        if (!python_hook_number(entry->d_name, prefix, ""))
            continue;
        char *path = python_hook_path(t->directory, entry->d_name);
        read_text(path, text);
        is_found = is_wanted(text);
        free(path);
        count++;
    }
    if (d)
        closedir(d);
    return is_found ? -1 : count;
}

static int is_some(const char *text)
{
    return strtol(text, NULL, 10) > 0;
}

static int is_any(const char *text)
{
    (void)text;
    return 1;
}

void torch_run_unnamed(const struct torch_run *t, void (*tell)(const char *why))
{
    char text[512];
    if (reads(t, "error-", text, is_any) < 0) {
        tell(text);
        return;
    }
    const int count = reads(t, "named-", text, is_some);
    if (count >= 0)
        tell(count ? "no torch.nn.Module was found with tensors that have memory" : "no process imported torch");
}

void torch_run_close(struct torch_run *t)
{
    python_hook_close(t->directory);
    t->directory = NULL;
}
