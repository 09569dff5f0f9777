#include "noise.h"

#include "../../common/array.h"
#include "../../common/module_kind.h"
#include "../../common/text.h"
#include "arena_table.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define NODES_KNOWN (1 << 24) /* by id, as the collector gives them */

/* What a node and its callers tell; stacks share most of theirs. */
enum {
    IS_KNOWN = 1,
    IS_START_UP = 2, /* the interpreter initializes itself */
    IS_IMPORT = 4,   /* an import runs the frames, and no code but of libraries lies between */
};

struct noise {
    struct walk *walk;
    uint8_t *known;
    size_t known_room;
    struct arena_table arena_table;
};

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

/* What the frames say, innermost first, of which the first that is not a library's, or an import's own, says it;
 * beyond: what lies further out. */
static int is_import(const struct walk_frame *frames, int count, int beyond)
{
    for (int i = 0; i < count; i++) {
        if (!is_library_code(&frames[i]))
            return 0;
        if (frames[i].is_python &&
            (begins(frames[i].file, "<frozen importlib.") || begins(frames[i].file, "<frozen zipimport>")))
            return 1;
    }
    return beyond;
}

struct noise *noise_open(struct walk *walk)
{
    struct noise *n = xcalloc(1, sizeof *n);
    n->walk = walk;
    return n;
}

void noise_close(struct noise *n)
{
    if (n) {
        free(n->known);
        arena_table_close(&n->arena_table);
    }
    free(n);
}

/* Of a node with all its callers. */
static int tell(struct noise *n, int64_t stack_id, struct error *err)
{
    struct {
        int64_t id;
        struct walk_step step;
    } path[WALK_FRAMES_MAX];
    int depth = 0, told = IS_KNOWN;
    for (int64_t id = stack_id; id && depth < WALK_FRAMES_MAX; id = path[depth++].step.parent_id) {
        if (id > 0 && (uint64_t)id < n->known_room && n->known[id]) {
            told = n->known[id];
            break;
        }
        int rc = walk_step(n->walk, id, id != stack_id, &path[depth].step, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            break;
        path[depth].id = id;
    }
    while (depth-- > 0) {
        const struct walk_step *step = &path[depth].step;
        int import = is_import(step->frames, step->count, told & IS_IMPORT);
        told = IS_KNOWN | (told & IS_START_UP) | (import ? IS_IMPORT : 0);
        for (int i = 0; i < step->count; i++)
            told |= is_start_up(&step->frames[i]) ? IS_START_UP : 0;
        if (path[depth].id <= 0 || path[depth].id >= NODES_KNOWN)
            continue;
        ARRAY_ROOM_ZERO(n->known, (size_t)path[depth].id + 1, n->known_room);
        n->known[path[depth].id] = (uint8_t)told;
    }
    return told;
}

/* The frames of a stack, innermost first, as far as they are looked at. */
struct frames {
    struct noise *noise;
    struct walk_step step;
    int64_t next_id; /* the node behind step's; 0: none */
    int i;           /* the frame in step */
    int depth, count;
};

/* 1; 0: there is none left; -errno. */
static int next_frame(struct frames *f, const struct walk_frame **frame, struct error *err)
{
    while (f->i == f->step.count) {
        if (!f->next_id || f->depth == WALK_FRAMES_MAX || f->count >= WALK_FRAMES_MAX) {
            f->step.is_cut |= f->next_id != 0;
            return 0;
        }
        struct walk_step before = f->step;
        int rc = walk_step(f->noise->walk, f->next_id, f->depth > 0, &f->step, err);
        if (rc != 1) {
            f->step = before;
            f->next_id = 0;
            return rc;
        }
        f->next_id = f->step.parent_id;
        f->depth++;
        f->i = 0;
    }
    *frame = &f->step.frames[f->i++];
    f->count++;
    return 1;
}

static int is_library(struct noise *n, int64_t stack_id, struct error *err)
{
    struct frames f = {.noise = n, .next_id = stack_id};
    const struct walk_frame *frame;
    int once = 0, rust = 0, rc;
    while ((rc = next_frame(&f, &frame, err)) == 1) {
        int openmp = is_openmp(frame);
        rust = rust ? rust : rust_start(frame);
        if (rust > 0)
            return 1;
        if (frame->is_allocator && !openmp)
            continue;
        if (!openmp && !frame->is_runtime)
            break;
        once |= openmp || (frame->plain_name && is_once(frame->plain_name));
    }
    if (rc < 0)
        return rc;
    /* nothing but these libraries, and all the way up: before main() */
    int is_start = rc == 0 && f.count > 0 && !f.step.is_cut && !f.step.is_unknown;
    return is_start || once;
}

static int is_interpreter(struct noise *n, int64_t stack_id, struct error *err)
{
    struct frames f = {.noise = n, .next_id = stack_id};
    const struct walk_frame *frame;
    int has_interpreter = 0, has_library = 0, rc, told = tell(n, stack_id, err);
    if (told < 0 || (told & IS_START_UP))
        return told < 0 ? told : 1;
    rc = arena_table_is(&n->arena_table, n->walk, stack_id, err);
    if (rc)
        return rc;
    while ((rc = next_frame(&f, &frame, err)) == 1 && !frame->is_python) {
        if (!has_library && (is_interned(frame) || is_of_arenas(frame)))
            return 1;
        if (!is_library_code(frame))
            return 0;
        has_library |= !is_interpreters_own(frame) && !walk_is_start(frame);
        has_interpreter |= frame->is_interpreter;
    }
    if (rc != 1)
        return rc ? rc : has_interpreter && !has_library;
    int beyond = f.next_id ? tell(n, f.next_id, err) : 0;
    return beyond < 0 ? beyond : is_import(frame, f.step.count - f.i + 1, (beyond & IS_IMPORT) != 0);
}

int noise_is_arena(struct noise *n, int64_t stack_id, struct error *err)
{
    static const char *const names[] = {"*pages_map",    "pages_map_slab", "*chunk_alloc_mmap", "_mi_os_*",
                                        "mi_os_*",       "_mi_prim_alloc", "unix_mmap*",        "_rpmalloc_mmap*",
                                        "*SystemAlloc*", "*MmapAligned*",  "PartitionAlloc*",   "*SystemAllocPages*"};
    struct frames f = {.noise = n, .next_id = stack_id};
    const struct walk_frame *frame = NULL;
    int rc;
    while ((rc = next_frame(&f, &frame, err)) == 1 && frame->is_allocator)
        ;
    for (size_t i = 0; rc == 1 && frame->plain_name && i < sizeof names / sizeof *names; i++)
        if (is_like(names[i], frame->plain_name))
            return 1;
    return rc < 0 ? rc : 0;
}

int noise_of(struct noise *n, int64_t stack_id, struct error *err)
{
    int rc = is_library(n, stack_id, err);
    if (rc)
        return rc < 0 ? rc : NOISE_LIBRARY;
    rc = is_interpreter(n, stack_id, err);
    return rc > 0 ? NOISE_INTERPRETER : rc;
}
