/*
 * NVTX version 3: the launcher names this library as the tool (NVTX_INJECTION64_PATH), so each shared object of the
 * program that uses NVTX calls the two entry points below once, with its own table of functions. Marks, ranges,
 * domains, registered strings, categories; heaps and regions of the memory extension, which say what a sub-allocator
 * does. A tool of the user's own is loaded first and called after us: what it returns is what the program gets.
 */
#include "../call.h"
#include "../real.h"
#include "nvtx.h"

#include <dlfcn.h>
#include <errno.h>

/* --- names of domains, strings and categories: a list that only grows --- */

enum name_kind { NAME_HANDLE, NAME_CATEGORY, NAME_REGION };

struct name {
    struct name *next;
    uint64_t handle;   /* of a domain, a string or a region; a category's domain */
    uint32_t category; /* id */
    uint32_t kind;
    union {
        char text[120];
        const void *address; /* of a region that another tool gave a handle */
    };
};

#define BUCKETS     256u
#define NAMES_BYTES (16u << 20) /* address space; touched as it fills */
static struct name *buckets[BUCKETS];
static char *names;
static size_t names_used;

static void copy_text(char *to, size_t size_bytes, struct call_text text)
{
    size_t n = 0;
    for (; n + 1 < size_bytes && text.bytes && text.bytes[n]; n++)
        to[n] = text.bytes[n];
    for (; n + 1 < size_bytes && text.wide && text.wide[n]; n++) /* what is not ASCII is not worth a table here */
        to[n] = text.wide[n] < 0x80 ? (char)text.wide[n] : '?';
    to[n] = 0;
}

static unsigned bucket(uint64_t handle, uint32_t category)
{
    return (unsigned)((handle * UNWIND_HASH_K + category * 0x9e3779b1u) >> 56);
}

/* Without a handle of another tool's, the name's own address is its handle. 0: no memory. */
static struct name *name_new(uint64_t handle, uint32_t category, enum name_kind kind)
{
    char *base = __atomic_load_n(&names, __ATOMIC_ACQUIRE), *none = NULL;
    if (!base) {
        base = sys_map(NAMES_BYTES);
        if (base && !__atomic_compare_exchange_n(&names, &none, base, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            sys_unmap(base, NAMES_BYTES);
            base = none;
        }
    }
    size_t at = base ? __atomic_fetch_add(&names_used, sizeof(struct name), __ATOMIC_RELAXED) : NAMES_BYTES;
    if (at + sizeof(struct name) > NAMES_BYTES) {
        COUNT(map_refused, 1);
        return NULL;
    }
    struct name *name = (struct name *)(base + at);
    name->handle = handle || kind == NAME_CATEGORY ? handle : (uint64_t)name;
    name->category = category;
    name->kind = kind;
    return name;
}

static void name_publish(struct name *name)
{
    struct name **head = &buckets[bucket(name->handle, name->category)];
    name->next = __atomic_load_n(head, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(head, &name->next, name, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

static uint64_t name_add(uint64_t handle, uint32_t category, enum name_kind kind, struct call_text text)
{
    struct name *name = name_new(handle, category, kind);
    if (!name)
        return handle;
    copy_text(name->text, sizeof name->text, text);
    name_publish(name);
    return name->handle;
}

static const struct name *name_find(uint64_t handle, uint32_t category, enum name_kind kind)
{
    const struct name *n = __atomic_load_n(&buckets[bucket(handle, category)], __ATOMIC_ACQUIRE);
    while (n && (n->handle != handle || n->category != category || n->kind != (uint32_t)kind))
        n = n->next;
    return n;
}

static const char *name_of(uint64_t handle, uint32_t category, enum name_kind kind)
{
    const struct name *n = handle || kind == NAME_CATEGORY ? name_find(handle, category, kind) : NULL;
    return n ? n->text : NULL;
}

static struct call_text ascii(const char *text)
{
    return (struct call_text){.bytes = text};
}

static struct call_text wide(const int32_t *text)
{
    return (struct call_text){.wide = text};
}

static struct call_text message_text(int type, const void *message)
{
    switch (type) {
    case NVTX_MESSAGE_ASCII:
        return ascii(message);
    case NVTX_MESSAGE_UNICODE:
        return wide(message);
    case NVTX_MESSAGE_REGISTERED:
        return ascii(name_of((uint64_t)message, 0, NAME_HANDLE));
    }
    return ascii(NULL);
}

/* --- the tool that comes after us --- */

enum { CORE_SLOTS = 16, CORE2_SLOTS = 16 };
static nvtx_function next_core[CORE_SLOTS], next_core2[CORE2_SLOTS], next_memory[NVTX_MEMORY_SLOTS];

typedef int initialize_core(nvtx_export_table *get);
typedef int initialize_extension(struct nvtx_extension *e);

/* Loaded where NVTX itself would load it: in the program's first call of NVTX. */
static void *users_tool(const char *entry)
{
    const char *path = NULL;
    for (char **e = __environ; e && *e; e++) {
        const char *name = WIRE_ENV_NVTX_NEXT "=", *p = *e;
        while (*name && *name == *p)
            name++, p++;
        if (!*name)
            path = p;
    }
    real_init();
    void *handle = path && *path && real.dlopen ? real.dlopen(path, RTLD_LAZY) : NULL;
    return handle ? real_find_in(handle, entry) : NULL;
}

/* Puts ours in front of what the user's tool has put there. Objects share the tool's functions; one that got others
 * keeps them, without us. */
static void take(nvtx_function *slot, nvtx_function before, nvtx_function ours, nvtx_function *next)
{
    nvtx_function tools = *slot != before ? *slot : NULL, expected = NULL;
    if (*slot == ours)
        return;
    if (tools && !__atomic_compare_exchange_n(next, &expected, tools, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
        expected != tools)
        return;
    *slot = ours;
}

/* --- marks and ranges --- */

#define NO_PUSH_POP_TRACKING (-2)

static uint64_t range_ids;

static void mark(struct unwind_state s, enum wire_mark kind, uint64_t id, uint64_t domain,
                 const struct nvtx_attributes *a, struct call_text text)
{
    const char *domain_name = name_of(domain, 0, NAME_HANDLE), *category = NULL;
    if (a) {
        text = message_text(a->message_type, a->message);
        category = a->category ? name_of(domain, a->category, NAME_CATEGORY) : NULL;
    }
    struct call_text parts[] = {ascii(domain_name), ascii(category), text};
    if (domain_name || category)
        call_mark(s, kind, id, parts, 3);
    else
        call_mark(s, kind, id, &text, 1);
}

static void pop(struct unwind_state s, uint64_t domain)
{
    struct call_text part = ascii(name_of(domain, 0, NAME_HANDLE));
    call_mark(s, WIRE_MARK_POP, 0, &part, 1);
}

/* The functions of one shape: with attributes, ASCII text, wide text. next is called after our record was written;
 * where it is missing, what NVTX gives without a tool is given. */
#define HERE()                                                                                                         \
    struct unwind_state s;                                                                                             \
    UNWIND_HERE(s)

#define MARK_FUNCTION(name, slot, argument, attributes, text)                                                          \
    static void name(argument x)                                                                                       \
    {                                                                                                                  \
        HERE();                                                                                                        \
        mark(s, WIRE_MARK_INSTANT, 0, 0, attributes, text);                                                            \
        void (*next)(argument) = (void (*)(argument))next_core[slot];                                                  \
        if (next)                                                                                                      \
            next(x);                                                                                                   \
    }
MARK_FUNCTION(mark_ex, 1, const struct nvtx_attributes *, x, ascii(NULL))
MARK_FUNCTION(mark_ascii, 2, const char *, NULL, ascii(x))
MARK_FUNCTION(mark_wide, 3, const int32_t *, NULL, wide(x))

#define START_FUNCTION(name, slot, argument, attributes, text)                                                         \
    static uint64_t name(argument x)                                                                                   \
    {                                                                                                                  \
        HERE();                                                                                                        \
        uint64_t (*next)(argument) = (uint64_t(*)(argument))next_core[slot];                                           \
        uint64_t id = next ? next(x) : __atomic_add_fetch(&range_ids, 1, __ATOMIC_RELAXED);                            \
        mark(s, WIRE_MARK_START, id, 0, attributes, text);                                                             \
        return id;                                                                                                     \
    }
START_FUNCTION(start_ex, 4, const struct nvtx_attributes *, x, ascii(NULL))
START_FUNCTION(start_ascii, 5, const char *, NULL, ascii(x))
START_FUNCTION(start_wide, 6, const int32_t *, NULL, wide(x))

static void range_end(uint64_t id)
{
    HERE();
    call_mark(s, WIRE_MARK_END, id, NULL, 0);
    void (*next)(uint64_t) = (void (*)(uint64_t))next_core[7];
    if (next)
        next(id);
}

#define PUSH_FUNCTION(name, slot, argument, attributes, text)                                                          \
    static int name(argument x)                                                                                        \
    {                                                                                                                  \
        HERE();                                                                                                        \
        mark(s, WIRE_MARK_PUSH, 0, 0, attributes, text);                                                               \
        int (*next)(argument) = (int (*)(argument))next_core[slot];                                                    \
        return next ? next(x) : NO_PUSH_POP_TRACKING;                                                                  \
    }
PUSH_FUNCTION(push_ex, 8, const struct nvtx_attributes *, x, ascii(NULL))
PUSH_FUNCTION(push_ascii, 9, const char *, NULL, ascii(x))
PUSH_FUNCTION(push_wide, 10, const int32_t *, NULL, wide(x))

static int range_pop(void)
{
    HERE();
    pop(s, 0);
    int (*next)(void) = (int (*)(void))next_core[11];
    return next ? next() : NO_PUSH_POP_TRACKING;
}

static void domain_mark(uint64_t domain, const struct nvtx_attributes *a)
{
    HERE();
    mark(s, WIRE_MARK_INSTANT, 0, domain, a, ascii(NULL));
    void (*next)(uint64_t, const struct nvtx_attributes *) =
        (void (*)(uint64_t, const struct nvtx_attributes *))next_core2[1];
    if (next)
        next(domain, a);
}

static uint64_t domain_start(uint64_t domain, const struct nvtx_attributes *a)
{
    HERE();
    uint64_t (*next)(uint64_t, const void *) = (uint64_t(*)(uint64_t, const void *))next_core2[2];
    uint64_t id = next ? next(domain, a) : __atomic_add_fetch(&range_ids, 1, __ATOMIC_RELAXED);
    mark(s, WIRE_MARK_START, id, domain, a, ascii(NULL));
    return id;
}

static void domain_end(uint64_t domain, uint64_t id)
{
    HERE();
    call_mark(s, WIRE_MARK_END, id, NULL, 0);
    void (*next)(uint64_t, uint64_t) = (void (*)(uint64_t, uint64_t))next_core2[3];
    if (next)
        next(domain, id);
}

static int domain_push(uint64_t domain, const struct nvtx_attributes *a)
{
    HERE();
    mark(s, WIRE_MARK_PUSH, 0, domain, a, ascii(NULL));
    int (*next)(uint64_t, const struct nvtx_attributes *) =
        (int (*)(uint64_t, const struct nvtx_attributes *))next_core2[4];
    return next ? next(domain, a) : NO_PUSH_POP_TRACKING;
}

static int domain_pop(uint64_t domain)
{
    HERE();
    pop(s, domain);
    int (*next)(uint64_t) = (int (*)(uint64_t))next_core2[5];
    return next ? next(domain) : NO_PUSH_POP_TRACKING;
}

#define NAME_FUNCTION(name, slot, parameters, call, after)                                                             \
    static void name parameters                                                                                        \
    {                                                                                                                  \
        int saved = errno;                                                                                             \
        after;                                                                                                         \
        errno = saved;                                                                                                 \
        void(*next) parameters = (void(*) parameters)slot;                                                             \
        if (next)                                                                                                      \
            next call;                                                                                                 \
    }
NAME_FUNCTION(category_ascii, next_core[12], (uint32_t id, const char *text), (id, text),
              name_add(0, id, NAME_CATEGORY, ascii(text)))
NAME_FUNCTION(category_wide, next_core[13], (uint32_t id, const int32_t *text), (id, text),
              name_add(0, id, NAME_CATEGORY, wide(text)))
NAME_FUNCTION(domain_category_ascii, next_core2[8], (uint64_t domain, uint32_t id, const char *text),
              (domain, id, text), name_add(domain, id, NAME_CATEGORY, ascii(text)))
NAME_FUNCTION(domain_category_wide, next_core2[9], (uint64_t domain, uint32_t id, const int32_t *text),
              (domain, id, text), name_add(domain, id, NAME_CATEGORY, wide(text)))

/* Domains and strings: the handle is the next tool's, or ours. */
static uint64_t domain_create_ascii(const char *text)
{
    uint64_t (*next)(const char *) = (uint64_t(*)(const char *))next_core2[12];
    return name_add(next ? next(text) : 0, 0, NAME_HANDLE, ascii(text));
}

static uint64_t domain_create_wide(const int32_t *text)
{
    uint64_t (*next)(const int32_t *) = (uint64_t(*)(const int32_t *))next_core2[13];
    return name_add(next ? next(text) : 0, 0, NAME_HANDLE, wide(text));
}

static uint64_t string_ascii(uint64_t domain, const char *text)
{
    uint64_t (*next)(uint64_t, const char *) = (uint64_t(*)(uint64_t, const char *))next_core2[10];
    return name_add(next ? next(domain, text) : 0, 0, NAME_HANDLE, ascii(text));
}

static uint64_t string_wide(uint64_t domain, const int32_t *text)
{
    uint64_t (*next)(uint64_t, const int32_t *) = (uint64_t(*)(uint64_t, const int32_t *))next_core2[11];
    return name_add(next ? next(domain, text) : 0, 0, NAME_HANDLE, wide(text));
}

#define F(function) ((nvtx_function)(function))
static const nvtx_function core[CORE_SLOTS] = {
    [1] = F(mark_ex),    [2] = F(mark_ascii),      [3] = F(mark_wide),      [4] = F(start_ex),   [5] = F(start_ascii),
    [6] = F(start_wide), [7] = F(range_end),       [8] = F(push_ex),        [9] = F(push_ascii), [10] = F(push_wide),
    [11] = F(range_pop), [12] = F(category_ascii), [13] = F(category_wide),
};
static const nvtx_function core2[CORE2_SLOTS] = {
    [1] = F(domain_mark),  [2] = F(domain_start),          [3] = F(domain_end),           [4] = F(domain_push),
    [5] = F(domain_pop),   [8] = F(domain_category_ascii), [9] = F(domain_category_wide), [10] = F(string_ascii),
    [11] = F(string_wide), [12] = F(domain_create_ascii),  [13] = F(domain_create_wide),
};

static int module_table(const struct nvtx_callbacks *callbacks, int module, nvtx_function ***table, unsigned *size)
{
    *size = 0;
    return callbacks->module_table(module, table, size) && *table;
}

static void slots_read(const struct nvtx_callbacks *callbacks, int module, nvtx_function *to, unsigned count)
{
    nvtx_function **table;
    unsigned size;
    if (module_table(callbacks, module, &table, &size))
        for (unsigned i = 1; i < count && i < size; i++)
            to[i] = table[i] ? *table[i] : NULL;
}

static void slots_take(const struct nvtx_callbacks *callbacks, int module, const nvtx_function *before,
                       const nvtx_function *ours, nvtx_function *next, unsigned count)
{
    nvtx_function **table;
    unsigned size;
    if (module_table(callbacks, module, &table, &size))
        for (unsigned i = 1; i < count && i < size; i++)
            if (ours[i] && table[i])
                take(table[i], before[i], ours[i], &next[i]);
}

EXPORT int InitializeInjectionNvtx2(nvtx_export_table *get);
EXPORT int InitializeInjectionNvtx2(nvtx_export_table *get)
{
    const struct nvtx_callbacks *callbacks = get ? get(NVTX_TABLE_CALLBACKS) : NULL;
    initialize_core *tool = (initialize_core *)users_tool("InitializeInjectionNvtx2");
    nvtx_function before[CORE_SLOTS] = {NULL}, before2[CORE2_SLOTS] = {NULL};
    if (!gate.on || !callbacks || callbacks->struct_size < sizeof *callbacks)
        return tool ? tool(get) : 0;
    slots_read(callbacks, NVTX_MODULE_CORE, before, CORE_SLOTS);
    slots_read(callbacks, NVTX_MODULE_CORE2, before2, CORE2_SLOTS);
    if (tool)
        tool(get);
    slots_take(callbacks, NVTX_MODULE_CORE, before, core, next_core, CORE_SLOTS);
    slots_take(callbacks, NVTX_MODULE_CORE2, before2, core2, next_core2, CORE2_SLOTS);
    return 1;
}

/* --- the memory extension --- */

static void sub(struct unwind_state s, unsigned hook, unsigned call, uint64_t pool, const void *p, size_t size_bytes,
                unsigned count)
{
    uint64_t arguments[] = {pool, (uint64_t)p, size_bytes};
    call_record(s, hook, call, WIRE_DEVICE_UNKNOWN, arguments, count, NULL);
}

/* The heap's handle is the next tool's, or the address of its memory. */
static uint64_t heap_register(uint64_t domain, const struct nvtx_heap *h)
{
    HERE();
    uint64_t (*next)(uint64_t, const struct nvtx_heap *) =
        (uint64_t(*)(uint64_t, const struct nvtx_heap *))next_memory[NVTX_HEAP_REGISTER];
    uint64_t heap = next ? next(domain, h) : 0;
    if (!h || h->struct_size < sizeof *h || h->usage != NVTX_HEAP_SUB_ALLOCATOR ||
        h->type != NVTX_TYPE_VIRTUAL_ADDRESS || !h->range || h->range_bytes < sizeof *h->range)
        return heap;
    if (!heap)
        heap = (uint64_t)h->range->address;
    struct call_text name = message_text((int)h->message_type, h->message);
    call_record(s, 0, WIRE_CALL_SUB_POOL, WIRE_DEVICE_UNKNOWN, &heap, 1, &name);
    sub(s, WIRE_HOOK_nvtxMemHeapRegister, WIRE_CALL_SUB_SEGMENT, heap, h->range->address, h->range->size_bytes, 3);
    return heap;
}

#define HEAP_FUNCTION(name, slot, call)                                                                                \
    static void name(uint64_t domain, uint64_t heap)                                                                   \
    {                                                                                                                  \
        HERE();                                                                                                        \
        sub(s, 0, call, heap, NULL, 0, 1);                                                                             \
        void (*next)(uint64_t, uint64_t) = (void (*)(uint64_t, uint64_t))next_memory[slot];                            \
        if (next)                                                                                                      \
            next(domain, heap);                                                                                        \
    }
HEAP_FUNCTION(heap_unregister, NVTX_HEAP_UNREGISTER, WIRE_CALL_SUB_POOL_END)
HEAP_FUNCTION(heap_reset, NVTX_HEAP_RESET, WIRE_CALL_SUB_RESET)

/* How later calls may name a region. */
static void region_remember(uint64_t handle, const void *address)
{
    struct name *name = name_new(handle, 0, NAME_REGION);
    if (!name)
        return;
    name->address = address;
    name_publish(name);
}

static const void *region_address(uint32_t ref_type, uint64_t ref)
{
    const struct name *n = ref_type == NVTX_REF_HANDLE ? name_find(ref, 0, NAME_REGION) : NULL;
    return n ? n->address : (const void *)ref;
}

static void regions_register(uint64_t domain, const struct nvtx_regions *r)
{
    HERE();
    void (*next)(uint64_t, const struct nvtx_regions *) =
        (void (*)(uint64_t, const struct nvtx_regions *))next_memory[NVTX_REGIONS_REGISTER];
    if (next)
        next(domain, r);
    if (!r || r->struct_size < sizeof *r || r->type != NVTX_TYPE_VIRTUAL_ADDRESS ||
        r->element_bytes < sizeof(struct nvtx_range))
        return;
    for (size_t i = 0; i < r->count; i++) {
        const struct nvtx_range *range = (const void *)((const char *)r->elements + i * r->element_bytes);
        sub(s, WIRE_HOOK_nvtxMemRegionsRegister, WIRE_CALL_SUB_ALLOC, r->heap, range->address, range->size_bytes, 3);
        if (!r->handles)
            continue;
        if (!next)
            r->handles[i] = (uint64_t)range->address;
        else if (r->handles[i] != (uint64_t)range->address)
            region_remember(r->handles[i], range->address);
    }
}

static void regions_resize(uint64_t domain, const struct nvtx_resize *r)
{
    HERE();
    if (r && r->struct_size >= sizeof *r && r->type == NVTX_TYPE_VIRTUAL_ADDRESS &&
        r->element_bytes >= sizeof(struct nvtx_range))
        for (size_t i = 0; i < r->count; i++) {
            const struct nvtx_range *range = (const void *)((const char *)r->elements + i * r->element_bytes);
            sub(s, WIRE_HOOK_nvtxMemRegionsResize, WIRE_CALL_SUB_RESIZE, 0, range->address, range->size_bytes, 3);
        }
    void (*next)(uint64_t, const struct nvtx_resize *) =
        (void (*)(uint64_t, const struct nvtx_resize *))next_memory[NVTX_REGIONS_RESIZE];
    if (next)
        next(domain, r);
}

static void regions_unregister(uint64_t domain, const struct nvtx_refs *r)
{
    HERE();
    if (r && r->struct_size >= sizeof *r && r->element_bytes >= sizeof(uint64_t))
        for (size_t i = 0; i < r->count; i++) {
            const uint64_t *ref = (const void *)((const char *)r->elements + i * r->element_bytes);
            sub(s, 0, WIRE_CALL_SUB_FREE, 0, region_address(r->ref_type, *ref), 0, 2);
        }
    void (*next)(uint64_t, const struct nvtx_refs *) =
        (void (*)(uint64_t, const struct nvtx_refs *))next_memory[NVTX_REGIONS_UNREGISTER];
    if (next)
        next(domain, r);
}

static void regions_name(uint64_t domain, const struct nvtx_names *r)
{
    HERE();
    if (r && r->struct_size >= offsetof(struct nvtx_names, reserved_too) &&
        r->element_bytes >= sizeof(struct nvtx_region_name))
        for (size_t i = 0; i < r->count; i++) {
            const struct nvtx_region_name *n = (const void *)((const char *)r->elements + i * r->element_bytes);
            uint64_t address = (uint64_t)region_address(n->ref_type, n->region);
            struct call_text text = message_text((int)n->message_type, n->message);
            call_record(s, 0, WIRE_CALL_NAME, WIRE_DEVICE_UNKNOWN, &address, 1, &text);
        }
    void (*next)(uint64_t, const struct nvtx_names *) =
        (void (*)(uint64_t, const struct nvtx_names *))next_memory[NVTX_REGIONS_NAME];
    if (next)
        next(domain, r);
}

static const nvtx_function memory[NVTX_MEMORY_SLOTS] = {
    [NVTX_HEAP_REGISTER] = F(heap_register),   [NVTX_HEAP_UNREGISTER] = F(heap_unregister),
    [NVTX_HEAP_RESET] = F(heap_reset),         [NVTX_REGIONS_REGISTER] = F(regions_register),
    [NVTX_REGIONS_RESIZE] = F(regions_resize), [NVTX_REGIONS_UNREGISTER] = F(regions_unregister),
    [NVTX_REGIONS_NAME] = F(regions_name),
};

EXPORT int InitializeInjectionNvtxExtension(struct nvtx_extension *e);
EXPORT int InitializeInjectionNvtxExtension(struct nvtx_extension *e)
{
    initialize_extension *tool = (initialize_extension *)users_tool("InitializeInjectionNvtxExtension");
    int ours = gate.on && e && e->struct_size >= sizeof *e && e->module == NVTX_EXTENSION_MEMORY &&
               e->compatible == NVTX_MEMORY_COMPATIBLE && e->segment_count && e->segments && e->segments[0].slots;
    if (!ours)
        return tool ? tool(e) : 0;
    nvtx_function before[NVTX_MEMORY_SLOTS] = {NULL};
    nvtx_function *slots = (nvtx_function *)e->segments[0].slots;
    size_t count = e->segments[0].slot_count < NVTX_MEMORY_SLOTS ? e->segments[0].slot_count : NVTX_MEMORY_SLOTS;
    for (size_t i = 0; i < count; i++)
        before[i] = slots[i];
    if (tool)
        tool(e);
    for (size_t i = 0; i < count; i++)
        take(&slots[i], before[i], memory[i], &next_memory[i]);
    return 1;
}
