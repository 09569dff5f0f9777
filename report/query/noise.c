#include "noise.h"

#include "../../common/module_kind.h"

#include <string.h>

/* A name, with a * before or behind it for anything: fnmatch would ask the locale about each character. */
static int is_like(const char *pattern, const char *name)
{
    size_t length = strlen(pattern), size = strlen(name);
    int before = *pattern == '*', behind = length > 1 && pattern[length - 1] == '*';
    const char *text = pattern + before;
    length -= (size_t)(before + behind);
    if (size < length)
        return 0;
    if (before && behind)
        return memmem(name, size, text, length) != NULL;
    return (behind || before || size == length) && memcmp(before ? name + size - length : name, text, length) == 0;
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
        if (is_like(names[i], name))
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

static int is_interpreters_own(const struct walk_frame *f)
{
    return f->is_allocator || (f->module && (module_is_runtime(f->module) || module_is_python(f->module)));
}

static int is_interned(const struct walk_frame *f)
{
    static const char *const names[] = {"*PyUnicode_Intern*", "PyType_Ready", "_PyStaticType_Init*",
                                        "_PyCode_InitOpcache"};
    for (size_t i = 0; f->function && i < sizeof names / sizeof *names; i++)
        if (is_like(names[i], f->function))
            return 1;
    return 0;
}

/* The Python frames from number i on outwards: whether an import runs them, and no code but the standard library's lies
 * between. */
static int is_import(const struct walk_stack *stack, int i)
{
    for (; i < stack->count; i++) {
        const struct walk_frame *f = stack->frames[i];
        if (!f->is_python)
            continue;
        if (!f->file || !module_is_python_library(f->file))
            return 0;
        if (strncmp(f->file, "<frozen ", 8) == 0)
            return 1;
    }
    return 0;
}

static int is_start_up(const struct walk_stack *stack)
{
    for (int i = 0; i < stack->count; i++)
        if (stack->frames[i]->function && strncmp(stack->frames[i]->function, "Py_Initialize", 13) == 0)
            return 1;
    return 0;
}

int noise_is_interpreter(const struct walk_stack *stack)
{
    int i = 0, has_interpreter = 0;
    if (is_start_up(stack))
        return 1;
    for (; i < stack->count && !stack->frames[i]->is_python; i++) {
        const struct walk_frame *f = stack->frames[i];
        if (is_interned(f))
            return 1;
        if (!is_interpreters_own(f) && !walk_is_start(f))
            return 0;
        has_interpreter |= f->module && module_is_python(f->module);
    }
    return i < stack->count ? is_import(stack, i) : has_interpreter;
}
