#include "holdings.h"

#include "../devices/devices.h"

#include "../../common/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { YIELDS_MAX = 1024 }; /* processes that have given GPUs back at one time; more are not noted */

struct holdings {
    size_t count;
    struct yield {
        uint16_t process_id;
        uint32_t given_count;
        int64_t mark_id;
        struct wire_given given[WIRE_HOLDINGS];
    } * yields[YIELDS_MAX];
};

struct holdings *holdings_open(void)
{
    return xcalloc(1, sizeof(struct holdings));
}

void holdings_close(struct holdings *h)
{
    for (size_t i = 0; h && i < h->count; i++)
        free(h->yields[i]);
    free(h);
}

static struct yield *find(const struct holdings *h, uint16_t process_id)
{
    for (size_t i = 0; i < h->count; i++)
        if (h->yields[i]->process_id == process_id)
            return h->yields[i];
    return NULL;
}

static uint64_t given_bytes(const struct yield *y, const uint64_t uuid[2])
{
    for (uint32_t i = 0; y && i < y->given_count; i++)
        if (!memcmp(y->given[i].uuid, uuid, sizeof y->given[i].uuid))
            return y->given[i].bytes;
    return 0;
}

static void write_name(char name[WIRE_NAME_BYTES], const struct device_row *row)
{
    char text[32] = "";
    snprintf(text, sizeof text, "%s:%u", row->kind, row->ordinal);
    memcpy(name, text, WIRE_NAME_BYTES); /* it is shorter */
}

void holdings_write(const struct holdings *h, const struct process *p, const struct device_rows *devices,
                    struct wire_request *request)
{
    struct devices_holding all[DEVICE_ROWS] = {{0}};
    const struct yield *y = find(h, p->process_id);
    uint32_t count = 0;
    if (p->devices)
        devices_holdings(p->devices, all);
    for (unsigned i = 1; i < devices->count; i++) {
        const struct device_row *row = &devices->rows[i];
        const uint64_t given = strcmp(row->kind, "cuda") ? 0 : given_bytes(y, row->uuid);
        if (!(all[i].reserved_bytes | all[i].managed_bytes | all[i].foreign_bytes | given))
            continue;
        if (count++ >= WIRE_HOLDINGS)
            continue;
        struct wire_holding *to = &request->holdings[count - 1];
        *to = (struct wire_holding){.uuid = {row->uuid[0], row->uuid[1]},
                                    .reserved_bytes = all[i].reserved_bytes,
                                    .managed_bytes = all[i].managed_bytes,
                                    .foreign_bytes = all[i].foreign_bytes,
                                    .context_count = all[i].context_count,
                                    .given_bytes = given};
        write_name(to->name, row);
    }
    request->holding_count = count;
}

int holdings_yielded(struct holdings *h, struct drain *drain, uint16_t process_id, int64_t time_ns,
                     const struct wire_given *given, size_t count)
{
    if (find(h, process_id) || h->count >= YIELDS_MAX)
        return 0;
    struct yield *y = xcalloc(1, sizeof *y);
    y->process_id = process_id;
    y->given_count = (uint32_t)(count < WIRE_HOLDINGS ? count : WIRE_HOLDINGS);
    memcpy(y->given, given, y->given_count * sizeof *given);
    y->mark_id = drain_mark(drain, "memprof", "yielded", process_id, time_ns, 1);
    h->yields[h->count++] = y;
    return 1;
}

int holdings_restored(struct holdings *h, struct drain *drain, uint16_t process_id, int64_t time_ns)
{
    for (size_t i = 0; i < h->count; i++) {
        struct yield *y = h->yields[i];
        if (y->process_id != process_id)
            continue;
        drain_mark_end(drain, y->mark_id, time_ns);
        h->yields[i] = h->yields[--h->count];
        free(y);
        return 1;
    }
    return 0;
}

void holdings_end(struct holdings *h, struct drain *drain, int64_t end_ns)
{
    while (h->count)
        holdings_restored(h, drain, h->yields[0]->process_id, end_ns);
}
