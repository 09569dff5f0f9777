#include "noise.h"

#include "../../common/module_kind.h"

#include <fnmatch.h>
#include <string.h>

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
        if (!f->module || !module_is_runtime(f->module))
            break;
        once |= f->plain_name && is_once(f->plain_name);
    }
    /* nothing but these libraries, and all the way up: before main() */
    int is_start = stack->count > 0 && i == stack->count && !stack->is_cut && !stack->is_unknown;
    return is_start || (once && i > 0);
}
