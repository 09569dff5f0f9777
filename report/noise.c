#include "noise.h"

#include "text.h"

#include <fnmatch.h>
#include <string.h>

/* The C library, the loader, the C++ library. */
static int is_runtime(const struct walk_frame *f)
{
    static const char *const names[] = {"libc.so",  "libc-2",     "ld-linux", "ld-2",      "ld-musl", "libpthread",
                                        "libdl.so", "libstdc++.", "libm.so",  "libgcc_s.", "libc++.", "libc++abi."};
    const char *name = f->module ? text_basename(f->module) : "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return 1;
    return 0;
}

/* Functions of the C library that keep what they allocate for good: buffers of streams (the stream itself is the
 * caller's), locales and translations, tables of conversions, time zones and name services, handlers of exit. What a
 * caller has to give back (fopen, newlocale, iconv_open, dlopen) is none of them. */
static int is_once(const char *name)
{
    static const char *const names[] = {"*_IO_file_doallocate",
                                        "*_IO_wfile_doallocate",
                                        "_nl_*",
                                        "setlocale",
                                        "read_alias_file",
                                        "extend_alias_table",
                                        "new_composite_name",
                                        "*textdomain*",
                                        "__gconv_read_conf",
                                        "__gconv_load_cache",
                                        "__wcsmbs_load_conv",
                                        "tzset_internal",
                                        "__tzset*",
                                        "__tzstring*",
                                        "__tzfile_*",
                                        "__nss_*",
                                        "nss_*",
                                        "global_state_allocate",
                                        "__new_exitfn",
                                        "*dlerror_run"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (fnmatch(names[i], name, 0) == 0)
            return 1;
    return 0;
}

int noise_is_library(const struct walk_stack *stack)
{
    int once = 0, i;
    for (i = 0; i < stack->count; i++) {
        const struct walk_frame *f = stack->frames[i];
        if (f->is_allocator)
            continue;
        if (!is_runtime(f))
            break;
        once |= f->plain_name && is_once(f->plain_name);
    }
    /* nothing but these libraries, and all the way up: before main() */
    int is_start = stack->count > 0 && i == stack->count && !stack->is_cut && !stack->is_unknown;
    return is_start || (once && i > 0);
}
