#include "pids.h"

#include "../../common/array.h"

#include <stdlib.h>

struct pid_entry *pids_find(const struct pids *pids, uint64_t pid_namespace, int pid)
{
    uint32_t i = map_number(&pids->index, pid_namespace, (unsigned)pid);
    return i == MAP_NONE ? NULL : &pids->entries[i];
}

uint16_t pids_row(const struct pids *pids, uint64_t pid_namespace, int pid)
{
    const struct pid_entry *entry = pids_find(pids, pid_namespace, pid);
    return entry ? entry->process_id : 0;
}

void pids_set(struct pids *pids, const struct pid_entry *image)
{
    if (!image->pid)
        return;
    uint32_t i = map_number_or(&pids->index, image->pid_namespace, (unsigned)image->pid, pids->count);
    if (i == pids->count)
        ARRAY_ADD(pids->entries, pids->count, pids->capacity);
    if (pids->entries[i].start_stamp <= image->start_stamp)
        pids->entries[i] = *image;
}

void pids_close(struct pids *pids)
{
    map_close(&pids->index);
    free(pids->entries);
    *pids = (struct pids){0};
}
