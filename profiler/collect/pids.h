/*
 * pids.h: the newest image of each pid that was ever seen, by the pid namespace that gave the number.
 */
#ifndef MEMPROF_PIDS_H
#define MEMPROF_PIDS_H

#include "../../common/map.h"

#include <stdint.h>

struct pids { /* all zero: empty */
    struct pid_entry {
        uint64_t pid_namespace;
        uint64_t start_stamp;
        int pid;
        uint16_t process_id;
        uint8_t ended;    /* its row needs no status any more */
        uint8_t executed; /* it became a program that is not recorded (so far) */
    } * entries;
    uint32_t count, capacity;
    struct map index; /* (pid_namespace, pid) -> entries */
};

/* NULL: never seen. Valid until the next pids_set. */
struct pid_entry *pids_find(const struct pids *pids, uint64_t pid_namespace, int pid);
/* Its row: 0 where it was never seen. */
uint16_t pids_row(const struct pids *pids, uint64_t pid_namespace, int pid);
/* A new image, unless one that began later is there already. */
void pids_set(struct pids *pids, const struct pid_entry *image);
void pids_close(struct pids *pids);

#endif
