#include "noise_frame.h"

#include "../../common/array.h"
#include "../../common/module_kind.h"
#include "../../common/text.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESSES_KNOWN (1 << 24) /* by id, as the collector gives them */

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

/* Functions of the C library that keep what they allocate for good, or as long as a thread, which it frees when it is
 * asked to free all (__libc_freeres, of which valgrind makes use); names that every program sees, beside the inner
 * ones, as those need debug information. What a caller has to give back (fopen, newlocale, iconv_open, dlopen) is none
 * of them, nor is what a getter without a static result returns. */
static int is_once(const char *name)
{
    static const char *const names[] = {
        /* buffers of streams (the stream itself is the caller's) */
        "*_IO_file_doallocate", "*_IO_wfile_doallocate",
        /* locales, translations, tables of conversions */
        "_nl_*", "setlocale", "read_alias_file", "extend_alias_table", "new_composite_name", "*textdomain*",
        "*gettext*", "__gconv_read_conf", "__gconv_load_conf", "__gconv_load_cache", "__gconv_get_path",
        "__gconv_find_shlib", "add_derivation", "__wcsmbs_load_conv",
        /* time zones */
        "tzset*", "__tzset*", "__tzstring*", "__tzfile_*", "*localtime*", "mktime", "strftime*", "wcsftime*",
        /* name services, resolver, static results of getters */
        "__nss_*", "nss_*", "global_state_allocate", "__resolv_*", "__res_vinit", "get_locked_global", "__check_pf",
        "gaiconf_init", "getpw*", "getgr*", "getsp*", "getsg*", "gethostby*", "gethostent", "getserv*", "getproto*",
        "getnetby*", "getnetent", "getrpc*", "getalias*", "fgetpwent", "fgetgrent", "fgetspent", "getmntent", "getfs*",
        "getpass", "getttyent", "ttyname",
        /* the environment's table, and what setenv put there */
        "__add_to_environ", "setenv", "putenv",
        /* handlers of exit and fork, errors of the loader */
        "__new_exitfn", "__cxa_atexit", "__cxa_thread_atexit_impl", "__register_atfork", "*dlerror_run", "dlerror",
        "dlsym", "dlvsym",
        /* threads: what each has, which a stack that is kept for the next one keeps, too */
        "allocate_dtv*", "_dl_allocate_tls*", "_dl_resize_dtv", "__tls_get_addr", "tls_get_addr*", "allocate_and_init",
        "*pthread_setspecific", "_dl_add_to_slotinfo", "add_to_global*", "_dl_scope_free"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_like(names[i], name))
            return 1;
    return 0;
}

/* What the C++ library makes for exceptions when there is no memory, once, before main(): linked into a program it is
 * of the program's file. An exception itself is its thrower's. */
static int is_exceptions_pool(const struct walk_frame *f)
{
    static const char source[] = "libsupc++/eh_alloc.cc";
    const size_t length = f->file ? strlen(f->file) : 0, size = sizeof source - 1;
    if (!f->function)
        return 0;
    if (strcmp(f->function, "_GLOBAL__sub_I_eh_alloc.cc") == 0)
        return 1;
    return length >= size && strcmp(f->file + length - size, source) == 0 && !is_like("__cxa_allocate*", f->function);
}

/* What OpenMP's library has for its threads and teams. A program gets memory of it by the functions for that only. */
static int is_openmp(const struct walk_frame *f)
{
    static const char *const files[] = {"libgomp.so", "libomp.so", "libomp5.so", "libiomp5.so"};
    static const char *const hands_out[] = {"omp_*alloc*", "GOMP_alloc", "kmp_*alloc*", "omp_init_*"};
    const char *name = f->module ? text_basename(f->module) : "";
    int is_of_it = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        is_of_it |= strncmp(name, files[i], strlen(files[i])) == 0;
    for (size_t i = 0; i < sizeof hands_out / sizeof *hands_out && is_of_it && f->plain_name; i++)
        if (fnmatch(hands_out[i], f->plain_name, 0) == 0)
            return 0;
    return is_of_it;
}

static int begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* Rust's standard library, whose code is all of the allocator family: what its start makes before it calls main(). main
 * may be inlined into what calls it, which then stands further in than the start. 1: it is that, -1: it is not. */
static int rust_start(const struct walk_frame *f)
{
    if (!f->function || !f->is_allocator)
        return -1;
    if (strstr(f->function, "__rust_begin_short_backtrace") || begins(f->function, "std::rt::lang_start::"))
        return -1;
    return begins(f->function, "std::rt::init") || begins(f->function, "std::rt::lang_start_internal");
}

static int is_interpreters_own(const struct walk_frame *f)
{
    return f->is_allocator || f->is_runtime || f->is_interpreter;
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

/* The tables in which its allocator has its arenas; where it has no symbols, arena_table.h knows them. */
static int is_of_arenas(const struct walk_frame *f)
{
    return f->is_interpreter && f->function &&
           (strcmp(f->function, "new_arena") == 0 || is_like("arena_map_*", f->function));
}

static int is_start_up(const struct walk_frame *f)
{
    return f->function && strncmp(f->function, "Py_Initialize", 13) == 0;
}

/* Code that is nobody's own: of the interpreter, the system, Python's standard library and installed packages. */
static int is_library_code(const struct walk_frame *f)
{
    if (f->is_python)
        /* of code that is made as the program runs, who made it lies further out */
        return f->file && (module_is_python_library(f->file) || module_is_python_package(f->file) ||
                           strcmp(f->file, "<string>") == 0 || strcmp(f->file, "<__array_function__ internals>") == 0);
    return is_interpreters_own(f) || walk_is_start(f) ||
           (f->module && (module_is_python_package(f->module) || module_is_system_library(f->module)));
}

/* Of an allocator that is none of ours: where it takes memory for many blocks from the kernel. */
static int takes_arena(const struct walk_frame *f)
{
    static const char *const names[] = {"*pages_map",    "pages_map_slab", "*chunk_alloc_mmap", "_mi_os_*",
                                        "mi_os_*",       "_mi_prim_alloc", "unix_mmap*",        "_rpmalloc_mmap*",
                                        "*SystemAlloc*", "*MmapAligned*",  "PartitionAlloc*",   "*SystemAllocPages*"};
    for (size_t i = 0; f->plain_name && i < sizeof names / sizeof *names; i++)
        if (is_like(names[i], f->plain_name))
            return 1;
    return 0;
}

static int is_import(const struct walk_frame *f)
{
    return f->is_python && f->file && (begins(f->file, "<frozen importlib.") || begins(f->file, "<frozen zipimport>"));
}

/* A template of the C++ library that is compiled into the program, as what a thread runs: its blocks may be those of
 * the program's own code, inlined into it. Rust's names have "::" before the bracket. */
static int is_instance(const struct walk_frame *f)
{
    const char *bracket = f->is_allocator && f->function ? strchr(f->function, '<') : NULL;
    return bracket && begins(f->function, "std::") && bracket[-1] != ':' && f->module &&
           !module_is_system_library(f->module);
}

static uint16_t traits_of(const struct walk_frame *f)
{
    const int rust = rust_start(f);
    unsigned traits = rust > 0 ? FRAME_RUST_START : rust < 0 ? FRAME_NO_RUST_START : 0;
    traits |= f->is_allocator ? FRAME_ALLOCATOR : 0;
    traits |= f->is_runtime ? FRAME_RUNTIME : 0;
    traits |= is_exceptions_pool(f) ? FRAME_RUNTIME | FRAME_ONCE : 0;
    traits |= f->is_interpreter ? FRAME_INTERPRETER : 0;
    traits |= f->is_python ? FRAME_PYTHON : 0;
    traits |= is_openmp(f) ? FRAME_OPENMP : 0;
    traits |= f->plain_name && is_once(f->plain_name) ? FRAME_ONCE : 0;
    traits |= is_start_up(f) ? FRAME_START_UP : 0;
    traits |= is_library_code(f) ? FRAME_LIBRARY : 0;
    traits |= is_interpreters_own(f) || walk_is_start(f) ? FRAME_OWN : 0;
    traits |= is_interned(f) || is_of_arenas(f) ? FRAME_INTERNED : 0;
    traits |= is_import(f) ? FRAME_IMPORT : 0;
    traits |= is_instance(f) ? FRAME_INSTANCE : 0;
    traits |= takes_arena(f) ? FRAME_TAKES_ARENA : 0;
    return (uint16_t)traits;
}

/* Once for all frames of one function, file and module: their strings are the walk's, mostly one for all. */
static uint16_t known_traits(struct noise_frames *n, const struct walk_frame *f)
{
    const uint64_t module = (uintptr_t)f->module << 2 | (f->is_python != 0) << 1 | (f->is_allocator != 0);
    const uint32_t code = map_number_or(&n->code, (uintptr_t)f->function, (uintptr_t)f->file, n->code_count);
    n->code_count += code == n->code_count;
    uint64_t *traits = map_slot(&n->known, code, module);
    if (!*traits)
        *traits = (uint64_t)traits_of(f) + 1;
    return (uint16_t)(*traits - 1);
}

static void tell(struct noise_frames *n, const struct walk_frame *frames, int count, uint16_t *traits)
{
    for (int i = 0; i < count; i++)
        traits[i] = known_traits(n, &frames[i]);
}

const uint16_t *noise_frames(struct noise_frames *n, struct walk *walk, int64_t id, int *count)
{
    if (id >= 0 && (uint64_t)id < n->place_room && n->places[id].first) {
        *count = (int)n->places[id].count;
        return n->traits + n->places[id].first - 1;
    }
    const struct walk_frame *frames = walk_frames(walk, id, count);
    if (id < 0 || id >= ADDRESSES_KNOWN) {
        ARRAY_ROOM_ZERO(n->unkept, (size_t)*count + 1, n->unkept_room);
        tell(n, frames, *count, n->unkept);
        return n->unkept;
    }
    const size_t first = n->count;
    n->count += (size_t)*count;
    ARRAY_ROOM_ZERO(n->places, (size_t)id + 1, n->place_room);
    ARRAY_ROOM_ZERO(n->traits, n->count, n->room);
    tell(n, frames, *count, n->traits + first);
    n->places[id] = (struct noise_place){(uint32_t)first + 1, (uint32_t)*count};
    return n->traits + first;
}

void noise_frames_close(struct noise_frames *n)
{
    free(n->traits);
    free(n->places);
    free(n->unkept);
    map_close(&n->code);
    map_close(&n->known);
}
