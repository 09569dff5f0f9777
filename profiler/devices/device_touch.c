/* Which blocks of GPUs copies and fills touch: events, from which the accounts know how long a block lay idle. */
#include "devices_private.h"

struct touched {
    uint8_t *is_touched;
    uint64_t address, size;
    unsigned device_id, kind;
};

/* The innermost block that holds the address. Memory that the processor reaches by itself is left out (managed,
 * pinned): what it does there nobody sees. */
static int find(struct devices *d, uint64_t address, struct touched *t)
{
    struct sub_block *s = address ? device_sub_holding(d, address) : NULL;
    struct block *b = s || !address ? NULL : devices_block_holding(d, address);
    if (s)
        *t = (struct touched){&s->is_touched, s->address, s->size, s->device_id, KIND_sub};
    else if (b && !b->is_segment && !b->is_silent && !b->is_foreign &&
             (b->kind == KIND_device || b->kind == KIND_pool || b->kind == KIND_vmm))
        *t = (struct touched){&b->is_touched, b->address, b->size, b->device_id, b->kind};
    else
        return 0;
    return t->device_id != 0;
}

static void touch(struct devices *d, const struct touched *t, uint64_t bytes, unsigned what)
{
    *t->is_touched = 1;
    devices_emit(d, EVENT_TOUCH, t->device_id, t->kind, t->address, bytes, what, 0);
}

void device_touch_one(struct devices *d, uint64_t address, uint64_t bytes, unsigned what)
{
    struct touched t;
    if (find(d, address, &t))
        touch(d, &t, bytes, what);
}

void device_touch(struct devices *d, unsigned direction, uint64_t bytes, uint64_t to, uint64_t from)
{
    struct touched t;
    if (direction != WIRE_FILL)
        device_touch_one(d, from, bytes, TOUCH_READ);
    if (!find(d, to, &t))
        return;
    int is_upload = direction == WIRE_HTOD && from && to == t.address && bytes >= t.size / 2;
    touch(d, &t, bytes, is_upload ? TOUCH_UPLOAD : TOUCH_WRITE);
    if (is_upload)
        devices_emit(d, EVENT_UPLOAD, t.device_id, t.kind, t.address, from, 0, 0);
}

void device_touch_end(struct devices *d, uint8_t *is_touched, unsigned device_id, unsigned kind, uint64_t address,
                      unsigned what)
{
    if (*is_touched)
        devices_emit(d, EVENT_TOUCH_END, device_id, kind, address, 0, what, 0);
    *is_touched = 0;
}
