/*
 * largest.h: the largest blocks of the run, by size, then lifetime. A block is offered when it dies, or when its
 * process ends; the one comparison that most blocks cost is inline.
 */
#ifndef MEMPROF_LARGEST_H
#define MEMPROF_LARGEST_H

#include <stdint.h>

#define LARGEST_COUNT 4096u

struct largest_block {
    uint64_t size_bytes;
    uint64_t lifetime_ns;
    uint64_t address;
    uint64_t alloc_ns;
    uint32_t thread_id;
    uint32_t site;
    uint16_t process_id;
    uint8_t ended;       /* live when its process ended */
    uint8_t first_touch; /* TOUCH_WRITE, TOUCH_READ; 0: never touched */
    uint8_t last_touch;
    uint64_t first_touch_ns, last_touch_ns, touch_count;
};

struct block_touch;
/* touch: of touch.h; NULL: none. */
void largest_touched(struct largest_block *b, const struct block_touch *touch);

struct largest {
    uint64_t least_bytes; /* smaller ones need not be offered */
    uint32_t count;
    struct largest_block *blocks; /* a heap, the least at 0 */
};

void largest_open(struct largest *l);
void largest_close(struct largest *l);
void largest_add(struct largest *l, const struct largest_block *b);

static inline int largest_wants(const struct largest *l, uint64_t size_bytes)
{
    return __builtin_expect(size_bytes >= l->least_bytes, 0);
}

struct store;
struct site_table;
void largest_write(struct largest *l, struct store *store, const struct site_table *sites);

#endif
