/*
 * ledger.h: what a CUDA sample itself says of its memory, for comparison with what memprof saw. One line a device
 * and kind:
 *
 *     ledger DEVICE KIND allocations bytes frees bytes peak
 *
 * `all` is the sum of a device's kinds, with its own peak; what a sample's own allocator holds for its blocks is of
 * kind `segment`, and not in it. Times of frees are those of the calls: what a stream still has to free is counted by
 * ledger_pending, and is gone at ledger_synchronized.
 */
#ifndef SAMPLES_LEDGER_H
#define SAMPLES_LEDGER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEDGER_ROWS = 32 };
static struct ledger_row {
    char device[16], kind[16];
    unsigned long allocations, frees;
    size_t bytes, freed_bytes, peak_bytes, pending_bytes;
} ledger_rows[LEDGER_ROWS];

static struct ledger_row *ledger_row(int device, const char *kind)
{
    char name[16];
    snprintf(name, sizeof name, device < 0 ? "host" : "cuda:%d", device);
    for (struct ledger_row *row = ledger_rows; row < ledger_rows + LEDGER_ROWS; row++) {
        if (!row->device[0]) {
            snprintf(row->device, sizeof row->device, "%s", name);
            snprintf(row->kind, sizeof row->kind, "%s", kind);
        }
        if (!strcmp(row->device, name) && !strcmp(row->kind, kind))
            return row;
    }
    abort();
}

static void ledger_count(struct ledger_row *row, size_t bytes)
{
    row->allocations++;
    row->bytes += bytes;
    size_t active = row->bytes - row->freed_bytes + row->pending_bytes;
    if (active > row->peak_bytes)
        row->peak_bytes = active;
}

/* An allocation; device -1 is the host. */
static inline void ledger_alloc(int device, const char *kind, size_t bytes)
{
    ledger_count(ledger_row(device, kind), bytes);
    if (strcmp(kind, "segment"))
        ledger_count(ledger_row(device, "all"), bytes);
}

static inline void ledger_free(int device, const char *kind, size_t bytes)
{
    struct ledger_row *rows[] = {ledger_row(device, kind), ledger_row(device, "all")};
    for (int i = 0; i < (strcmp(kind, "segment") ? 2 : 1); i++) {
        rows[i]->frees++;
        rows[i]->freed_bytes += bytes;
    }
}

/* A free that waits for its stream: active until ledger_synchronized. */
static inline void ledger_pending(int device, const char *kind, size_t bytes)
{
    ledger_free(device, kind, bytes);
    ledger_row(device, kind)->pending_bytes += bytes;
    ledger_row(device, "all")->pending_bytes += bytes;
}

static inline void ledger_synchronized(int device, const char *kind)
{
    ledger_row(device, "all")->pending_bytes -= ledger_row(device, kind)->pending_bytes;
    ledger_row(device, kind)->pending_bytes = 0;
}

static inline void ledger_print(void)
{
    for (const struct ledger_row *row = ledger_rows; row < ledger_rows + LEDGER_ROWS && row->device[0]; row++)
        printf("ledger %s %s %lu %zu %lu %zu %zu\n", row->device, row->kind, row->allocations, row->bytes, row->frees,
               row->freed_bytes, row->peak_bytes);
}

#endif
