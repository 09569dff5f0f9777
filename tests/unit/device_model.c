#include "device_model.h"

#include "random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define DEVICES 4u /* 0: the host; two GPUs; then what is foreign on each */

struct model m;

int model_slot(int live)
{
    for (unsigned tries = 0; tries < 50; tries++) {
        unsigned slot = (unsigned)rnd(DEVICE_SLOTS);
        if (m.pieces[slot].live == live)
            return (int)slot;
    }
    return -1;
}

int model_is_mapped(int object)
{
    for (unsigned i = 0; i < DEVICE_SLOTS; i++)
        if (m.pieces[i].live && m.pieces[i].object == object)
            return 1;
    return 0;
}

uint64_t model_pool_active(int pool)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < DEVICE_SLOTS; i++)
        if (m.pieces[i].live && m.pieces[i].pool == pool)
            sum += m.pieces[i].size;
    return sum;
}

void model_piece_ends(unsigned slot)
{
    struct piece *p = &m.pieces[slot];
    int pool = p->pool;
    p->live = 0;
    m.sub_segment[slot] = 0;
    for (unsigned i = 0; i < 64; i++)
        if (m.subs[i].size && m.subs[i].slot == slot)
            m.subs[i].size = 0;
    if (pool >= 0 && !m.pools[pool].is_known && !model_pool_active(pool))
        m.pools[pool].reserved = 0;
}

void model_pool_grows(int pool)
{
    uint64_t active = model_pool_active(pool);
    if (m.pools[pool].reserved < active && !m.pools[pool].is_imported)
        m.pools[pool].reserved = active;
}

void model_compare(const char *after)
{
    uint64_t active[DEVICES + 2] = {0}, allocated[DEVICES + 2] = {0}, reserved[DEVICES + 2] = {0};
    uint64_t managed[DEVICES + 2] = {0}, foreign[DEVICES + 2] = {0};
    struct devices_holding h[256];
    uint64_t s_active[DEVICES + 2] = {0}, s_allocated[DEVICES + 2] = {0}, s_reserved[DEVICES + 2] = {0};
    for (unsigned i = 0; i < DEVICE_SLOTS; i++) {
        const struct piece *p = &m.pieces[i];
        int is_silent = p->object >= 0 && m.objects[p->object].flags == WIRE_VMM_MULTICAST;
        if (!p->live || is_silent)
            continue;
        if (!p->is_segment) {
            active[p->device] += p->size;
            allocated[p->device] += p->is_pending ? 0 : p->size;
        }
        if (p->is_foreign)
            foreign[p->device] += p->size;
        else if (p->kind == KIND_managed)
            managed[p->device] += p->size;
        if (!p->is_foreign && (p->kind == KIND_device || p->kind == KIND_pinned))
            reserved[p->device] += p->size;
    }
    for (unsigned i = 0; i < 16; i++) {
        if (m.arrays[i].live) {
            active[m.arrays[i].device] += m.arrays[i].size;
            allocated[m.arrays[i].device] += m.arrays[i].size;
            reserved[m.arrays[i].device] += m.arrays[i].size;
        }
        int lives =
            m.objects[i].handles[0] || m.objects[i].handles[1] || m.objects[i].handles[2] || model_is_mapped((int)i);
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
    devices_holdings(devices, h);
    for (unsigned i = 0; i < DEVICES + 1; i++) {
        for (unsigned k = 0; k < KIND_COUNT; k++)
            s_reserved[i] += shown.sampled[i][k];
        if (i && h[i].reserved_bytes != reserved[i])
            fail_msg("after %s, device %u: it holds %lx; expected %lx", after, i, (long)h[i].reserved_bytes,
                     (long)reserved[i]);
        if (h[i].managed_bytes != managed[i] || h[i].foreign_bytes != foreign[i])
            fail_msg("after %s, device %u: %lx managed, %lx foreign; expected %lx, %lx", after, i,
                     (long)h[i].managed_bytes, (long)h[i].foreign_bytes, (long)managed[i], (long)foreign[i]);
        if (active[i] != s_active[i] || allocated[i] != s_allocated[i] || reserved[i] != s_reserved[i])
            fail_msg("after %s, device %u: active %lx, allocated %lx, reserved %lx; expected %lx, %lx, %lx", after, i,
                     (long)s_active[i], (long)s_allocated[i], (long)s_reserved[i], (long)active[i], (long)allocated[i],
                     (long)reserved[i]);
    }
    assert_int_equal(shown.unmatched, 0);
}
