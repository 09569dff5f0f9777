#include "stacks.h"

#include "../../common/array.h"
#include "../../common/hash.h"
#include "../../common/search.h"
#include "../wire.h"
#include "nodes.h"
#include "python.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- open addressing over ids: the arrays hold the keys --- */

struct index {
    uint32_t *slots; /* id; 0: free */
    uint32_t mask;
    uint32_t count;
};

struct address {
    uint64_t offset;
    uint32_t module; /* id of a struct key; UNKNOWN | process_id where no module is known; NAMED */
};
#define UNKNOWN 0x80000000u
#define NAMED   0xffffffffu /* the offset is a number with the highest bit set: no program's address */

struct key { /* a file by path and build-id */
    char *path;
    char *build_id;     /* NULL: none */
    uint32_t module_id; /* the row that its addresses name: the first process's */
};

struct stacks {
    struct store *store;
    struct nodes *nodes;
    struct address *addresses;
    struct key *keys;
    struct index address_index, key_index;
    uint32_t address_room, key_room;
    uint32_t module_rows;
    uint64_t generation; /* changes with the modules of any process */
};

static uint64_t address_hash(const struct stacks *s, uint32_t id)
{
    return hash_pair(s->addresses[id].offset, s->addresses[id].module);
}

static uint64_t key_hash(const struct stacks *s, uint32_t id)
{
    return hash_text(hash_text(HASH_START, s->keys[id].path), s->keys[id].build_id);
}

typedef uint64_t hash_fn(const struct stacks *s, uint32_t id);

static void index_put(struct index *x, uint64_t hash, uint32_t id)
{
    uint32_t i = (uint32_t)hash & x->mask;
    while (x->slots[i])
        i = (i + 1) & x->mask;
    x->slots[i] = id;
}

/* Room for one more id; the new one may then be put. */
static void index_grow(const struct stacks *s, struct index *x, hash_fn *hash)
{
    if (x->slots && x->count * 2ull < x->mask)
        return;
    struct index larger = {.mask = x->slots ? x->mask * 2 + 1 : 1023, .count = x->count};
    larger.slots = xcalloc((unsigned long)larger.mask + 1, sizeof *larger.slots);
    for (uint32_t i = 0; x->slots && i <= x->mask; i++)
        if (x->slots[i])
            index_put(&larger, hash(s, x->slots[i]), x->slots[i]);
    free(x->slots);
    *x = larger;
}

/* The next id of an array that grows by doubling; ids begin at 1. */
static uint32_t next_id(void **array, size_t element_bytes, uint32_t *room, uint32_t count)
{
    uint32_t id = count + 1;
    if (id >= UNKNOWN)
        bug("too many addresses");
    size_t capacity = *room;
    if (id >= capacity)
        *array = array_grow(*array, id + 1ul, &capacity, element_bytes, 0);
    *room = (uint32_t)capacity;
    return id;
}

struct stacks *stacks_open(struct store *store)
{
    struct stacks *s = xcalloc(1, sizeof *s);
    s->store = store;
    s->nodes = nodes_open(store);
    return s;
}

void stacks_close(struct stacks *s)
{
    if (!s)
        return;
    for (uint32_t i = 1; i <= s->key_index.count; i++) {
        free(s->keys[i].path);
        free(s->keys[i].build_id);
    }
    free(s->address_index.slots);
    free(s->key_index.slots);
    nodes_close(s->nodes);
    free(s->addresses);
    free(s->keys);
    free(s);
}

static uint32_t address_intern(struct stacks *s, uint32_t module, uint64_t offset)
{
    struct index *x = &s->address_index;
    index_grow(s, x, address_hash);
    uint32_t i = (uint32_t)hash_pair(offset, module) & x->mask;
    for (; x->slots[i]; i = (i + 1) & x->mask)
        if (s->addresses[x->slots[i]].offset == offset && s->addresses[x->slots[i]].module == module)
            return x->slots[i];
    uint32_t id = next_id((void **)&s->addresses, sizeof *s->addresses, &s->address_room, x->count);
    s->addresses[id] = (struct address){offset, module};
    x->slots[i] = id;
    x->count++;
    sqlite3_stmt *q = store_statement(s->store, "INSERT INTO address VALUES(?, ?, ?)");
    sqlite3_bind_int64(q, 1, id);
    if (module & UNKNOWN)
        sqlite3_bind_null(q, 2);
    else
        sqlite3_bind_int64(q, 2, s->keys[module].module_id);
    sqlite3_bind_int64(q, 3, (int64_t)offset);
    store_step(s->store, q);
    return id;
}

uint32_t stacks_named_address(struct stacks *s, uint32_t number)
{
    return address_intern(s, NAMED, 1ull << 63 | number);
}

uint32_t stacks_node(struct stacks *s, uint32_t caller, unsigned flags, uint32_t address_id)
{
    return nodes_child(s->nodes, caller ? caller : NODES_ROOT + (flags & 15), address_id);
}

void stacks_write(struct stacks *s)
{
    nodes_write(s->nodes);
}

static int same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static uint32_t key_intern(struct stacks *s, const char *path, const char *build_id, uint32_t module_id)
{
    struct index *x = &s->key_index;
    index_grow(s, x, key_hash);
    uint64_t hash = hash_text(hash_text(HASH_START, path), build_id);
    uint32_t i = (uint32_t)hash & x->mask;
    for (; x->slots[i]; i = (i + 1) & x->mask)
        if (same_text(s->keys[x->slots[i]].path, path) && same_text(s->keys[x->slots[i]].build_id, build_id))
            return x->slots[i];
    uint32_t id = next_id((void **)&s->keys, sizeof *s->keys, &s->key_room, x->count);
    s->keys[id] = (struct key){xstrdup(path), xstrdup_if(build_id), module_id};
    x->slots[i] = id;
    x->count++;
    return id;
}

/* --- modules of one process --- */

struct loaded {
    uint64_t start, end, bias;
    uint32_t number, key, module_id;
};

#define MODULES_MAX 65536u /* no honest process has as many at once */
#define CACHE       1024u  /* a power of two */

struct stack_modules {
    struct stacks *stacks;
    struct python *python;
    uint32_t process_id;
    struct loaded *loaded; /* those mapped now, by start */
    uint32_t count, room;
    struct unknown { /* addresses that no module covered when they came */
        uint64_t address;
        uint32_t id;
    } * unknown;
    uint32_t unknown_count, unknown_room;
    struct {
        uint64_t address;
        uint32_t id;
    } cache[CACHE];
};

struct stack_path {
    const struct stack_modules *modules; /* that the nodes were made with, */
    uint64_t generation;                 /* and when */
    unsigned flags;
    uint32_t count;
    struct {
        uint64_t address;
        uint32_t node;
    } frames[WIRE_STACK_MAX]; /* outermost first */
};

struct stack_map *stack_map_open(struct stacks *stacks, uint32_t process_id, struct python *python)
{
    struct stack_map *map = xcalloc(1, sizeof *map);
    map->modules = xcalloc(1, sizeof *map->modules);
    map->modules->stacks = stacks;
    map->modules->process_id = process_id;
    map->modules->python = python;
    return map;
}

void stack_map_close(struct stack_map *map)
{
    if (!map)
        return;
    free(map->modules->loaded);
    free(map->modules->unknown);
    free(map->modules);
    free(map->ids);
    free(map);
}

/* The last module that starts before the address: a return address may be its module's very end. */
static const struct loaded *covering(const struct stack_modules *m, uint64_t address)
{
    const uint32_t low = SEARCH_FIRST(m->count, i, m->loaded[i].start < address);
    return low && address <= m->loaded[low - 1].end ? &m->loaded[low - 1] : NULL;
}

static uint32_t address_of(struct stack_modules *m, uint64_t address)
{
    unsigned slot = (unsigned)(address >> 1 ^ address >> 11) & (CACHE - 1);
    if (m->cache[slot].address == address && m->cache[slot].id)
        return m->cache[slot].id;
    if (WIRE_IS_PYTHON(address) && m->python)
        return python_address(m->python, address);
    const struct loaded *l = covering(m, address);
    uint32_t before = m->stacks->address_index.count, id;
    if (l) {
        id = address_intern(m->stacks, l->key, address - l->bias);
    } else {
        id = address_intern(m->stacks, UNKNOWN | m->process_id, address);
        if (m->stacks->address_index.count != before) {
            *ARRAY_ADD(m->unknown, m->unknown_count, m->unknown_room) = (struct unknown){address, id};
        }
    }
    m->cache[slot].address = address;
    m->cache[slot].id = id;
    return id;
}

/* Ids come one by one; a few are lost to threads that define the same stack at once, or to full rings. */
static int room_for(struct stack_map *map, uint32_t id)
{
    if (id && id < map->limit)
        return 0;
    if (id == 0 || id >= 65536ull + 64ull * map->defined)
        return -EINVAL;
    ARRAY_ROOM_ZERO(map->ids, id + 1ul, map->limit);
    return 0;
}

struct stack_path *stack_path_open(void)
{
    return xcalloc(1, sizeof(struct stack_path));
}

void stack_path_close(struct stack_path *path)
{
    free(path);
}

/* Nodes of the frames from known on: those before them have the node that they had. */
static uint32_t follow(struct stack_modules *m, struct stack_path *path, unsigned flags, uint32_t known)
{
    uint32_t node = known ? path->frames[known - 1].node : NODES_ROOT + (flags & 15);
    for (uint32_t k = known; k < path->count; k++)
        path->frames[k].node = node = nodes_child(m->stacks->nodes, node, address_of(m, path->frames[k].address));
    path->modules = m;
    path->generation = m->stacks->generation;
    path->flags = flags;
    return node;
}

int stack_map_define(struct stack_map *map, struct stack_path *path, uint32_t id, unsigned flags, uint32_t shared,
                     const uint64_t *addresses, size_t count)
{
    struct stack_modules *m = map->modules;
    struct stack_path whole;
    int rc = room_for(map, id);
    if (!path) {
        whole.modules = NULL;
        whole.count = 0;
        path = &whole;
    }
    if (shared > path->count || count > WIRE_STACK_MAX - shared)
        return -EINVAL;
    int stands = path->modules == m && path->generation == m->stacks->generation && path->flags == flags;
    for (size_t i = 0; i < count; i++)
        path->frames[shared + i].address = addresses[count - 1 - i];
    path->count = shared + (uint32_t)count;
    if (!path->count)
        return rc;
    uint32_t node = follow(m, path, flags, stands ? shared : 0);
    if (rc || map->ids[id])
        return rc;
    map->ids[id] = node;
    map->defined++;
    return 0;
}

/* Addresses that came before their module; the rows are corrected in place. */
static void resolve_unknown(struct stack_modules *m, const struct loaded *l)
{
    struct stacks *s = m->stacks;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->unknown_count; i++) {
        struct unknown u = m->unknown[i];
        if (u.address <= l->start || u.address > l->end) {
            m->unknown[kept++] = u;
            continue;
        }
        sqlite3_stmt *q =
            store_statement(s->store, "UPDATE address SET module_id = ?, offset = ? WHERE address_id = ?");
        sqlite3_bind_int64(q, 1, s->keys[l->key].module_id);
        sqlite3_bind_int64(q, 2, (int64_t)(u.address - l->bias));
        sqlite3_bind_int64(q, 3, u.id);
        store_step(s->store, q);
    }
    m->unknown_count = kept;
}

static char *hexadecimal(const uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    if (!count)
        return NULL;
    char *text = xmalloc(count * 2 + 1);
    for (size_t i = 0; i < count; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[count * 2] = 0;
    return text;
}

static void module_row(struct stacks *s, const struct loaded *l, uint32_t process_id, const char *path,
                       const char *build_id, int64_t time_ns)
{
    sqlite3_stmt *q =
        store_statement(s->store, "INSERT INTO module(module_id, process_id, path, build_id, start_address, "
                                  "end_address, bias, load_ns) VALUES(?, ?, ?, ?, ?, ?, ?, ?)");
    sqlite3_bind_int64(q, 1, l->module_id);
    sqlite3_bind_int64(q, 2, process_id);
    sqlite3_bind_text(q, 3, path, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(q, 4, build_id, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(q, 5, (int64_t)l->start);
    sqlite3_bind_int64(q, 6, (int64_t)l->end);
    sqlite3_bind_int64(q, 7, (int64_t)l->bias);
    sqlite3_bind_int64(q, 8, time_ns);
    store_step(s->store, q);
}

/* Its names come with the addresses: nobody looks for them in a file of that name here. */
static void named_elsewhere(struct stacks *s, uint32_t module_id)
{
    sqlite3_stmt *q = store_statement(s->store, "UPDATE module SET symbols = 'imported' WHERE module_id = ?");
    sqlite3_bind_int64(q, 1, module_id);
    store_step(s->store, q);
}

uint32_t stacks_code_address(struct stacks *s, uint32_t process_id, const char *path, const char *build_id,
                             uint64_t offset, int *is_new)
{
    uint32_t before = s->address_index.count, key = UNKNOWN | process_id;
    if (path) {
        struct loaded l = {.module_id = s->module_rows + 1};
        uint32_t keys = s->key_index.count;
        key = key_intern(s, path, build_id, l.module_id);
        if (s->key_index.count != keys) {
            s->module_rows++;
            module_row(s, &l, process_id, path, build_id, 0);
            named_elsewhere(s, l.module_id);
        }
    }
    uint32_t id = address_intern(s, key, offset & INT64_MAX); /* negative ones name themselves */
    *is_new = s->address_index.count != before;
    return id;
}

/* What addresses mean has changed. */
static void forget(struct stack_modules *m)
{
    memset(m->cache, 0, sizeof m->cache);
    m->stacks->generation++;
}

static void unload_at(struct stack_modules *m, uint32_t at, int64_t time_ns)
{
    sqlite3_stmt *q = store_statement(m->stacks->store, "UPDATE module SET unload_ns = ? WHERE module_id = ?");
    sqlite3_bind_int64(q, 1, time_ns);
    sqlite3_bind_int64(q, 2, m->loaded[at].module_id);
    store_step(m->stacks->store, q);
    memmove(m->loaded + at, m->loaded + at + 1, (m->count - at - 1) * sizeof *m->loaded);
    m->count--;
    forget(m);
}

void stack_map_load(struct stack_map *map, const struct stack_module *module, int64_t time_ns)
{
    struct stack_modules *m = map->modules;
    struct stacks *s = m->stacks;
    if (module->end <= module->start || m->count == MODULES_MAX)
        return;
    for (uint32_t i = 0; i < m->count; i++)
        if (m->loaded[i].number == module->number)
            return;
    /* what lies there now was unloaded without our seeing it */
    for (uint32_t i = m->count; i-- > 0;)
        if (m->loaded[i].start < module->end && module->start < m->loaded[i].end)
            unload_at(m, i, time_ns);
    ARRAY_ROOM(m->loaded, m->count + 1ul, m->room);
    char *build_id = hexadecimal(module->build_id, module->build_id_bytes);
    struct loaded l = {module->start, module->end, module->bias, module->number, 0, ++s->module_rows};
    module_row(s, &l, m->process_id, module->path, build_id, time_ns);
    l.key = key_intern(s, module->path, build_id, l.module_id);
    free(build_id);
    uint32_t at = m->count++;
    for (; at > 0 && m->loaded[at - 1].start > l.start; at--)
        m->loaded[at] = m->loaded[at - 1];
    m->loaded[at] = l;
    forget(m);
    resolve_unknown(m, &l);
}

void stack_map_unload(struct stack_map *map, uint32_t number, int64_t time_ns)
{
    struct stack_modules *m = map->modules;
    for (uint32_t i = 0; i < m->count; i++)
        if (m->loaded[i].number == number) {
            unload_at(m, i, time_ns);
            return;
        }
}
