/* The model of devices against a second one (device_model.h): random sequences of calls that a driver would allow;
 * active, allocated and reserved bytes of every device and kind are equal after each. */
#include "device_model.h"
#include "random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static unsigned any_device(void)
{
    return 1 + (unsigned)rnd(2);
}

static const char *do_alloc(void)
{
    static const unsigned kinds[] = {KIND_device, KIND_device, KIND_managed, KIND_pinned};
    int slot = model_slot(0);
    unsigned device = any_device(), kind = kinds[rnd(4)];
    if (slot < 0)
        return NULL;
    uint64_t size = 1 + rnd(DEVICE_SLOT), context = 0x500 + device * 16 + rnd(2);
    device_apply(WIRE_CALL_ALLOC, device - 1, kind, 0, 0, 3, device_address((unsigned)slot), size, context);
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
    int slot = model_slot(1);
    const char *what = "FREE";
    if (slot < 0)
        return NULL;
    struct piece *p = &m.pieces[slot];
    if (p->object >= 0 || p->is_pending || p->is_foreign)
        return NULL;
    struct model before = m;
    int is_segment = p->is_segment;
    /* from another device's thread: it is matched by address */
    device_apply(WIRE_CALL_FREE, any_device() - 1, p->kind == KIND_pinned ? KIND_pinned : KIND_device, 0, 0, 1,
                 device_address((unsigned)slot));
    model_piece_ends((unsigned)slot);
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
    for (unsigned i = 0; i < DEVICE_SLOTS; i++) {
        const struct piece *p = &m.pieces[i];
        if (p->live && p->context && (p->context == context || (whole && p->context >> 4 == context >> 4)))
            model_piece_ends(i);
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
        if (!model_pool_active(i))
            m.pools[i].reserved = 0;
        return "POOL_END";
    }
    if (model_pool_active(i))
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
    int i = 2 + (int)rnd(10), slot = model_slot(0);
    uint64_t size = 1 + rnd(DEVICE_SLOT);
    if (!m.pools[i].is_known || slot < 0)
        return NULL;
    for (unsigned k = 0; k < DEVICE_SLOTS && rnd(2); k++) /* the driver reuses what waits on a stream */
        if (m.pieces[k].live && m.pieces[k].is_pending && m.pieces[k].pool == i) {
            slot = (int)k;
            size = m.pieces[k].size;
            model_piece_ends(k);
            break;
        }
    if (rnd(8) == 0) {
        device_apply(WIRE_CALL_POOL_ALLOC, m.pools[i].device - 1, KIND_pool, WIRE_CALL_CAPTURED, 0, 4,
                     device_address(3), size, m.pools[i].handle, W(1)); /* a node of a graph, nothing else */
        if (!m.pieces[slot].live && slot >= 0 && size == m.pieces[slot].size && m.pieces[slot].pool == i)
            goto alloc; /* the model above has ended the pending one: so must the driver */
        return "captured";
    }
alloc:
    CALL(POOL_ALLOC, m.pools[i].device - 1, pool, 4, device_address((unsigned)slot), size, m.pools[i].handle,
         1 + rnd(3));
    m.pieces[slot] = (struct piece){.live = 1,
                                    .size = size,
                                    .device = m.pools[i].device + (m.pools[i].is_imported ? 2 : 0),
                                    .is_foreign = m.pools[i].is_imported,
                                    .kind = KIND_pool,
                                    .pool = i,
                                    .object = -1};
    model_pool_grows(i);
    return "POOL_ALLOC";
}

static const char *do_pool_free(void)
{
    int slot = model_slot(1);
    const char *what = "POOL_FREE";
    if (slot < 0)
        return NULL;
    struct piece *p = &m.pieces[slot];
    struct model before = m;
    if (p->pool < 0 || p->is_pending)
        return NULL;
    p->is_pending = 1;
    p->stream = 1 + rnd(3);
    CALL(POOL_FREE, 0, pool, 2, device_address((unsigned)slot), p->stream);
    if (!p->is_segment)
        maybe_undo(&before, &what);
    return what;
}

static const char *do_sync(void)
{
    unsigned device = any_device();
    uint64_t stream = rnd(4);
    CALL(SYNC, device - 1, device, 2, W(0x500), stream);
    for (unsigned i = 0; i < DEVICE_SLOTS; i++) {
        const struct piece *p = &m.pieces[i];
        if (p->live && p->is_pending && (stream ? p->stream == stream : p->device == device || p->is_foreign))
            model_piece_ends(i);
    }
    return "SYNC";
}

static const char *do_pool_state(void)
{
    int i = 2 + (int)rnd(10), done = rnd(3) == 0;
    if (!m.pools[i].is_known)
        return NULL;
    for (unsigned k = 0; k < DEVICE_SLOTS; k++)
        if (done && m.pieces[k].live && m.pieces[k].is_pending && m.pieces[k].pool == i)
            model_piece_ends(k);
    uint64_t active = model_pool_active(i), reserved = active + rnd(3) * 0x200000;
    CALL(POOL_STATE, m.pools[i].device - 1, pool, 4, m.pools[i].handle, reserved, active ? active : !done, W(done));
    m.pools[i].reserved = m.pools[i].is_imported ? 0 : reserved;
    return "POOL_STATE";
}

static const char *do_vmm_create(void)
{
    unsigned i = (unsigned)rnd(16);
    if (m.objects[i].handles[0] || m.objects[i].handles[1] || m.objects[i].handles[2] || model_is_mapped((int)i))
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
    unsigned slot = (unsigned)rnd(DEVICE_SLOTS);
    const struct piece *p = &m.pieces[slot];
    if (!p->live || p->object < 0)
        return NULL;
    for (unsigned k = 0; k < 3; k++)
        if (!m.objects[p->object].handles[k]) { /* under a new number, though others are gone */
            m.objects[p->object].handles[k] = next_handle++;
            CALL(VMM_RETAIN, 0, vmm, 2, m.objects[p->object].handles[k], device_address(slot) + rnd(p->size));
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
    int slot = model_slot(0);
    if (slot < 0 || !m.objects[i].handles[0])
        return NULL;
    uint64_t size = m.objects[i].size < DEVICE_SLOT ? m.objects[i].size : DEVICE_SLOT;
    CALL(VMM_MAP, 0, vmm, 4, device_address((unsigned)slot), size, W(0), m.objects[i].handles[0]);
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
    unsigned slot = (unsigned)rnd(DEVICE_SLOTS), count = 1 + (unsigned)rnd(3);
    const char *what = "VMM_UNMAP";
    struct model before = m;
    int has_segment = 0;
    for (unsigned i = slot; i < slot + count; i++)
        if (i >= DEVICE_SLOTS || (m.pieces[i].live && m.pieces[i].object < 0))
            return NULL;
    for (unsigned i = slot; i < slot + count; i++)
        if (m.pieces[i].live) {
            has_segment |= m.pieces[i].is_segment;
            model_piece_ends(i);
        }
    CALL(VMM_UNMAP, 0, vmm, 2, device_address(slot), count * DEVICE_SLOT);
    if (!has_segment)
        maybe_undo(&before, &what);
    return what;
}

static const char *do_foreign(void)
{
    int slot = model_slot(rnd(2) != 0);
    const char *what = "FOREIGN_CLOSE";
    struct model before = m;
    if (slot < 0)
        return NULL;
    struct piece *p = &m.pieces[slot];
    if (p->live) {
        if (!p->is_foreign || p->pool >= 0 || p->object >= 0)
            return NULL;
        CALL(FOREIGN_CLOSE, 0, device, 1, device_address((unsigned)slot));
        int is_segment = p->is_segment;
        model_piece_ends((unsigned)slot);
        if (!is_segment)
            maybe_undo(&before, &what);
        return what;
    }
    unsigned device = any_device();
    uint64_t size = rnd(2) ? rnd(DEVICE_SLOT) : 0;
    CALL(FOREIGN_OPEN, device - 1, device, 2, device_address((unsigned)slot), size);
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
        unsigned slot = (unsigned)rnd(DEVICE_SLOTS), n = m.graphs[g].count;
        if (n == 8)
            return NULL;
        m.graphs[g].exists = 1;
        m.graphs[g].count++;
        m.graphs[g].nodes[n].slot = slot;
        m.graphs[g].nodes[n].is_alloc = rnd(3) != 0;
        m.graphs[g].nodes[n].device = any_device();
        m.graphs[g].nodes[n].size = 1 + rnd(DEVICE_SLOT);
        if (m.graphs[g].nodes[n].is_alloc)
            CALL(GRAPH_ALLOC_NODE, m.graphs[g].nodes[n].device - 1, pool, 3, handle, device_address(slot),
                 m.graphs[g].nodes[n].size);
        else
            CALL(GRAPH_FREE_NODE, m.graphs[g].nodes[n].device - 1, pool, 2, handle, device_address(slot));
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
                model_piece_ends(slot);
            if (!m.graphs[g].nodes[i].is_alloc)
                continue;
            m.pieces[slot] = (struct piece){.live = 1,
                                            .size = m.graphs[g].nodes[i].size,
                                            .device = device,
                                            .kind = KIND_pool,
                                            .pool = (int)device - 1,
                                            .object = -1};
            model_pool_grows((int)device - 1);
        }
        return "GRAPH_LAUNCH";
    default:
        if (rnd(2)) {
            unsigned device = any_device();
            m.pools[device - 1].reserved = model_pool_active((int)device - 1) + rnd(5) * 4096;
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
    int slot = model_slot(1);
    uint64_t handle = 0xa000 + pool;
    if (slot < 0)
        return NULL;
    struct piece *p = &m.pieces[slot];
    uint64_t address = device_address((unsigned)slot) + i * 0x1000;
    switch (rnd(8)) {
    case 0:
        if (p->size < 64 * 0x1000 || m.sub_segment[slot] || p->is_pending || p->kind == KIND_managed ||
            (p->object >= 0 && m.objects[p->object].flags))
            return NULL;
        CALL(SUB_SEGMENT, 0, device, 3, handle, device_address((unsigned)slot), p->size);
        p->is_segment = 1;
        m.sub_segment[slot] = (int)pool + 1;
        return "SUB_SEGMENT";
    case 1: /* no block at any time */
        slot = model_slot(0);
        if (slot < 0)
            return NULL;
        device_apply(WIRE_CALL_ALLOC, 0, KIND_device, 0, 1, 3, device_address((unsigned)slot), 64ull * 0x1000,
                     W(0x510));
        CALL(SUB_SEGMENT, 0, device, 3, handle, device_address((unsigned)slot), 64ull * 0x1000);
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
        for (unsigned k = 0; k < DEVICE_SLOTS; k++)
            if (m.sub_segment[k] == (int)pool + 1)
                m.sub_segment[k] = 0;
        CALL(SUB_POOL_END, 0, sub, 1, handle);
        return "SUB_POOL_END";
    case 3:
        if (!m.subs[i].size)
            return NULL;
        m.subs[i].size = 1 + rnd(0x1000);
        CALL(SUB_RESIZE, 0, sub, 3, W(0), device_address(m.subs[i].slot) + i * 0x1000, m.subs[i].size);
        return "SUB_RESIZE";
    default:
        if (m.subs[i].size) {
            CALL(SUB_FREE, 0, sub, 2, rnd(2) ? W(0) : W(0xa000 + m.subs[i].pool),
                 device_address(m.subs[i].slot) + i * 0x1000);
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

/* Of the blocks that are shown, the one that a copy to the address touches; -1: none. */
static long touched_block(uint64_t address)
{
    long found = -1;
    for (unsigned i = 0; i < shown.block_count; i++) {
        unsigned kind = shown.blocks[i].kind, device = shown.blocks[i].device;
        if (address < shown.blocks[i].address || address - shown.blocks[i].address >= shown.blocks[i].size)
            continue;
        if (kind == KIND_sub)
            return i;
        if (device >= 1 && device <= 2 && (kind == KIND_device || kind == KIND_pool || kind == KIND_vmm))
            found = i; /* others are another process's, or the processor's, too */
    }
    return found;
}

static const char *do_copy(void)
{
    uint64_t to = device_address((unsigned)rnd(DEVICE_SLOTS)) + rnd(64 * 0x1000), bytes = 1 + rnd(5000);
    long expected = touched_block(to);
    unsigned count = shown.touch_count;
    CALL(TRANSFER, 0, device, 4, bytes, W(WIRE_FILL), to, W(0));
    assert_int_equal(shown.touch_count - count, expected >= 0);
    if (expected >= 0)
        assert_int_equal(shown.touches[count % 64].address, shown.blocks[expected].address);
    return "TRANSFER";
}

static void begin(uint64_t seed)
{
    random_seed = seed;
    device_begin();
    device_refusals = 1;
    memset(&m, 0, sizeof m);
    m.pools[0].device = 1;
    m.pools[1].device = 2;
    m.pools[0].is_known = m.pools[1].is_known = m.pools[0].is_graph = m.pools[1].is_graph = 1;
}

/* With the calls first to last of the table; last 0: all. */
static void run(unsigned first, unsigned last)
{
    static const char *(*const calls[])(void) = {
        do_alloc,   do_free,       do_context_end, do_array,   do_pool,    do_pool_alloc, do_pool_alloc, do_pool_free,
        do_sync,    do_pool_state, do_vmm_create,  do_vmm_map, do_vmm_map, do_vmm_unmap,  do_vmm_retain, do_vmm_release,
        do_foreign, do_graph,      do_graph,       do_sub,     do_sub,     do_sub,        do_copy,
    };
    unsigned done = 0, enough = random_volume(20000, 6000);
    last = last ? last : sizeof calls / sizeof *calls;
    for (unsigned i = 0; done < enough && i < 20 * enough; i++) {
        device_thread = 1 + (unsigned)rnd(3);
        unsigned which = first + (unsigned)rnd(last - first);
        if (rnd(40) == 0)
            which = 0; /* something to work on */
        const char *what = which == 2 && rnd(20) ? NULL : calls[which]();
        if (what) {
            model_compare(what);
            done++;
        }
    }
    assert_true(done > enough / 4);
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
        assert_true(shown.touch_count > 100);
        assert_true(shown.touched_gone > 50);
        assert_int_equal(shown.touched_gone, shown.touch_ends);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contexts), cmocka_unit_test(test_pools), cmocka_unit_test(test_vmm),
        cmocka_unit_test(test_graphs),   cmocka_unit_test(test_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
