/* Finding the interpreter among the loaded modules: by what it exports, looked up without dlsym. */
#include "../unwind/modules.h"
#include "../unwind/rules.h"
#include "python.h"
#include "python_layout.h"

#include <dlfcn.h>

struct symbols {
    uint64_t bias;
    const Elf64_Sym *symbols;
    const char *strings;
    const uint32_t *hash; /* DT_GNU_HASH */
};

/* ld.so has made these addresses absolute, but for modules that it does not relocate. */
static uint64_t dynamic_address(const struct link_map *map, uint64_t value)
{
    return value < map->l_addr ? value + map->l_addr : value;
}

static int symbols_open(const struct link_map *map, struct symbols *s)
{
    *s = (struct symbols){.bias = map->l_addr};
    const Elf64_Dyn *d = map->l_ld;
    if (!d || !python_readable((uint64_t)d, sizeof *d))
        return 0;
    for (unsigned i = 0; i < 128 && d->d_tag != DT_NULL; i++, d++) {
        uint64_t at = dynamic_address(map, d->d_un.d_ptr);
        if (d->d_tag == DT_SYMTAB)
            s->symbols = (const Elf64_Sym *)at;
        else if (d->d_tag == DT_STRTAB)
            s->strings = (const char *)at;
        else if (d->d_tag == DT_GNU_HASH)
            s->hash = (const uint32_t *)at;
    }
    return s->symbols && s->strings && s->hash && python_readable((uint64_t)s->symbols, sizeof *s->symbols) &&
           python_readable((uint64_t)s->strings, 8) && python_readable((uint64_t)s->hash, 16);
}

static int same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* A defined symbol's address; 0: none. */
static uint64_t symbol_find(const struct symbols *s, const char *name, uint64_t *size)
{
    uint32_t h = 5381;
    for (const char *c = name; *c; c++)
        h = h * 33 + (uint8_t)*c;
    uint32_t buckets = s->hash[0], first = s->hash[1], words = s->hash[2], shift = s->hash[3];
    const uint64_t *bloom = (const uint64_t *)(s->hash + 4);
    const uint32_t *bucket = (const uint32_t *)(bloom + words), *chain = bucket + buckets;
    if (!buckets || !words || (words & (words - 1)) || shift > 31)
        return 0;
    uint64_t in_bloom = bloom[h / 64 & (words - 1)];
    if (!(in_bloom >> (h & 63) & in_bloom >> (h >> shift & 63) & 1))
        return 0;
    uint32_t i = bucket[h % buckets];
    if (i < first)
        return 0;
    for (;; i++) {
        uint32_t chained = chain[i - first];
        const Elf64_Sym *symbol = &s->symbols[i];
        if ((chained | 1) == (h | 1) && symbol->st_shndx != SHN_UNDEF && same(s->strings + symbol->st_name, name)) {
            *size = symbol->st_size;
            return symbol->st_value + s->bias;
        }
        if (chained & 1)
            return 0;
    }
}

/*
 * What the interpreter publishes about itself from 3.13 on (_Py_DebugOffsets): words at the start of _PyRuntime, a
 * group to a structure, its size first. Versions add fields to the ends of groups, so a group is found by its first
 * fields.
 */
struct published {
    const uint64_t *at;
    unsigned from, end;
};

static int look_for(struct published *p, const uint64_t *fields, unsigned count)
{
    for (unsigned i = p->from; i + count <= p->end; i++) {
        unsigned k = 0;
        while (k < count && p->at[i + k] == fields[k])
            k++;
        if (k == count) {
            p->from = i;
            return 1;
        }
    }
    return 0;
}

/* Not inlined: its table is for the few programs with such a Python. */
static NOINLINE int layout_published(struct python_layout *l, uint64_t runtime, uint64_t runtime_bytes)
{
    struct published p = {(const uint64_t *)runtime, 6, 128};
    static const char cookie[8] = "xdebugpy";
    uint64_t word;
    __builtin_memcpy(&word, cookie, 8);
    if (runtime_bytes < p.end * 8 || p.at[0] != word || p.at[1] >> 16 != (0x0300u | l->minor) ||
        p.at[2] != 0) /* built without the GIL */
        return 0;
    const uint64_t *at = p.at;
    uint64_t finalizing = at[4];
    static const uint64_t state[] = {0, 8, 16}; /* prev, next, interp */
    if (!look_for(&p, state, 3))
        return 0;
    const uint64_t *thread = at + p.from, *frame = thread + 9; /* at its prev, at its previous */
    p.from += 14;
    while (p.from + 10 < p.end &&
           (at[p.from + 1] != at[p.from] + 8 || at[p.from + 2] != at[p.from] + 16 || at[p.from + 3] != at[p.from] + 24))
        p.from++;
    const uint64_t *code = at + p.from; /* at its filename */
    static const uint64_t object[] = {16, 8}, text[] = {32, 16, 40};
    p.from += 9;
    if (!look_for(&p, object, 2))
        return 0;
    const uint64_t *type = at + p.from + 3; /* at its tp_name */
    p.from += 6;
    if (!look_for(&p, text, 3))
        return 0;
    const uint64_t *unicode = at + p.from; /* at its state; before it the bytes object's two, and a size */
    const struct {
        uint64_t from;
        uint16_t *to;
    } fields[] = {
        {finalizing, &l->finalizing},  {thread[3], &l->frame},
        {thread[4], &l->thread_id},    {frame[0], &l->previous},
        {frame[1], &l->code},          {frame[2], &l->instruction},
        {frame[4], &l->owner},         {code[0], &l->filename},
        {code[1], &l->name},           {code[2], &l->qualname},
        {code[3], &l->table},          {code[4], &l->first_line},
        {code[8], &l->bytecode},       {8, &l->ob_type},
        {type[0], &l->tp_name},        {unicode[-3], &l->bytes_size},
        {unicode[-2], &l->bytes_data}, {unicode[0], &l->text_state},
        {unicode[1], &l->text_length}, {unicode[2], &l->ascii_bytes},
    };
    for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (fields[i].from > 4096)
            return 0;
        *fields[i].to = (uint16_t)fields[i].from;
    }
    l->version = (uint16_t)(l->first_line + 24);
    return 1;
}

/* The version's second and third number, as in 0x0b02: 3.11 and later say it; the two before are known by what they
 * export. 0: unknown. */
static unsigned version_of(const struct symbols *s)
{
    uint64_t size, at = symbol_find(s, "Py_Version", &size);
    if (at) {
        uint32_t version = *(const uint32_t *)at;
        return version >> 24 == 3 ? version >> 8 & 0xffff : 0;
    }
    if (symbol_find(s, "Py_NewRef", &size))
        return 10 << 8;
    return symbol_find(s, "PyFrame_GetCode", &size) ? 9 << 8 : 0;
}

/* The program itself, or what it was linked with: that stays. */
static int is_of_program(const struct link_map *map)
{
    const struct link_map *program = map;
    while (program->l_prev)
        program = program->l_prev;
    if (map == program)
        return 1;
    const char *name = map->l_name, *strings = NULL;
    for (const char *c = map->l_name; *c; c++)
        if (*c == '/')
            name = c + 1;
    for (const Elf64_Dyn *d = program->l_ld; d && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_STRTAB)
            strings = (const char *)dynamic_address(program, d->d_un.d_ptr);
    for (const Elf64_Dyn *d = program->l_ld; strings && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_NEEDED && same(strings + d->d_un.d_val, name))
            return 1;
    return 0;
}

void modules_watch_seen(const struct link_map *map, uint64_t start)
{
    struct symbols s;
    uint64_t runtime_bytes, eval_bytes;
    if (python.module_start || !symbols_open(map, &s))
        return;
    uint64_t runtime = symbol_find(&s, "_PyRuntime", &runtime_bytes);
    uint64_t eval = runtime ? symbol_find(&s, "_PyEval_EvalFrameDefault", &eval_bytes) : 0;
    if (!eval)
        return;
    unsigned version = version_of(&s), minor = version >> 8;
    python.module_start = start;
    if (minor < 9 || minor > 14) {
        COUNT(python_unknown);
        return;
    }
    python.layout = python_layouts[minor - 9];
    if (minor >= 13 && !layout_published(&python.layout, runtime, runtime_bytes)) {
        COUNT(python_unknown);
        return;
    }
    uint64_t bytes;
    python.may_go = !is_of_program(map);
    python.runtime = runtime;
    python.runtime_bytes = runtime_bytes;
    python.keeps_functions = version > 0x0b00;
    python.arena_getter = minor < 12 ? symbol_find(&s, "PyObject_GetArenaAllocator", &bytes) : 0;
    python.arena_alloc = 0;
    python.eval_start = eval;
    python.eval_end = eval + eval_bytes;
    python.run_start = symbol_find(&s, "Py_RunMain", &bytes);
    python.run_end = python.run_start ? python.run_start + bytes : 0;
    python.exit_start = symbol_find(&s, "Py_Exit", &bytes);
    python.exit_end = python.exit_start ? python.exit_start + bytes : 0;
    python.is_verified = python.failures = python.looks = python.key = 0;
    __atomic_store_n(&python_loaded, 1, __ATOMIC_RELEASE);
}

void modules_watch_gone(uint64_t start)
{
    if (start != python.module_start)
        return;
    __atomic_store_n(&python_loaded, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&python_finalizing, NULL, __ATOMIC_RELAXED);
    python.module_start = 0;
    python.runtime = 0;
}

/* --- arenas --- */

/* What is smaller are chunks of its frames' stack (16 KiB), which from 3.11 on come from the same function. */
#define ARENA_LEAST (256u << 10)

struct arena_allocator { /* PyObjectArenaAllocator */
    void *context;
    uint64_t alloc, free;
};

/* Whether this function of the interpreter's module [start, end) is the one that takes arenas. Until 3.11 a function
 * that copies three words says so; later versions take a lock in it, but have the three in the runtime. */
static NOINLINE int is_arena_alloc(uint64_t function, uint64_t start, uint64_t end)
{
    struct arena_allocator arena = {NULL, 0, 0};
    if (python.arena_getter) {
        ((void (*)(struct arena_allocator *))python.arena_getter)(&arena);
        return arena.alloc == function;
    }
    if (python.layout.minor < 12 || !python.runtime_bytes)
        return 0;
    const uint64_t *word = (const uint64_t *)python.runtime, *last = word + python.runtime_bytes / 8 - 2;
    for (; word < last; word++)
        if (word[1] == function && word[0] == 0 && word[2] != function && word[2] - start < end - start)
            return 1;
    return 0;
}

int python_takes_arena(uint64_t pc, uint64_t length, struct cfi_work *work)
{
    struct cfi_image image;
    uint64_t start, end, function;
    if (length < ARENA_LEAST || !__atomic_load_n(&python_loaded, __ATOMIC_ACQUIRE) ||
        !module_range(pc - 1, &start, &end) || start != python.module_start ||
        module_find(pc - 1, &image) == MODULE_NONE || !image.header)
        return 0;
    function = cfi_function(&image, pc - 1, work);
    if (!function)
        return 0;
    if (function != __atomic_load_n(&python.arena_alloc, __ATOMIC_RELAXED)) {
        if (!is_arena_alloc(function, start, end))
            return 0;
        __atomic_store_n(&python.arena_alloc, function, __ATOMIC_RELAXED);
    }
    return 1;
}

/* --- going --- */

/* Other threads' stacks are native while it lasts. */
int python_before_dlclose(void)
{
    if (!python.module_start || !python.may_go)
        return 0;
    __atomic_fetch_add(&python.closing, 1, __ATOMIC_ACQ_REL);
    __atomic_store_n(&python_finalizing, NULL, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&python_loaded, __ATOMIC_RELAXED))
        __atomic_store_n(&python_loaded, 0, __ATOMIC_SEQ_CST);
    return 1;
}

void python_after_dlclose(int from_before)
{
    struct dl_find_object o;
    if (!from_before || __atomic_sub_fetch(&python.closing, 1, __ATOMIC_ACQ_REL))
        return;
    if (python.module_start && python.runtime && python.failures < FAILURES_MOST &&
        _dl_find_object((void *)python.eval_start, &o) == 0) {
        if (python.is_verified)
            __atomic_store_n(&python_finalizing, (const uint64_t *)(python.runtime + python.layout.finalizing),
                             __ATOMIC_RELAXED);
        __atomic_store_n(&python_loaded, 1, __ATOMIC_RELEASE);
    }
}
