#include "copied.h"

#include "../account/resident.h"
#include "clock.h"

#include <stdio.h>
#include <string.h>

#define APART       64u /* faults are asked for so many times apart what that costs */
#define FOUND_SHARE 8u  /* of what a process may have copied, when a look finds it */
#define VAIN_MAX    12u /* looks, one after another, that did not */
#define FAMILIES    (65536u / 64)

/* Minor faults of all of its threads; 0: not to be had. */
static uint64_t read_faults(const struct process *p)
{
    char text[1024];
    unsigned long long faults;
    process_text(p, "stat", text, sizeof text);
    const char *name_end = strrchr(text, ')');
    return name_end && sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %*u %llu", &faults) == 1 ? faults : 0;
}

/* A page that came anew is a fault, too, but one of a process that grew. */
static void see_process(struct process *p)
{
    uint64_t faults = read_faults(p);
    if (!p->copying.faults && !p->inherited) /* those of before it had children */
        p->copying.looked_faults = faults;
    p->copying.faults = faults > p->copying.faults ? faults : p->copying.faults;
    uint64_t bytes = (p->copying.faults - p->copying.looked_faults) * RESIDENT_PAGE;
    uint64_t grown = p->rss_bytes > p->looked_rss_bytes ? p->rss_bytes - p->looked_rss_bytes : 0;
    p->copying.bytes = (bytes > grown ? bytes - grown : 0) >> p->copying.vain_count;
}

static int is_seen(const struct process *p)
{
    return p && !p->dead && !p->discard;
}

/* A bit of each family that has two processes. */
static void find_families(const struct processes *ps, uint64_t twice[FAMILIES])
{
    uint64_t once[FAMILIES] = {0};
    for (uint32_t i = 0; i < ps->slot_end; i++) {
        const struct process *p = ps->by_slot[i];
        if (!is_seen(p))
            continue;
        const uint64_t bit = 1ull << p->family % 64;
        twice[p->family / 64] |= once[p->family / 64] & bit;
        once[p->family / 64] |= bit;
    }
}

void copied_see(struct copied *c, const struct processes *ps)
{
    if (ps->live < 2 || clock_monotonic_ns() < c->next_ns)
        return;
    uint64_t twice[FAMILIES] = {0}, bytes = 0, begin_ns = clock_processor_ns();
    find_families(ps, twice);
    for (uint32_t i = 0; i < ps->slot_end; i++) {
        struct process *p = ps->by_slot[i];
        if (!is_seen(p) || !(twice[p->family / 64] >> p->family % 64 & 1))
            continue;
        see_process(p);
        bytes += p->copying.bytes;
    }
    c->rest_count = bytes == c->bytes ? c->rest_count + 1 : 0;
    c->bytes = bytes;
    uint64_t cost_ns = clock_processor_ns() - begin_ns;
    c->cost_ns += cost_ns;
    c->next_ns = clock_monotonic_ns() + cost_ns * APART;
}

/* Memory that is given back to the kernel and taken anew has faults as well: then the next look waits for twice as many
 * of them. */
void copied_looked(struct process *p, uint64_t own_bytes)
{
    const uint64_t least = p->copying.looked_own_bytes + (p->copying.bytes << p->copying.vain_count) / FOUND_SHARE;
    if (p->copying.bytes > COPIED_LEAST)
        p->copying.vain_count = own_bytes >= least ? 0 : p->copying.vain_count + (p->copying.vain_count < VAIN_MAX);
    p->copying.looked_own_bytes = own_bytes;
    p->copying.looked_faults = p->copying.faults;
    p->copying.bytes = 0;
}
