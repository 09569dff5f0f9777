/*
 * elfutils 0.188 loads libdebuginfod, and with it libcurl and 30 more libraries, whenever libdw is loaded: 4 ms for
 * every command of memprof. This dlopen stands before libc's and refuses exactly that load unless DEBUGINFOD_URLS is
 * set, which is also what later versions of elfutils ask before they do it.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

#ifndef IS_SANITIZED /* the sanitizers have a dlopen of their own */
__attribute__((visibility("default"))) void *dlopen(const char *file, int mode)
{
    static void *(*next)(const char *, int);
    const char *urls = getenv("DEBUGINFOD_URLS");
    if (file && strncmp(file, "libdebuginfod", 13) == 0 && !(urls && *urls))
        return NULL;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "dlopen");
    return next ? next(file, mode) : NULL;
}
#endif
