/* Physical memory (cuMemCreate) and its mappings, by reference counts. */
#include "devices_private.h"

#include <errno.h>
#include <stdlib.h>

/* What a handle refers to. The same memory may have several handles. */
struct vmm_handle {
    struct vmm_object *object;
    uint64_t refs;
};

void device_vmm_update(struct devices *d, struct vmm_object *o)
{
    int lives = o->refs || o->maps;
    int counts = lives && !o->flags; /* not another process's, and not multicast */
    if (counts != o->is_counted)
        devices_reserve(d, o->device_id, KIND_vmm, counts ? (int64_t)o->size : -(int64_t)o->size);
    o->is_counted = (uint8_t)counts;
    if (!lives && !o->pins)
        free(o);
}

static void hold(struct devices *d, uint64_t handle, struct vmm_object *o)
{
    struct vmm_handle *h = map_pointer(&d->objects, handle);
    if (h && h->object != o) { /* the end of the old one was not seen */
        struct vmm_object *old = h->object;
        old->refs -= h->refs;
        h->refs = 0;
        h->object = o;
        d->counts.lost_frees++;
        device_vmm_update(d, old);
    }
    if (!h) {
        h = xcalloc(1, sizeof *h);
        h->object = o;
        map_set_pointer(&d->objects, handle, h);
    }
    h->refs++;
    o->refs++;
}

int device_vmm_create(struct devices *d)
{
    const uint64_t *w = d->call->words;
    if (!w[0] || w[1] >= 1ull << 57)
        return -EINVAL;
    struct vmm_object *o = xcalloc(1, sizeof *o);
    o->size = w[1];
    o->flags = (uint8_t)(w[2] & (WIRE_VMM_IMPORTED | WIRE_VMM_MULTICAST));
    o->device_id = (uint8_t)devices_id(d, d->call->device);
    if (o->flags & WIRE_VMM_IMPORTED)
        o->device_id = (uint8_t)devices_foreign(d, o->device_id);
    devices_succeeded(d, KIND_vmm, w[1]);
    hold(d, w[0], o);
    device_vmm_update(d, o);
    return 0;
}

int device_vmm_retain(struct devices *d)
{
    const uint64_t *w = d->call->words;
    const struct block *b = w[1] ? devices_block_holding(d, w[1]) : NULL;
    const struct vmm_handle *h = map_pointer(&d->objects, w[0]);
    struct vmm_object *o = b && b->object ? b->object : h ? h->object : NULL;
    if (!w[0])
        return -EINVAL;
    if (o)
        hold(d, w[0], o);
    return 0;
}

static void release(struct devices *d, uint64_t handle, struct undo *undo)
{
    struct vmm_handle *h = map_pointer(&d->objects, handle);
    if (!h)
        return;
    struct vmm_object *o = h->object;
    undo->released = o;
    undo->handle = handle;
    devices_undo_pin(undo, o);
    o->refs--;
    if (!--h->refs)
        free(map_take_pointer(&d->objects, handle));
    device_vmm_update(d, o);
}

int device_vmm_release(struct devices *d)
{
    struct thread *t = devices_thread(d);
    t->failure.has_freed = 1;
    release(d, d->call->words[0], &t->undo);
    return 0;
}

void device_vmm_undo(struct devices *d, struct undo *u)
{
    if (!u->released)
        return;
    hold(d, u->handle, u->released);
    device_vmm_update(d, u->released);
    u->released = NULL;
}

int device_vmm_map(struct devices *d)
{
    const uint64_t *w = d->call->words;
    const struct vmm_handle *h = map_pointer(&d->objects, w[3]);
    if (devices_range_is_bad(w[0], w[1]))
        return -EINVAL;
    /* memory that nobody saw made is counted as a block, and reserved nowhere */
    struct vmm_object *o = h ? h->object : NULL;
    struct block *b = devices_block_new(d, w[0], w[1], o ? o->device_id : devices_id(d, d->call->device));
    b->kind = KIND_vmm;
    b->object = o;
    if (o && o->flags & WIRE_VMM_IMPORTED)
        b->is_foreign = 1;
    if (o && o->flags & WIRE_VMM_MULTICAST)
        b->is_silent = 1;
    devices_block_add(d, b);
    return 0;
}

int device_vmm_unmap(struct devices *d)
{
    uint64_t address = d->call->words[0], size = d->call->words[1];
    struct thread *t = devices_thread(d);
    const struct range *r;
    if (devices_range_is_bad(address, size))
        return -EINVAL;
    t->failure.has_freed = 1;
    while ((r = range_map_find(d->ranges, address)) && r->start < d->call->words[0] + size) {
        struct block *b = (struct block *)(uintptr_t)r->id;
        address = r->end;
        if (b->kind == KIND_vmm)
            devices_block_end(d, b, &t->undo);
    }
    return 0;
}

void device_vmm_close(struct devices *d)
{
    for (struct map_entry *e = NULL; (e = map_next(&d->objects, e));) {
        const struct vmm_handle *h = (struct vmm_handle *)(uintptr_t)e->value;
        struct vmm_object *o = h->object;
        o->refs -= h->refs;
        if (!o->refs && !o->maps)
            free(o);
    }
    for (struct block *b = d->first; b; b = b->next)
        if (b->object && !--b->object->maps && !b->object->refs)
            free(b->object);
    map_close_pointers(&d->objects, free);
}
