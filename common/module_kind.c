#include "module_kind.h"

#include <stddef.h>
#include <string.h>

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int module_is_ours(const char *path)
{
    return strcmp(last_part(path), "libmemprof.so") == 0;
}

int module_is_runtime(const char *path)
{
    static const char *const names[] = {"libc.so",  "libc-2",     "ld-linux", "ld-2",      "ld-musl", "libpthread",
                                        "libdl.so", "libstdc++.", "libm.so",  "libgcc_s.", "libc++"};
    const char *name = last_part(path);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return 1;
    return 0;
}

int module_is_python(const char *path)
{
    if (strstr(path, "/lib-dynload/"))
        return 1;
    const char *name = last_part(path);
    name += strncmp(name, "lib", 3) == 0 ? 3 : 0;
    if (strncmp(name, "python", 6) != 0)
        return 0;
    name += 6 + strspn(name + 6, "0123456789.dmt"); /* python3.11, libpython3.13t.so.1.0 */
    return !*name || strncmp(name, "so", 2) == 0 || strcmp(name, "-dbg") == 0;
}

int module_is_python_library(const char *file)
{
    if (strncmp(file, "<frozen ", 8) == 0)
        return 1;
    for (const char *at = file; (at = strstr(at, "/lib"));
         at++) { /* lib/python3.11, lib64/python3.9, lib/python311.zip */
        const char *name = at + 4 + (strncmp(at + 4, "64", 2) == 0 ? 2 : 0);
        if (strncmp(name, "/python", 7) != 0)
            continue;
        const char *end = name + 7 + strspn(name + 7, "0123456789.");
        if (end > name + 7 && (*end == '/' || strncmp(end, "zip/", 4) == 0))
            return !strstr(end, "/site-packages/") && !strstr(end, "/dist-packages/");
    }
    return 0;
}
