#include "random_run.h"

#include "../../common/kind.h"
#include "random.h"

#include <string.h>

enum { STACKS = 12, PROCESSES = 4, PROCESSES_MAX = 60, HOOKS = 60, LIVE_MAX = 400, EVENTS = 24000 };

struct alive {
    struct event e;
    int is_part, is_requested;
};

static struct alive alive[LIVE_MAX + 8];
static uint64_t freed[LIVE_MAX], next_address; /* addresses that are free again */
static size_t alive_count, freed_count;
uint64_t random_run_end_ns;
static unsigned last_process; /* each that ends makes room for a new one */
static unsigned running[PROCESSES];
static uint8_t is_ending[PROCESSES_MAX];

static struct event new_event(unsigned op)
{
    static const uint8_t kinds[2][3] = {{KIND_heap, KIND_heap, KIND_map}, {KIND_device, KIND_pool, KIND_pool}};
    unsigned process = running[rnd(PROCESSES)], device = rnd(5) == 0;
    random_run_end_ns += rnd(4) ? rnd(100) : 0; /* several at one time, too */
    return (struct event){.time_ns = random_run_end_ns,
                          .op = (uint8_t)op,
                          .process_id = (uint16_t)process,
                          .thread_id = process * 4 + (uint32_t)rnd(4) / 2,
                          .hook = (uint8_t)rnd(HOOKS),
                          .device = (uint8_t)device,
                          .kind = kinds[device][rnd(3)]};
}

static void forget_process(unsigned process)
{
    size_t kept = 0;
    for (size_t i = 0; i < alive_count; i++)
        if (alive[i].e.process_id != process)
            alive[kept++] = alive[i];
    alive_count = kept;
}

static struct event of_block(unsigned op, const struct alive *a)
{
    struct event e = new_event(op);
    e.process_id = a->e.process_id;
    e.thread_id = e.process_id * 4u + (uint32_t)rnd(2);
    e.device = a->e.device;
    e.kind = a->e.kind;
    e.address = a->e.address;
    return e;
}

/* One or two events. */
static size_t make(struct event *out)
{
    size_t i = alive_count ? (rnd(2) ? alive_count - 1 : rnd(alive_count)) : 0;
    struct alive *a = &alive[i];
    if (alive_count && (alive_count >= LIVE_MAX || rnd(100) < 47)) {
        if (a->e.kind == KIND_map && !a->is_part && a->e.size_bytes >= 64 && rnd(3) == 0) {
            out[0] = of_block(EVENT_SPLIT, a);
            out[0].size_bytes = 32;
            alive[alive_count] = *a;
            alive[alive_count].e.address += 32;
            alive[alive_count].e.size_bytes -= 32;
            a->e.size_bytes = 32;
            a->is_part = alive[alive_count++].is_part = 1;
            return 1;
        }
        if (a->e.device && !a->is_requested && rnd(3) == 0) {
            out[0] = of_block(EVENT_FREE_REQUESTED, a);
            a->is_requested = 1;
            return 1;
        }
        if (a->e.kind == KIND_device && rnd(20) == 0 && !is_ending[a->e.process_id]) {
            out[0] = of_block(EVENT_TO_SEGMENT, a);
            *a = alive[--alive_count];
            return 1;
        }
        out[0] = of_block(a->is_part                  ? EVENT_PART_FREE
                          : rnd(6) || a->is_requested ? EVENT_FREE
                                                      : EVENT_REALLOC_FREE,
                          a);
        out[0].size_bytes = a->e.size_bytes;
        if (out[0].op == EVENT_REALLOC_FREE) {
            out[1] = out[0];
            out[1].op = EVENT_REALLOC_ALLOC;
            out[1].size_bytes = rnd(5000);
            out[1].stack_id = 1 + (uint32_t)rnd(STACKS);
            *a = (struct alive){.e = out[1]};
            return 2;
        }
        if (!a->is_part && freed_count < LIVE_MAX)
            freed[freed_count++] = a->e.address;
        *a = alive[--alive_count];
        return 1;
    }
    out[0] = new_event(EVENT_ALLOC);
    next_address += 0x100000;
    out[0].address = freed_count && rnd(2) ? freed[--freed_count] : next_address;
    out[0].size_bytes = rnd(20) ? 16 * rnd(100) : rnd(200000);
    out[0].stack_id = 1 + (uint32_t)rnd(STACKS);
    alive[alive_count++] = (struct alive){.e = out[0]};
    return 1;
}

void random_run(struct account_run *r, uint64_t seed, const struct account_options *options)
{
    struct event e[2];
    random_seed = seed;
    alive_count = freed_count = next_address = 0;
    random_run_end_ns = 1000;
    memset(is_ending, 0, sizeof is_ending);
    for (last_process = 0; last_process < PROCESSES; last_process++)
        running[last_process] = last_process + 1;
    account_run_open(r, options);
    for (int i = 0; i < EVENTS; i++) {
        size_t n = make(e);
        account_events(r->account, e, n);
        unsigned *slot = &running[rnd(PROCESSES)], process = *slot;
        if (rnd(2000) == 0 && !is_ending[process]++) {
            e[0] =
                (struct event){.time_ns = ++random_run_end_ns, .op = EVENT_TEARDOWN, .process_id = (uint16_t)process};
            account_events(r->account, e, 1);
            random_run_end_ns++; /* the file has the time alone: what is before and behind it has others */
        } else if (rnd(2000) == 0 && last_process + 1 < PROCESSES_MAX) {
            e[0] =
                (struct event){.time_ns = random_run_end_ns, .op = EVENT_PROCESS_END, .process_id = (uint16_t)process};
            account_events(r->account, e, 1);
            forget_process(process);
            *slot = ++last_process;
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        e[0] =
            (struct event){.time_ns = ++random_run_end_ns, .op = EVENT_PROCESS_END, .process_id = (uint16_t)running[i]};
        account_events(r->account, e, 1);
    }
    account_finish(r->account, random_run_end_ns + 5);
}
