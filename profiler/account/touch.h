/*
 * touch.h: what copies and fills say of the blocks of GPUs: when each one was first and last copied to, from or filled,
 * summed by site, and what lay idle at the device's peak; and what was uploaded again: the same number of bytes from
 * the same place of the host, to blocks of one size that lived together. What kernels do nobody sees, so all of it says
 * how much could be saved at most. Memory grows with the live blocks that were touched.
 */
#ifndef MEMPROF_ACCOUNT_TOUCH_H
#define MEMPROF_ACCOUNT_TOUCH_H

#include "../../common/map.h"
#include "event.h"

#include <stdint.h>

struct account;
struct store;

struct block_touch { /* of a live block */
    uint64_t process_id, key;
    uint64_t size_bytes, birth_ns, first_ns, last_ns, count;
    uint64_t last_bytes;   /* of the newest touch */
    uint64_t first_active; /* of its device, at the first touch */
    uint64_t from_ns;      /* since when it has what upload says; of what came first, since its birth */
    uint64_t join_ns;      /* when that came */
    uint32_t site;
    uint32_t upload; /* number + 1 of uploads; 0: none */
    uint8_t device, first_what, last_what;
};

/* Of what lived at the peak of its device that was peak_bytes high. */
struct touch_peak {
    uint64_t peak_bytes;
    uint64_t early_count, early_bytes; /* nothing was copied yet, and the first copy then wrote, behind the peak */
    uint64_t late_count, late_bytes;   /* the last copy read, and came before */
};

struct site_touch {
    uint64_t block_count, block_bytes, lifetime_ns, before_ns, after_ns;
    struct touch_peak peak;
    uint32_t site;
};

struct upload {
    uint64_t source, source_birth_ns, bytes, size_bytes, process_id;
    uint64_t member_count; /* live blocks that have it */
    uint64_t peak_bytes, at_peak_count, newest_ns;
    uint32_t site; /* of the newest of them; of an unused one the next such one + 1 */
    uint8_t device;
};

struct touches {       /* all zero: empty */
    struct map blocks; /* struct block_touch by live_key and process */
    struct map sites;  /* numbers of site_touches by site */
    struct site_touch *site_touches;
    uint32_t site_count, site_capacity;
    struct map upload_of; /* numbers of uploads */
    struct upload *uploads;
    uint32_t upload_count, upload_capacity;
    uint32_t unused_upload; /* number + 1 */
};

/* EVENT_TOUCH, EVENT_UPLOAD, EVENT_TOUCH_END */
void account_touch(struct account *a, const struct event *e);
/* After the blocks of the process are gone. */
void account_touch_process_end(struct account *a, unsigned process_id);
/* Of the live block that has the key; NULL: never touched. */
const struct block_touch *touches_find(const struct touches *t, unsigned process_id, uint64_t key, uint64_t birth_ns);
void account_touch_write(struct account *a);
/* What was counted so far is forgotten, of blocks that are gone and of peaks. */
void touches_anew(struct touches *t);
void touches_close(struct touches *t);

#endif
