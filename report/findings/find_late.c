#include "idle.h"

/* Blocks of a GPU that lie at the peak, and whose contents the host had fetched for the last time. */
void find_late(struct rules *r)
{
    struct idle idle[2];
    int count = idle_lines(r, IDLE_LATE, idle, 2);
    for (int i = 0; i < count; i++) {
        struct finding *f = rule_finding(r, r->device->name);
        f->bytes = idle[i].peak_bytes;
        f->time_ns = r->device->peak_ns;
        finding_line(r, f, idle[i].line->site_id, "peak");
        finding_caller(r, f, idle[i].site_id);
        finding_say(f, " had %s in %s of its blocks at the peak that had been copied from for the last time. ",
                    units_bytes(r->a, idle[i].peak_bytes), units_count(r->b, idle[i].peak_count));
        finding_say(f, "On average a block was kept for %s after its last copy, %d %% of its life.",
                    units_ns(r->a, idle[i].idle_ns / idle[i].block_count),
                    rule_percent(idle[i].idle_ns, idle[i].lifetime_ns));
        finding_look(f, FINDING_PEAK, 0, NULL, "Look at the peak");
        f->next = "Free right after that copy, unless a kernel uses the memory after it: kernels are not seen.";
        finding_number(f, "idle_peak_bytes", idle[i].peak_bytes);
        finding_number(f, "idle_peak_count", idle[i].peak_count);
        finding_number(f, "idle_ns", idle[i].idle_ns / idle[i].block_count);
        idle_saves(r, f, IDLE_LATE, &idle[i]);
    }
}
