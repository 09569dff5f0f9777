/* The model of devices against a second one: random sequences of calls that a driver would allow; active, allocated and
 * reserved bytes of every device and kind are equal after each. The second model keeps plain lists of what is there and
 * adds them up anew every time. Then: words that make no sense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../common/kind.h"
#include "../../profiler/collect/devices.h"
#include "../../profiler/wire.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES 4u           /* 0: the host; two GPUs; then what is foreign on each */
#define SLOT    0x1000000ull /* no block is larger */
#define SLOTS   64u

/* --- what the events say --- */

struct shown {
    struct {
        uint64_t address, size;
        unsigned device, kind, pending;
    } blocks[4096];
    unsigned block_count;
    struct {
        uint64_t address, size;
        unsigned device, kind;
    } segments[4096];
    unsigned segment_count;
    uint64_t sampled[256][KIND_COUNT];
    uint64_t unmatched, transfers[8], transfer_bytes[8], used, total, oom;
    unsigned transfer_device;
} shown;

static unsigned space(unsigned kind)
{
    return kind == KIND_pool || kind == KIND_managed ? (unsigned)KIND_device : kind;
}

static long find_block(const struct event *e)
{
    for (unsigned i = 0; i < shown.block_count; i++)
        if (shown.blocks[i].address == e->address && space(shown.blocks[i].kind) == space(e->kind))
            return i;
    return -1;
}

static void take(void *arg, const struct event *e)
{
    (void)arg;
    long i = find_block(e);
    switch (e->op) {
    case EVENT_ALLOC:
    case EVENT_REALLOC_ALLOC:
        assert_true(i < 0 && shown.block_count < 4096);
        i = shown.block_count++;
        shown.blocks[i].address = e->address;
        shown.blocks[i].size = e->size_bytes;
        shown.blocks[i].device = e->device;
        shown.blocks[i].kind = e->kind;
        shown.blocks[i].pending = 0;
        break;
    case EVENT_FREE:
    case EVENT_REALLOC_FREE:
    case EVENT_TO_SEGMENT:
        if (i < 0)
            shown.unmatched++;
        else
            shown.blocks[i] = shown.blocks[--shown.block_count];
        break;
    case EVENT_FREE_REQUESTED:
        assert_true(i >= 0 && !shown.blocks[i].pending);
        shown.blocks[i].pending = 1;
        break;
    case EVENT_SEGMENT_ALLOC:
        if (e->is_sampled)
            break;
        assert_true(shown.segment_count < 4096);
        shown.segments[shown.segment_count].address = e->address;
        shown.segments[shown.segment_count].size = e->size_bytes;
        shown.segments[shown.segment_count].device = e->device;
        shown.segments[shown.segment_count++].kind = e->kind;
        break;
    case EVENT_SEGMENT_FREE:
        for (unsigned k = 0; k < shown.segment_count && !e->is_sampled; k++)
            if (shown.segments[k].address == e->address) {
                assert_int_equal(shown.segments[k].size, e->size_bytes);
                shown.segments[k] = shown.segments[--shown.segment_count];
            }
        break;
    case EVENT_RESERVED:
        shown.sampled[e->device][e->kind] = e->size_bytes;
        break;
    case EVENT_DEVICE_USED:
        shown.used = e->size_bytes;
        shown.total = e->address;
        break;
    case EVENT_OOM:
        shown.oom++;
        break;
    }
}

static unsigned device_of(void *arg, unsigned ordinal, const uint64_t *uuid, uint64_t total_bytes, const char *model)
{
    (void)arg, (void)uuid, (void)total_bytes, (void)model;
    return (ordinal + 1) & 255;
}

static unsigned foreign_of(void *arg, unsigned device_id)
{
    (void)arg;
    return (device_id + 2) & 255;
}

static uint64_t map_of(void *arg, uint64_t address)
{
    (void)arg;
    return address & 1ull << 40 ? 1ull << 40 : 0;
}

static char newest_name[64];
static uint64_t newest_address;
static void name_of(void *arg, uint64_t address, const char *name)
{
    (void)arg;
    newest_address = address;
    snprintf(newest_name, sizeof newest_name, "%s", name);
}

static void transfer(void *arg, unsigned device_id, unsigned direction, uint64_t bytes)
{
    (void)arg;
    assert_true(direction < 8);
    shown.transfers[direction]++;
    shown.transfer_bytes[direction] += bytes;
    shown.transfer_device = device_id;
}

static struct devices *devices;
static unsigned thread_id;

static int apply(unsigned call, unsigned device, unsigned kind, unsigned flags, int is_segment, unsigned count, ...)
{
    static const struct devices_sink sink = {NULL, take, device_of, foreign_of, map_of, name_of, transfer};
    uint64_t words[8];
    va_list args;
    va_start(args, count);
    for (unsigned i = 0; i < count; i++)
        words[i] = va_arg(args, uint64_t);
    va_end(args);
    struct devices_call c = {.call = call,
                             .device = device,
                             .flags = flags,
                             .kind = kind,
                             .stack_id = 1,
                             .thread_id = thread_id,
                             .words = words,
                             .word_count = count,
                             .is_segment = is_segment};
    return devices_apply(devices, &c, &sink);
}
#define W(x)                                 ((uint64_t)(x))
#define CALL(name, device, kind, count, ...) apply(WIRE_CALL_##name, device, KIND_##kind, 0, 0, count, __VA_ARGS__)

/* --- the second model --- */

struct piece { /* memory: a plain block, a block of a pool, a mapping */
    int live, is_segment, is_pending, is_foreign;
    uint64_t size, context, stream;
    unsigned device, kind;
    int pool, object; /* index, or -1 */
};

struct model {
    struct piece pieces[SLOTS]; /* piece i lies at address (i) */
    struct {
        uint64_t size;
        int live;
        unsigned device;
    } arrays[16];
    struct {
        uint64_t handle, reserved;
        int is_known, is_graph, is_imported;
        unsigned device;
    } pools[12]; /* the first two: the graph memory of the devices */
    struct {
        uint64_t handles[3]; /* 0: none; each one reference */
        uint64_t size;
        unsigned device;
        int flags;
    } objects[16];
    struct {
        int exists;
        unsigned count;
        struct {
            unsigned slot, is_alloc, device;
            uint64_t size;
        } nodes[8];
    } graphs[8]; /* handle: 0x9000 + i */
    struct {
        uint64_t size; /* 0: none */
        unsigned pool, slot;
    } subs[64];             /* in segment slot, at offset i * 0x1000 */
    int sub_segment[SLOTS]; /* pool + 1 */
} m;

static uint64_t address_of(unsigned slot)
{
    return 0x7000000000ull + slot * SLOT;
}

static int any_slot(int live)
{
    for (unsigned tries = 0; tries < 50; tries++) {
        unsigned slot = (unsigned)rnd(SLOTS);
        if (m.pieces[slot].live == live)
            return (int)slot;
    }
    return -1;
}

static int is_mapped(int object)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (m.pieces[i].live && m.pieces[i].object == object)
            return 1;
    return 0;
}

static uint64_t pool_active(int pool)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < SLOTS; i++)
        if (m.pieces[i].live && m.pieces[i].pool == pool)
            sum += m.pieces[i].size;
    return sum;
}

/* What ends when a piece does. */
static void piece_ends(unsigned slot)
{
    struct piece *p = &m.pieces[slot];
    int pool = p->pool;
    p->live = 0;
    m.sub_segment[slot] = 0;
    for (unsigned i = 0; i < 64; i++)
        if (m.subs[i].size && m.subs[i].slot == slot)
            m.subs[i].size = 0;
    if (pool >= 0 && !m.pools[pool].is_known && !pool_active(pool))
        m.pools[pool].reserved = 0;
}

static void pool_grows(int pool)
{
    uint64_t active = pool_active(pool);
    if (m.pools[pool].reserved < active && !m.pools[pool].is_imported)
        m.pools[pool].reserved = active;
}

static void compare(const char *after)
{
    uint64_t active[DEVICES + 2] = {0}, allocated[DEVICES + 2] = {0}, reserved[DEVICES + 2] = {0};
    uint64_t s_active[DEVICES + 2] = {0}, s_allocated[DEVICES + 2] = {0}, s_reserved[DEVICES + 2] = {0};
    for (unsigned i = 0; i < SLOTS; i++) {
        const struct piece *p = &m.pieces[i];
        int is_silent = p->object >= 0 && m.objects[p->object].flags == WIRE_VMM_MULTICAST;
        if (!p->live || is_silent)
            continue;
        if (!p->is_segment) {
            active[p->device] += p->size;
            allocated[p->device] += p->is_pending ? 0 : p->size;
        }
        if (!p->is_foreign && (p->kind == KIND_device || p->kind == KIND_pinned))
            reserved[p->device] += p->size;
    }
    for (unsigned i = 0; i < 16; i++) {
        if (m.arrays[i].live) {
            active[m.arrays[i].device] += m.arrays[i].size;
            allocated[m.arrays[i].device] += m.arrays[i].size;
            reserved[m.arrays[i].device] += m.arrays[i].size;
        }
        int lives = m.objects[i].handles[0] || m.objects[i].handles[1] || m.objects[i].handles[2] || is_mapped((int)i);
        if (lives && !m.objects[i].flags)
            reserved[m.objects[i].device] += m.objects[i].size;
    }
    for (unsigned i = 0; i < 12; i++)
        reserved[m.pools[i].device] += m.pools[i].reserved;
    for (unsigned i = 0; i < 64; i++)
        if (m.subs[i].size) {
            active[m.pieces[m.subs[i].slot].device] += m.subs[i].size;
            allocated[m.pieces[m.subs[i].slot].device] += m.subs[i].size;
        }
    for (unsigned i = 0; i < shown.block_count; i++) {
        s_active[shown.blocks[i].device] += shown.blocks[i].size;
        s_allocated[shown.blocks[i].device] += shown.blocks[i].pending ? 0 : shown.blocks[i].size;
    }
    for (unsigned i = 0; i < shown.segment_count; i++)
        s_reserved[shown.segments[i].device] += shown.segments[i].size;
    for (unsigned i = 0; i < DEVICES + 1; i++) {
        for (unsigned k = 0; k < KIND_COUNT; k++)
            s_reserved[i] += shown.sampled[i][k];
        if (active[i] != s_active[i] || allocated[i] != s_allocated[i] || reserved[i] != s_reserved[i])
            fail_msg("after %s, device %u: active %lx, allocated %lx, reserved %lx; expected %lx, %lx, %lx", after, i,
                     (long)s_active[i], (long)s_allocated[i], (long)s_reserved[i], (long)active[i], (long)allocated[i],
                     (long)reserved[i]);
    }
    assert_int_equal(shown.unmatched, 0);
}

/* --- the calls --- */

static unsigned any_device(void)
{
    return 1 + (unsigned)rnd(2);
}

static const char *do_alloc(void)
{
    static const unsigned kinds[] = {KIND_device, KIND_device, KIND_managed, KIND_pinned};
    int slot = any_slot(0);
    unsigned device = any_device(), kind = kinds[rnd(4)];
    if (slot < 0)
        return NULL;
    uint64_t size = 1 + rnd(SLOT), context = 0x500 + device * 16 + rnd(2);
    apply(WIRE_CALL_ALLOC, device - 1, kind, 0, 0, 3, address_of((unsigned)slot), size, context);
    m.pieces[slot] = (struct piece){.live = 1,
                                    .size = size,
                                    .context = context,
                                    .device = kind == KIND_pinned ? 0 : device,
                                    .kind = kind,
                                    .pool = -1,
                                    .object = -1};
    return "ALLOC";
}

static void maybe_undo(const struct model *before, const char **what)
{
    if (rnd(6) == 0) {
        CALL(UNDO, 0, device, 0, 0);
        m = *before;
        *what = "UNDO";
    }
}

static const char *do_free(void)
{
    int slot = any_slot(1);
    const char *what = "FREE";
    if (slot < 0)
        return NULL;
    struct piece *p = &m.pieces[slot];
    if (p->object >= 0 || p->is_pending || p->is_foreign)
        return NULL;
    struct model before = m;
    int is_segment = p->is_segment;
    /* from another device's thread: it is matched by address */
    apply(WIRE_CALL_FREE, any_device() - 1, p->kind == KIND_pinned ? KIND_pinned : KIND_device, 0, 0, 1,
          address_of((unsigned)slot));
    piece_ends((unsigned)slot);
    if (!is_segment)
        maybe_undo(&before, &what);
    return what;
}

static const char *do_array(void)
{
    unsigned i = (unsigned)rnd(16);
    uint64_t handle = 0x550000 + i * 16; /* closer together than their sizes */
    const char *what = "array";
    struct model before = m;
    if (m.arrays[i].live) {
        CALL(FREE, 0, array, 1, handle);
        m.arrays[i].live = 0;
        maybe_undo(&before, &what);
        return what;
    }
    m.arrays[i].live = 1;
    m.arrays[i].device = any_device();
    m.arrays[i].size = rnd(1 << 20);
    CALL(ALLOC, m.arrays[i].device - 1, array, 3, handle, m.arrays[i].size, W(0));
    return what;
}

static const char *do_context_end(void)
{
    unsigned device = any_device();
    uint64_t context = 0x500 + device * 16 + rnd(2);
    int whole = rnd(4) == 0;
    CALL(CONTEXT_END, device - 1, device, 2, context, W(whole));
    for (unsigned i = 0; i < SLOTS; i++) {
        const struct piece *p = &m.pieces[i];
        if (p->live && p->context && (p->context == context || (whole && p->context >> 4 == context >> 4)))
            piece_ends(i);
    }
    return "CONTEXT_END";
}

/* Handles are never used twice while something of the old pool is live. */
static uint64_t next_handle = 0x100000;

static const char *do_pool(void)
{
    int i = 2 + (int)rnd(10);
    if (m.pools[i].is_known) {
        CALL(POOL_END, 0, pool, 1, m.pools[i].handle);
        m.pools[i].is_known = 0;
        if (!pool_active(i))
            m.pools[i].reserved = 0;
        return "POOL_END";
    }
    if (pool_active(i))
        return NULL;
    m.pools[i].device = any_device();
    m.pools[i].handle = next_handle++;
    m.pools[i].is_known = 1;
    m.pools[i].is_imported = rnd(5) == 0;
    CALL(POOL, m.pools[i].device - 1, pool, 2, m.pools[i].handle, W(m.pools[i].is_imported ? WIRE_POOL_IMPORTED : 0));
    return "POOL";
}

static const char *do_pool_alloc(void)
{
    int i = 2 + (int)rnd(10), slot = any_slot(0);
    uint64_t size = 1 + rnd(SLOT);
    if (!m.pools[i].is_known || slot < 0)
        return NULL;
    for (unsigned k = 0; k < SLOTS && rnd(2); k++) /* the driver reuses what waits on a stream */
        if (m.pieces[k].live && m.pieces[k].is_pending && m.pieces[k].pool == i) {
            slot = (int)k;
            size = m.pieces[k].size;
            piece_ends(k);
            break;
        }
    if (rnd(8) == 0) {
        apply(WIRE_CALL_POOL_ALLOC, m.pools[i].device - 1, KIND_pool, WIRE_CALL_CAPTURED, 0, 4, address_of(3), size,
              m.pools[i].handle, W(1)); /* a node of a graph, nothing else */
        if (!m.pieces[slot].live && slot >= 0 && size == m.pieces[slot].size && m.pieces[slot].pool == i)
            goto alloc; /* the model above has ended the pending one: so must the driver */
        return "captured";
    }
alloc:
    CALL(POOL_ALLOC, m.pools[i].device - 1, pool, 4, address_of((unsigned)slot), size, m.pools[i].handle, 1 + rnd(3));
    m.pieces[slot] = (struct piece){.live = 1,
                                    .size = size,
                                    .device = m.pools[i].device + (m.pools[i].is_imported ? 2 : 0),
                                    .is_foreign = m.pools[i].is_imported,
                                    .kind = KIND_pool,
                                    .pool = i,
                                    .object = -1};
    pool_grows(i);
    return "POOL_ALLOC";
}

static const char *do_pool_free(void)
{
    int slot = any_slot(1);
    const char *what = "POOL_FREE";
    if (slot < 0)
        return NULL;
    struct piece *p = &m.pieces[slot];
    struct model before = m;
    if (p->pool < 0 || p->is_pending)
        return NULL;
    p->is_pending = 1;
    p->stream = 1 + rnd(3);
    CALL(POOL_FREE, 0, pool, 2, address_of((unsigned)slot), p->stream);
    if (!p->is_segment)
        maybe_undo(&before, &what);
    return what;
}

static const char *do_sync(void)
{
    unsigned device = any_device();
    uint64_t stream = rnd(4);
    CALL(SYNC, device - 1, device, 2, W(0x500), stream);
    for (unsigned i = 0; i < SLOTS; i++) {
        const struct piece *p = &m.pieces[i];
        if (p->live && p->is_pending && (stream ? p->stream == stream : p->device == device || p->is_foreign))
            piece_ends(i);
    }
    return "SYNC";
}

static const char *do_pool_state(void)
{
    int i = 2 + (int)rnd(10), done = rnd(3) == 0;
    if (!m.pools[i].is_known)
        return NULL;
    for (unsigned k = 0; k < SLOTS; k++)
        if (done && m.pieces[k].live && m.pieces[k].is_pending && m.pieces[k].pool == i)
            piece_ends(k);
    uint64_t active = pool_active(i), reserved = active + rnd(3) * 0x200000;
    CALL(POOL_STATE, m.pools[i].device - 1, pool, 4, m.pools[i].handle, reserved, active ? active : !done, W(done));
    m.pools[i].reserved = m.pools[i].is_imported ? 0 : reserved;
    return "POOL_STATE";
}

static const char *do_vmm_create(void)
{
    unsigned i = (unsigned)rnd(16);
    if (m.objects[i].handles[0] || m.objects[i].handles[1] || m.objects[i].handles[2] || is_mapped((int)i))
        return NULL;
    m.objects[i].handles[0] = next_handle++;
    m.objects[i].size = (1 + rnd(8)) << 21;
    m.objects[i].flags = rnd(4) ? 0 : rnd(2) ? WIRE_VMM_IMPORTED : WIRE_VMM_MULTICAST;
    m.objects[i].device = any_device();
    CALL(VMM_CREATE, m.objects[i].device - 1, vmm, 3, m.objects[i].handles[0], m.objects[i].size,
         W(m.objects[i].flags));
    if (m.objects[i].flags == WIRE_VMM_IMPORTED)
        m.objects[i].device += 2;
    return "VMM_CREATE";
}

static const char *do_vmm_retain(void)
{
    unsigned slot = (unsigned)rnd(SLOTS);
    const struct piece *p = &m.pieces[slot];
    if (!p->live || p->object < 0)
        return NULL;
    for (unsigned k = 0; k < 3; k++)
        if (!m.objects[p->object].handles[k]) { /* under a new number, though others are gone */
            m.objects[p->object].handles[k] = next_handle++;
            CALL(VMM_RETAIN, 0, vmm, 2, m.objects[p->object].handles[k], address_of(slot) + rnd(p->size));
            return "VMM_RETAIN";
        }
    return NULL;
}

static const char *do_vmm_release(void)
{
    unsigned i = (unsigned)rnd(16), k = (unsigned)rnd(3);
    const char *what = "VMM_RELEASE";
    struct model before = m;
    if (!m.objects[i].handles[k])
        return NULL;
    CALL(VMM_RELEASE, 0, vmm, 1, m.objects[i].handles[k]);
    m.objects[i].handles[k] = 0;
    maybe_undo(&before, &what);
    return what;
}

static const char *do_vmm_map(void)
{
    unsigned i = (unsigned)rnd(16);
    int slot = any_slot(0);
    if (slot < 0 || !m.objects[i].handles[0])
        return NULL;
    uint64_t size = m.objects[i].size < SLOT ? m.objects[i].size : SLOT;
    CALL(VMM_MAP, 0, vmm, 4, address_of((unsigned)slot), size, W(0), m.objects[i].handles[0]);
    m.pieces[slot] = (struct piece){.live = 1,
                                    .size = size,
                                    .device = m.objects[i].device,
                                    .is_foreign = m.objects[i].flags == WIRE_VMM_IMPORTED,
                                    .kind = KIND_vmm,
                                    .pool = -1,
                                    .object = (int)i};
    return "VMM_MAP";
}

static const char *do_vmm_unmap(void)
{
    unsigned slot = (unsigned)rnd(SLOTS), count = 1 + (unsigned)rnd(3);
    const char *what = "VMM_UNMAP";
    struct model before = m;
    int has_segment = 0;
    for (unsigned i = slot; i < slot + count; i++)
        if (i >= SLOTS || (m.pieces[i].live && m.pieces[i].object < 0))
            return NULL;
    for (unsigned i = slot; i < slot + count; i++)
        if (m.pieces[i].live) {
            has_segment |= m.pieces[i].is_segment;
            piece_ends(i);
        }
    CALL(VMM_UNMAP, 0, vmm, 2, address_of(slot), count * SLOT);
    if (!has_segment)
        maybe_undo(&before, &what);
    return what;
}

static const char *do_foreign(void)
{
    int slot = any_slot(rnd(2) != 0);
    const char *what = "FOREIGN_CLOSE";
    struct model before = m;
    if (slot < 0)
        return NULL;
    struct piece *p = &m.pieces[slot];
    if (p->live) {
        if (!p->is_foreign || p->pool >= 0 || p->object >= 0)
            return NULL;
        CALL(FOREIGN_CLOSE, 0, device, 1, address_of((unsigned)slot));
        int is_segment = p->is_segment;
        piece_ends((unsigned)slot);
        if (!is_segment)
            maybe_undo(&before, &what);
        return what;
    }
    unsigned device = any_device();
    uint64_t size = rnd(2) ? rnd(SLOT) : 0;
    CALL(FOREIGN_OPEN, device - 1, device, 2, address_of((unsigned)slot), size);
    *p = (struct piece){
        .live = 1, .size = size, .device = device + 2, .is_foreign = 1, .kind = KIND_device, .pool = -1, .object = -1};
    return "FOREIGN_OPEN";
}

static const char *do_graph(void)
{
    unsigned g = (unsigned)rnd(8), to = (unsigned)rnd(8);
    uint64_t handle = 0x9000 + g;
    struct model before = m;
    const char *what = "GRAPH_END";
    switch (rnd(6)) {
    case 0:
    case 1: {
        unsigned slot = (unsigned)rnd(SLOTS), n = m.graphs[g].count;
        if (n == 8)
            return NULL;
        m.graphs[g].exists = 1;
        m.graphs[g].count++;
        m.graphs[g].nodes[n].slot = slot;
        m.graphs[g].nodes[n].is_alloc = rnd(3) != 0;
        m.graphs[g].nodes[n].device = any_device();
        m.graphs[g].nodes[n].size = 1 + rnd(SLOT);
        if (m.graphs[g].nodes[n].is_alloc)
            CALL(GRAPH_ALLOC_NODE, m.graphs[g].nodes[n].device - 1, pool, 3, handle, address_of(slot),
                 m.graphs[g].nodes[n].size);
        else
            CALL(GRAPH_FREE_NODE, m.graphs[g].nodes[n].device - 1, pool, 2, handle, address_of(slot));
        return "node";
    }
    case 2:
        if (to == g || !m.graphs[g].count)
            return NULL;
        CALL(GRAPH_INSTANTIATE, 0, pool, 2, handle, W(0x9000 + to));
        m.graphs[to] = m.graphs[g];
        return "GRAPH_INSTANTIATE";
    case 3:
    case 4:
        for (unsigned i = 0; i < m.graphs[g].count; i++) { /* a graph's addresses are its own */
            const struct piece *p = &m.pieces[m.graphs[g].nodes[i].slot];
            if (p->live && (p->pool < 0 || !m.pools[p->pool].is_graph || p->is_segment))
                return NULL;
        }
        CALL(GRAPH_LAUNCH, 0, pool, 2, handle, W(1));
        for (unsigned i = 0; i < m.graphs[g].count; i++) {
            unsigned slot = m.graphs[g].nodes[i].slot, device = m.graphs[g].nodes[i].device;
            if (m.pieces[slot].live)
                piece_ends(slot);
            if (!m.graphs[g].nodes[i].is_alloc)
                continue;
            m.pieces[slot] = (struct piece){.live = 1,
                                            .size = m.graphs[g].nodes[i].size,
                                            .device = device,
                                            .kind = KIND_pool,
                                            .pool = (int)device - 1,
                                            .object = -1};
            pool_grows((int)device - 1);
        }
        return "GRAPH_LAUNCH";
    default:
        if (rnd(2)) {
            unsigned device = any_device();
            m.pools[device - 1].reserved = pool_active((int)device - 1) + rnd(5) * 4096;
            CALL(GRAPH_STATE, device - 1, pool, 2, m.pools[device - 1].reserved, W(0));
            return "GRAPH_STATE";
        }
        CALL(GRAPH_END, 0, pool, 1, handle);
        memset(&m.graphs[g], 0, sizeof m.graphs[g]);
        maybe_undo(&before, &what);
        return what;
    }
}

static const char *do_sub(void)
{
    unsigned i = (unsigned)rnd(64), pool = (unsigned)rnd(3);
    int slot = any_slot(1);
    uint64_t handle = 0xa000 + pool;
    if (slot < 0)
        return NULL;
    struct piece *p = &m.pieces[slot];
    uint64_t address = address_of((unsigned)slot) + i * 0x1000;
    switch (rnd(8)) {
    case 0:
        if (p->size < 64 * 0x1000 || m.sub_segment[slot] || p->is_pending || p->kind == KIND_managed ||
            (p->object >= 0 && m.objects[p->object].flags))
            return NULL;
        CALL(SUB_SEGMENT, 0, device, 3, handle, address_of((unsigned)slot), p->size);
        p->is_segment = 1;
        m.sub_segment[slot] = (int)pool + 1;
        return "SUB_SEGMENT";
    case 1: /* no block at any time */
        slot = any_slot(0);
        if (slot < 0)
            return NULL;
        apply(WIRE_CALL_ALLOC, 0, KIND_device, 0, 1, 3, address_of((unsigned)slot), 64ull * 0x1000, W(0x510));
        CALL(SUB_SEGMENT, 0, device, 3, handle, address_of((unsigned)slot), 64ull * 0x1000);
        m.pieces[slot] = (struct piece){.live = 1,
                                        .size = 64 * 0x1000,
                                        .context = 0x510,
                                        .device = 1,
                                        .kind = KIND_device,
                                        .is_segment = 1,
                                        .pool = -1,
                                        .object = -1};
        m.sub_segment[slot] = (int)pool + 1;
        return "SUB_SEGMENT from birth";
    case 2:
        for (unsigned k = 0; k < 64; k++)
            if (m.subs[k].pool == pool)
                m.subs[k].size = 0;
        if (rnd(2)) {
            CALL(SUB_RESET, 0, sub, 1, handle);
            return "SUB_RESET";
        }
        for (unsigned k = 0; k < SLOTS; k++)
            if (m.sub_segment[k] == (int)pool + 1)
                m.sub_segment[k] = 0;
        CALL(SUB_POOL_END, 0, sub, 1, handle);
        return "SUB_POOL_END";
    case 3:
        if (!m.subs[i].size)
            return NULL;
        m.subs[i].size = 1 + rnd(0x1000);
        CALL(SUB_RESIZE, 0, sub, 3, W(0), address_of(m.subs[i].slot) + i * 0x1000, m.subs[i].size);
        return "SUB_RESIZE";
    default:
        if (m.subs[i].size) {
            CALL(SUB_FREE, 0, sub, 2, rnd(2) ? W(0) : W(0xa000 + m.subs[i].pool),
                 address_of(m.subs[i].slot) + i * 0x1000);
            m.subs[i].size = 0;
            return "SUB_FREE";
        }
        if (!m.sub_segment[slot])
            return NULL;
        m.subs[i].pool = (unsigned)m.sub_segment[slot] - 1;
        m.subs[i].slot = (unsigned)slot;
        m.subs[i].size = 1 + rnd(0x1000);
        CALL(SUB_ALLOC, WIRE_DEVICE_UNKNOWN, sub, 3, W(0xa000 + m.subs[i].pool), address, m.subs[i].size);
        return "SUB_ALLOC";
    }
}

static void begin(uint64_t with_seed)
{
    random_seed = with_seed;
    memset(&m, 0, sizeof m);
    memset(&shown, 0, sizeof shown);
    m.pools[0].device = 1;
    m.pools[1].device = 2;
    m.pools[0].is_known = m.pools[1].is_known = m.pools[0].is_graph = m.pools[1].is_graph = 1;
    devices = devices_open();
    thread_id = 1;
}

/* With the calls first to last of the table; last 0: all. */
static void run(unsigned first, unsigned last)
{
    static const char *(*const calls[])(void) = {
        do_alloc,   do_free,       do_context_end, do_array,   do_pool,    do_pool_alloc, do_pool_alloc, do_pool_free,
        do_sync,    do_pool_state, do_vmm_create,  do_vmm_map, do_vmm_map, do_vmm_unmap,  do_vmm_retain, do_vmm_release,
        do_foreign, do_graph,      do_graph,       do_sub,     do_sub,     do_sub,
    };
    unsigned done = 0;
    last = last ? last : sizeof calls / sizeof *calls;
    for (unsigned i = 0; done < 20000 && i < 400000; i++) {
        thread_id = 1 + (unsigned)rnd(3);
        unsigned which = first + (unsigned)rnd(last - first);
        if (rnd(40) == 0)
            which = 0; /* something to work on */
        const char *what = which == 2 && rnd(20) ? NULL : calls[which]();
        if (what) {
            compare(what);
            done++;
        }
    }
    assert_true(done > 5000);
    devices_close(devices);
}

static void test_contexts(void **state)
{
    (void)state;
    begin(1);
    run(0, 4);
}

static void test_pools(void **state)
{
    (void)state;
    begin(2);
    run(4, 10);
}

static void test_vmm(void **state)
{
    (void)state;
    begin(3);
    run(10, 16);
}

static void test_graphs(void **state)
{
    (void)state;
    begin(4);
    run(17, 19);
}

static void test_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin(5 + i);
        run(0, 0);
    }
}

static void test_nested_sub_allocators(void **state)
{
    (void)state;
    begin(1);
    uint64_t at = address_of(1);
    CALL(ALLOC, 0, device, 3, at, W(0x100000), W(7));
    CALL(SUB_SEGMENT, 0, device, 3, W(1), at, W(0x100000));
    CALL(SUB_ALLOC, 0, sub, 3, W(1), at, W(0x10000));
    CALL(SUB_ALLOC, 0, sub, 3, W(1), at + 0x10000, W(0x500));
    assert_int_equal(shown.block_count, 2);
    CALL(SUB_SEGMENT, 0, device, 3, W(2), at, W(0x10000)); /* the first block feeds another one */
    assert_int_equal(shown.block_count, 1);
    CALL(SUB_ALLOC, 0, sub, 3, W(2), at, W(0x20));
    CALL(SUB_ALLOC, 0, sub, 3, W(2), at + 0x20, W(0x20));
    assert_int_equal(shown.block_count, 3);
    CALL(SUB_FREE, 0, sub, 2, W(2), at);
    assert_int_equal(shown.block_count, 2);
    CALL(FREE, 0, device, 1, at); /* with all that lies in it */
    assert_int_equal(shown.block_count, 0);
    assert_int_equal(shown.segment_count, 0);
    assert_int_equal(shown.unmatched, 0);
    devices_close(devices);
}

static void test_transfers(void **state)
{
    (void)state;
    begin(1);
    uint64_t gpu0 = address_of(1), gpu1 = address_of(2), pinned = address_of(3), managed = address_of(4), host = 0x1000;
    CALL(ALLOC, 0, device, 3, gpu0, W(4096), W(1));
    CALL(ALLOC, 1, device, 3, gpu1, W(4096), W(2));
    CALL(ALLOC, 0, pinned, 3, pinned, W(4096), W(1));
    CALL(ALLOC, 0, managed, 3, managed, W(4096), W(1));
    const struct {
        uint64_t to, from;
        unsigned direction, device;
    } cases[] = {
        {gpu0 + 100, host, WIRE_HTOD, 1}, {pinned, gpu1 + 4095, WIRE_DTOH, 2}, {gpu0, gpu0 + 1, WIRE_DTOD, 1},
        {gpu1, gpu0, WIRE_PEER, 2},       {host, pinned, WIRE_HTOH, 1},        {managed, host, WIRE_UNIFIED, 1},
        {gpu1, managed, WIRE_UNIFIED, 2}, {gpu0 + 4096, host, WIRE_HTOH, 1},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t before = shown.transfers[cases[i].direction];
        CALL(TRANSFER, 0, device, 4, W(10), W(WIRE_UNIFIED), cases[i].to, cases[i].from);
        assert_int_equal(shown.transfers[cases[i].direction], before + 1);
        assert_int_equal(shown.transfer_device, cases[i].device);
    }
    CALL(TRANSFER, 1, device, 4, W(77), W(WIRE_FILL), gpu0, W(0));
    assert_int_equal(shown.transfer_bytes[WIRE_FILL], 77);
    assert_int_equal(
        apply(WIRE_CALL_TRANSFER, 0, KIND_device, WIRE_CALL_CAPTURED, 0, 4, W(1), W(WIRE_FILL), gpu0, W(0)), 0);
    assert_int_equal(shown.transfer_bytes[WIRE_FILL], 77);
    assert_int_not_equal(CALL(TRANSFER, 0, device, 4, W(1), W(99), gpu0, W(0)), 0);
    devices_close(devices);
}

static uint64_t retries(void)
{
    struct devices_counts counts;
    devices_counts(devices, &counts);
    return counts.alloc_retries;
}

static void test_oom_and_retries(void **state)
{
    (void)state;
    begin(1);
    CALL(ALLOC, 0, device, 3, address_of(1), W(3000), W(1));
    CALL(OOM, 0, device, 4, W(9000), W(1000), W(4000), W(2));
    assert_int_equal(shown.oom, 1);
    assert_int_equal(shown.used, 3000);
    assert_int_equal(shown.total, 4000);
    CALL(ALLOC, 0, device, 3, address_of(2), W(9000), W(1)); /* nothing was freed between */
    assert_int_equal(retries(), 0);
    CALL(OOM, 0, device, 4, W(9000), W(1000), W(4000), W(2));
    CALL(FREE, 0, device, 1, address_of(1));
    CALL(ALLOC, 0, device, 3, address_of(3), W(10), W(1)); /* another size */
    thread_id = 2;
    CALL(ALLOC, 0, device, 3, address_of(4), W(9000), W(1)); /* another thread */
    thread_id = 1;
    assert_int_equal(retries(), 0);
    CALL(ALLOC, 0, device, 3, address_of(5), W(9000), W(1));
    CALL(ALLOC, 0, device, 3, address_of(6), W(9000), W(1));
    assert_int_equal(retries(), 1);
    devices_close(devices);
}

/* A mapping that another process's memory, or host memory, backs; memory that nobody saw. */
static void test_unknown(void **state)
{
    (void)state;
    begin(1);
    CALL(FREE, 0, device, 1, W(0x1234));
    CALL(POOL_FREE, 0, pool, 2, W(0x1234), W(0));
    CALL(SUB_FREE, 0, sub, 2, W(0), W(0x1234));
    assert_int_equal(shown.unmatched, 3);
    CALL(VMM_RELEASE, 0, vmm, 1, W(5));
    CALL(VMM_UNMAP, 0, vmm, 2, W(0x1000), W(0x1000));
    CALL(UNDO, 0, device, 0, 0);
    CALL(POOL_END, 0, pool, 1, W(5));
    CALL(GRAPH_LAUNCH, 0, pool, 2, W(5), W(5));
    CALL(SUB_POOL_END, 0, sub, 1, W(5));
    CALL(SUB_SEGMENT_END, 0, sub, 2, W(5), W(5));
    CALL(FOREIGN_CLOSE, 0, device, 1, W(5));
    assert_int_equal(shown.unmatched, 3);
    CALL(VMM_MAP, 0, vmm, 4, address_of(1), W(100), W(0), W(99)); /* of a handle that nobody saw made */
    assert_int_equal(shown.block_count, 1);
    CALL(POOL_ALLOC, 0, pool, 4, address_of(2), W(50), W(98), W(0)); /* of such a pool */
    assert_int_equal(shown.sampled[1][KIND_pool], 50);
    CALL(ALLOC, 0, device, 3, address_of(2) + 10, W(10), W(0)); /* its free was not seen */
    assert_int_equal(shown.block_count, 2);
    devices_close(devices);
}

static void test_names(void **state)
{
    (void)state;
    begin(1);
    uint64_t text, at = address_of(1);
    memcpy(&text, "weights!", 8);
    CALL(SUB_POOL, 0, sub, 3, W(7), W(7), text); /* 7 bytes of the 8 */
    CALL(SUB_SEGMENT, 0, sub, 3, W(7), at, W(4096));
    assert_string_equal(newest_name, "weights");
    assert_int_equal(newest_address, at);
    CALL(NAME, 0, sub, 3, W(7), W(1000), text); /* a length beyond the words */
    CALL(SUB_SEGMENT, 0, sub, 3, W(7), at + 4096, W(4096));
    assert_string_equal(newest_name, "weights!");
    CALL(NAME, 0, sub, 3, at + 10, W(3), text);
    assert_string_equal(newest_name, "wei");
    assert_int_equal(newest_address, at + 10);
    CALL(NAME, 0, sub, 1, at);
    CALL(NAME, 0, sub, 2, at, W(5));
    assert_string_equal(newest_name, "wei");
    devices_close(devices);
}

static uint64_t hostile_word(void)
{
    static const uint64_t words[] = {0,
                                     1,
                                     2,
                                     3,
                                     0x1000,
                                     0x1fff,
                                     0x2000,
                                     0x7000000000,
                                     0xffffffffffffffff,
                                     0x8000000000000000,
                                     1ull << 57,
                                     (1ull << 57) - 1,
                                     1ull << 61,
                                     0xffffffffffff0001};
    uint64_t n = rnd(24);
    return n < 14 ? words[n] : n < 22 ? 0x1000 + rnd(6) * 0x800 : random_seed;
}

static void take_anything(void *arg, const struct event *e)
{
    (void)arg;
    assert_true(e->kind < KIND_COUNT);
    shown.used += e->size_bytes;
}

static void test_hostile(void **state)
{
    (void)state;
    static const struct devices_sink sink = {NULL, take_anything, device_of, foreign_of, map_of, name_of, transfer};
    for (unsigned round = 0; round < 40; round++) {
        begin(1000 + round);
        for (unsigned i = 0; i < 5000; i++) {
            uint64_t *words = malloc(10 * sizeof *words); /* so that a read past its end is seen */
            size_t count = rnd(4) ? 4 + rnd(3) : rnd(10);
            words = realloc(words, (count ? count : 1) * sizeof *words);
            for (size_t k = 0; k < count; k++)
                words[k] = hostile_word();
            struct devices_call c = {.call = (unsigned)rnd(WIRE_CALL_COUNT + 1),
                                     .device = (unsigned)(rnd(3) ? rnd(2) : rnd(257)),
                                     .flags = (unsigned)rnd(40) == 0,
                                     .kind = (unsigned)rnd(KIND_COUNT),
                                     .stack_id = (uint32_t)rnd(3),
                                     .thread_id = (uint32_t)rnd(3),
                                     .words = words,
                                     .word_count = count,
                                     .is_segment = rnd(5) == 0};
            devices_apply(devices, &c, &sink);
            free(words);
        }
        devices_close(devices);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contexts),  cmocka_unit_test(test_pools),
        cmocka_unit_test(test_vmm),       cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_all),       cmocka_unit_test(test_nested_sub_allocators),
        cmocka_unit_test(test_transfers), cmocka_unit_test(test_oom_and_retries),
        cmocka_unit_test(test_unknown),   cmocka_unit_test(test_names),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
