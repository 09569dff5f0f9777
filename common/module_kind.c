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

/* Whether the text begins with one of so many names. */
static int begins_with(const char *text, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(text, names[i], strlen(names[i])) == 0)
            return 1;
    return 0;
}

int module_is_c_library(const char *path)
{
    static const char *const names[] = {"libc.so",   "libc-2",     "ld-linux",     "ld-2",       "ld64.so",
                                        "ld-musl",   "libpthread", "libdl.so",     "libdl-2",    "librt.so",
                                        "librt-2",   "libresolv",  "libnss_files", "libnss_dns", "libnss_compat",
                                        "libnss_db", "libanl.so"};
    return begins_with(last_part(path), names, sizeof names / sizeof *names);
}

int module_is_runtime(const char *path)
{
    static const char *const names[] = {"libstdc++.", "libm.so", "libgcc_s.", "libc++"};
    return module_is_c_library(path) || begins_with(last_part(path), names, sizeof names / sizeof *names);
}

int c_library_allocates_for_itself(const char *function)
{
    static const char *const names[] = {"allocate_stack", "allocate_thread_stack", "pthread_create", "__pthread_create",
                                        "allocate_dtv",   "_dl_allocate_tls",      "_dl_resize_dtv", "__tls_get_addr",
                                        "tls_get_addr",   "allocate_and_init",     "update_get_addr"};
    return begins_with(function, names, sizeof names / sizeof *names);
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
            return !module_is_python_package(end);
    }
    return 0;
}

int module_is_python_package(const char *path)
{
    return strstr(path, "/site-packages/") || strstr(path, "/dist-packages/");
}

int module_is_gpu_vendor(const char *path)
{
    static const char *const names[] = {
        "libcuda.",      "libcudart.",       "libcudadebugger.", "libcudnn",  "libcublas",  "libcufft", "libcufile",
        "libcurand",     "libcusolver",      "libcusparse",      "libcupti",  "libnvidia-", "libnvrtc", "libnvJitLink",
        "libnvToolsExt", "libnvptxcompiler", "libnvvm",          "libnvjpeg", "libnpp"};
    return begins_with(last_part(path), names, sizeof names / sizeof *names);
}

int module_is_system_library(const char *path)
{
    static const char *const places[] = {"/usr/lib", "/lib"};
    return begins_with(path, places, sizeof places / sizeof *places) && strstr(path, ".so");
}
