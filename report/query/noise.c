#include "noise.h"

#include "../../common/array.h"
#include "arena_table.h"
#include "noise_frame.h"

#include <stdlib.h>

const char *const noise_texts[NOISE_KINDS] = {
    [NOISE_LIBRARY] = "the C, C++, Rust and OpenMP libraries' own: start-up, threads, buffers, caches",
    [NOISE_INTERPRETER] = "Python's own: its start-up, what it imported, interned strings and types",
    [NOISE_ARENA] = "an allocator within the program, whose blocks were not seen: its mappings",
};

#define NODES_KNOWN     (1 << 24) /* by id, as the collector gives them */
#define ADDRESSES_KNOWN (1 << 20)

/* What a node and its callers tell; stacks share most of theirs. */
enum {
    IS_KNOWN = 1,
    IS_START_UP = 2, /* the interpreter initializes itself */
    IS_IMPORT = 4,   /* an import runs the frames, and no code but of libraries lies between */
    IS_OWN = 8,      /* the interpreter's own, by what was met further in: shifted by enum met */
    OUTER = 32,      /* different IS_IMPORT and IS_OWN, */
    OUTER_SHIFT = 2, /* above these bits */
};

/* From a node outwards to the first frame of Python. */
enum met { MET_INTERPRETER = 1, MET_LIBRARY = 2, MET_ALL = 4 };

struct noise {
    struct walk *walk;
    uint8_t *known;
    size_t known_room;
    uint8_t (*by_outer)[OUTER]; /* by address_id: what it tells, by what its caller does; 0: not known yet */
    size_t by_outer_room;
    struct arena_table arena_table;
    struct noise_frames frames;
};

/* What the frames of an address say, innermost first. */
struct traits {
    const uint16_t *of;
    int count;
};

/* What the frames from first on say, of which the first that is not a library's, or an import's own, says it; beyond:
 * what lies further out. */
static int is_import(struct traits traits, int first, int beyond)
{
    for (int i = first; i < traits.count; i++) {
        if (!(traits.of[i] & FRAME_LIBRARY))
            return 0;
        if (traits.of[i] & FRAME_IMPORT)
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
        free(n->by_outer);
        arena_table_close(&n->arena_table);
        noise_frames_close(&n->frames);
    }
    free(n);
}

/* Whether a block is the interpreter's own, from this node outwards; outer: what the node that called it tells. */
static int is_own(struct traits traits, unsigned met, int outer)
{
    for (int i = 0; i < traits.count; i++) {
        const unsigned trait = traits.of[i];
        if (trait & FRAME_PYTHON)
            return is_import(traits, i, outer & IS_IMPORT) != 0;
        if (!(met & MET_LIBRARY) && (trait & FRAME_INTERNED))
            return 1;
        if (!(trait & FRAME_LIBRARY))
            return 0;
        met |= (trait & FRAME_OWN ? 0 : MET_LIBRARY) | (trait & FRAME_INTERPRETER ? MET_INTERPRETER : 0);
    }
    return (outer & IS_OWN << met) != 0;
}

/* What one node tells, by what its caller does. */
static int tell_node(struct noise *n, int64_t address_id, int outer)
{
    struct traits traits;
    traits.of = noise_frames(&n->frames, n->walk, address_id, &traits.count);
    int told = IS_KNOWN | (outer & IS_START_UP) | (is_import(traits, 0, outer & IS_IMPORT) ? IS_IMPORT : 0);
    for (int i = 0; i < traits.count; i++)
        told |= traits.of[i] & FRAME_START_UP ? IS_START_UP : 0;
    for (unsigned met = 0; met < MET_ALL; met++)
        told |= is_own(traits, met, outer) ? IS_OWN << met : 0;
    return told;
}

/* The same, each address once for all that may be outside of it: there are many times as many nodes. */
static int tell_address(struct noise *n, int64_t address_id, int outer)
{
    if (address_id < 0 || address_id >= ADDRESSES_KNOWN)
        return tell_node(n, address_id, outer);
    ARRAY_ROOM_ZERO(n->by_outer, (size_t)address_id + 1, n->by_outer_room);
    uint8_t *told = &n->by_outer[address_id][outer >> OUTER_SHIFT];
    if (!*told)
        *told = (uint8_t)tell_node(n, address_id, outer & ~IS_START_UP);
    return *told | (outer & IS_START_UP);
}

/* Of a node with all its callers. */
static int tell(struct noise *n, int64_t stack_id, struct error *err)
{
    struct {
        int64_t id, address_id;
    } path[WALK_FRAMES_MAX];
    int depth = 0, told = IS_KNOWN | IS_OWN << MET_INTERPRETER; /* where the stack ends */
    for (int64_t id = stack_id; id && depth < WALK_FRAMES_MAX;) {
        struct walk_node node;
        if (id > 0 && (uint64_t)id < n->known_room && n->known[id]) {
            told = n->known[id];
            break;
        }
        int rc = walk_node(n->walk, id, id != stack_id, &node, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            break;
        path[depth].id = id;
        path[depth++].address_id = node.address_id;
        id = node.parent_id;
    }
    while (depth-- > 0) {
        told = tell_address(n, path[depth].address_id, told);
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
    struct walk_node node;
    struct traits traits; /* of its address */
    int64_t next_id;      /* the node behind it; 0: none */
    int i;                /* the frame in it */
    int depth, count;
};

/* What the next one says: 1; 0: there is none left; -errno. */
static int next_frame(struct frames *f, unsigned *traits, struct error *err)
{
    while (f->i == f->traits.count) {
        if (!f->next_id || f->depth == WALK_FRAMES_MAX || f->count >= WALK_FRAMES_MAX) {
            f->node.is_cut |= f->next_id != 0;
            return 0;
        }
        int rc = walk_node(f->noise->walk, f->next_id, f->depth > 0, &f->node, err);
        f->next_id = rc == 1 ? f->node.parent_id : 0;
        if (rc != 1)
            return rc;
        f->traits.of = noise_frames(&f->noise->frames, f->noise->walk, f->node.address_id, &f->traits.count);
        f->depth++;
        f->i = 0;
    }
    *traits = f->traits.of[f->i++];
    f->count++;
    return 1;
}

static int is_library(struct noise *n, int64_t stack_id, struct error *err)
{
    struct frames f = {.noise = n, .next_id = stack_id};
    unsigned traits, once = 0, rust = 0, instance = 0;
    int rc;
    while ((rc = next_frame(&f, &traits, err)) == 1) {
        rust = rust ? rust : traits & (FRAME_RUST_START | FRAME_NO_RUST_START);
        if (rust & FRAME_RUST_START)
            return 1;
        instance |= traits & FRAME_INSTANCE;
        if ((traits & FRAME_ALLOCATOR) && !(traits & FRAME_OPENMP))
            continue;
        if (!(traits & (FRAME_OPENMP | FRAME_RUNTIME)))
            break;
        once |= traits & (FRAME_OPENMP | FRAME_ONCE);
    }
    if (rc < 0)
        return rc;
    /* nothing but these libraries, and all the way up: before main() */
    int is_start = rc == 0 && f.count > 0 && !instance && !f.node.is_cut && !f.node.is_unknown;
    return is_start || once;
}

static int is_interpreter(struct noise *n, int64_t stack_id, struct error *err)
{
    int told = tell(n, stack_id, err);
    if (told < 0 || (told & (IS_START_UP | IS_OWN)))
        return told < 0 ? told : 1;
    return arena_table_is(&n->arena_table, n->walk, stack_id, err);
}

static int is_arena(struct noise *n, int64_t stack_id, struct error *err)
{
    struct frames f = {.noise = n, .next_id = stack_id};
    unsigned traits = 0;
    int rc;
    while ((rc = next_frame(&f, &traits, err)) == 1 && (traits & FRAME_ALLOCATOR))
        ;
    return rc < 0 ? rc : rc == 1 && (traits & FRAME_TAKES_ARENA);
}

int noise_of(struct noise *n, int64_t stack_id, int is_map, struct error *err)
{
    int rc = is_library(n, stack_id, err);
    if (rc)
        return rc < 0 ? rc : NOISE_LIBRARY;
    rc = is_interpreter(n, stack_id, err);
    if (rc)
        return rc < 0 ? rc : NOISE_INTERPRETER;
    rc = is_map ? is_arena(n, stack_id, err) : 0;
    return rc > 0 ? NOISE_ARENA : rc;
}
