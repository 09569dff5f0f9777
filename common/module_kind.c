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
