#include "device_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct shown shown;
char device_newest_name[64];
uint64_t device_newest_address;
struct devices *devices;
unsigned device_thread, device_stack;
int device_refused, device_refusals;

void device_begin(void)
{
    memset(&shown, 0, sizeof shown);
    devices = devices_open();
    device_thread = device_stack = 1;
    device_refused = device_refusals = 0;
}

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
        shown.blocks[i].pending = shown.blocks[i].touched = 0;
        break;
    case EVENT_FREE:
    case EVENT_REALLOC_FREE:
    case EVENT_TO_SEGMENT:
        if (i < 0)
            shown.unmatched++;
        else
            shown.touched_gone += shown.blocks[i].touched != 0;
        if (i >= 0)
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
        shown.reserved_events++;
        if (shown.most_reserved < e->size_bytes)
            shown.most_reserved = e->size_bytes;
        break;
    case EVENT_DEVICE_USED:
        shown.used = e->size_bytes;
        shown.total = e->address;
        break;
    case EVENT_OOM:
        shown.oom++;
        break;
    case EVENT_TOUCH:
        assert_true(i >= 0 && shown.blocks[i].device == e->device);
        shown.blocks[i].touched = 1;
        shown.touches[shown.touch_count % 64].address = e->address;
        shown.touches[shown.touch_count % 64].size = e->size_bytes;
        shown.touches[shown.touch_count % 64].device = e->device;
        shown.touches[shown.touch_count % 64].kind = e->kind;
        shown.touches[shown.touch_count++ % 64].what = e->stack_id;
        break;
    case EVENT_UPLOAD:
        assert_true(i >= 0 && shown.touches[(shown.touch_count - 1) % 64].what == TOUCH_UPLOAD);
        shown.uploaded_from = e->size_bytes;
        shown.uploads++;
        break;
    case EVENT_TOUCH_END:
        shown.touch_ends++;
        shown.moved += e->stack_id == TOUCH_MOVED;
        if (e->stack_id == TOUCH_MOVED) {
            assert_true(i >= 0);
            shown.blocks[i].touched = 0;
            shown.touched_gone++;
        }
        break;
    }
}

unsigned device_of(void *arg, unsigned ordinal, const uint64_t *uuid, uint64_t total_bytes, const char *model)
{
    (void)arg, (void)uuid, (void)total_bytes, (void)model;
    return (ordinal + 1) & 255;
}

unsigned device_foreign_of(void *arg, unsigned device_id)
{
    (void)arg;
    return (device_id + 2) & 255;
}

uint64_t device_map_of(void *arg, uint64_t address)
{
    (void)arg;
    return address & 1ull << 40 ? 1ull << 40 : 0;
}

void device_name_of(void *arg, uint64_t address, const char *name)
{
    (void)arg;
    device_newest_address = address;
    snprintf(device_newest_name, sizeof device_newest_name, "%s", name);
}

void device_transfer(void *arg, uint32_t stack_id, unsigned device_id, unsigned direction, uint64_t count,
                     uint64_t bytes)
{
    (void)arg;
    assert_true(direction < 8);
    shown.transfers[direction] += count;
    shown.transfer_calls++;
    shown.transfer_bytes[direction] += bytes;
    shown.transfer_device = device_id;
    shown.transfer_stack = stack_id;
}

int device_apply(unsigned call, unsigned device, unsigned kind, unsigned flags, int is_segment, unsigned count, ...)
{
    static const struct devices_sink sink = {NULL,          take,           device_of,      device_foreign_of,
                                             device_map_of, device_name_of, device_transfer};
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
                             .stack_id = device_stack,
                             .thread_id = device_thread,
                             .words = words,
                             .word_count = count,
                             .is_refused = device_refused,
                             .is_segment = is_segment};
    if (device_refusals && devices_takes_away(call) && ++device_refusals % 3 == 0) {
        struct devices_call undo = c;
        undo.call = WIRE_CALL_UNDO;
        c.is_refused = 1;
        if (devices_apply(devices, &c, &sink) == 0)
            devices_apply(devices, &undo, &sink);
        c.is_refused = device_refused;
    }
    return devices_apply(devices, &c, &sink);
}
