/* A block is freed, and soon another of its size allocated by the same line: the first one could have been kept. What
 * is freed before anything else is allocated is find_churn.c's. */
#include "../../common/array.h"
#include "rules.h"

#include <stdlib.h>

#define SOON_NS      1000000
#define LEAST        100
#define LEAST_SHARE  100  /* a part of the run's allocations */
#define CACHED_BYTES 1032 /* what glibc's threads keep by size, for a few ns a call; other allocators keep more */
#define SHOWN        3
#define KEYS_MAX     (1 << 22)

struct reuse { /* of a line and size */
    int64_t freed_ns, waiting, count;
    uint64_t size_bytes;
    uint32_t line, site_id;
};

struct watch_reuse {
    struct rules *r;
    struct map of;
    struct reuse *item;
    uint32_t count, capacity;
};

void *watch_reuse_open(struct rules *r)
{
    struct watch_reuse *w = xcalloc(1, sizeof *w);
    w->r = r;
    return w;
}

void watch_reuse_close(void *watch)
{
    struct watch_reuse *w = watch;
    map_close(&w->of);
    free(w->item);
    free(w);
}

static struct reuse *reuse_at(struct watch_reuse *w, uint32_t site_id, uint64_t size_bytes)
{
    const struct rule_line *line = rule_line_of(w->r, site_id);
    if (!line || w->count == KEYS_MAX)
        return NULL;
    uint32_t number = (uint32_t)(line - w->r->lines), i = map_number_or(&w->of, number, size_bytes, w->count);
    if (i == w->count)
        *ARRAY_ADD(w->item, w->count, w->capacity) =
            (struct reuse){.size_bytes = size_bytes, .line = number, .site_id = site_id};
    return &w->item[i];
}

void watch_reuse_see(void *watch, const struct pass_event *e)
{
    const int is_free = e->event->op == CHUNK_free && e->block && !e->is_temporary;
    if (e->event->size_bytes <= CACHED_BYTES || (!is_free && e->event->op != CHUNK_alloc))
        return;
    struct reuse *u = reuse_at(watch, e->event->site_id, e->event->size_bytes);
    const int64_t now = (int64_t)e->event->time_ns;
    if (!u)
        return;
    if (now - u->freed_ns > SOON_NS)
        u->waiting = 0;
    if (is_free) {
        u->freed_ns = now;
        u->waiting++;
    } else if (u->waiting) {
        u->waiting--;
        u->count++;
    }
}

static void say(struct rules *r, const struct reuse *u)
{
    struct finding *f = rule_finding(r, r->device->name);
    struct saving none = {.changes = NULL};
    finding_line(r, f, u->site_id, "run");
    finding_say(f,
                " allocated %s times a block of %s within 1 ms after one of the same size that it had allocated was "
                "freed, %d %% of all allocations.",
                units_count(r->a, u->count), units_bytes(r->b, (int64_t)u->size_bytes),
                rule_percent(u->count, r->device->alloc_count));
    finding_number(f, "reuse_count", u->count);
    finding_number(f, "size_bytes", (int64_t)u->size_bytes);
    f->next = "The block could be kept for the next time: that saves calls, and for large blocks page faults.";
    finding_saves(r, f, &none, FINDING_EXACT);
}

void find_reuse(struct rules *r)
{
    struct watch_reuse *w = r->watch[WATCH_reuse];
    for (int shown = 0; w && shown < SHOWN; shown++) {
        struct reuse *best = NULL;
        for (uint32_t i = 0; i < w->count; i++) {
            struct reuse *u = &w->item[i];
            if (r->lines[u->line].device_id == r->device->device_id && u->count >= LEAST &&
                u->count >= r->device->alloc_count / LEAST_SHARE && (!best || u->count > best->count))
                best = u;
        }
        if (!best)
            return;
        say(r, best);
        best->count = 0;
    }
}
