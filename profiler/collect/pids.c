#include "pids.h"

#include "../../common/error.h"

#include <stdlib.h>

static struct pid_entry *place(const struct pids *pids, uint64_t pid_namespace, int pid)
{
    uint32_t i = ((uint32_t)pid ^ (uint32_t)pid_namespace << 8) * 0x9e3779b1u >> 7 & pids->mask;
    while (pids->entries[i].pid && (pids->entries[i].pid != pid || pids->entries[i].pid_namespace != pid_namespace))
        i = (i + 1) & pids->mask;
    return &pids->entries[i];
}

struct pid_entry *pids_find(const struct pids *pids, uint64_t pid_namespace, int pid)
{
    struct pid_entry *entry = pids->entries && pid ? place(pids, pid_namespace, pid) : NULL;
    return entry && entry->pid ? entry : NULL;
}

uint16_t pids_row(const struct pids *pids, uint64_t pid_namespace, int pid)
{
    const struct pid_entry *entry = pids_find(pids, pid_namespace, pid);
    return entry ? entry->process_id : 0;
}

static void grow(struct pids *pids)
{
    struct pids old = *pids;
    pids->mask = old.entries ? old.mask * 2 + 1 : 1023;
    pids->entries = xcalloc((size_t)pids->mask + 1, sizeof *pids->entries);
    for (uint32_t i = 0; old.entries && i <= old.mask; i++)
        if (old.entries[i].pid)
            *place(pids, old.entries[i].pid_namespace, old.entries[i].pid) = old.entries[i];
    free(old.entries);
}

void pids_set(struct pids *pids, const struct pid_entry *image)
{
    if (!image->pid)
        return;
    if (!pids->entries || pids->count * 2 >= pids->mask)
        grow(pids);
    struct pid_entry *entry = place(pids, image->pid_namespace, image->pid);
    if (entry->pid && entry->start_stamp > image->start_stamp)
        return;
    pids->count += !entry->pid;
    *entry = *image;
}

void pids_close(struct pids *pids)
{
    free(pids->entries);
    *pids = (struct pids){0};
}
