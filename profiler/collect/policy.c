#include "policy_private.h"

#include "../account/account_figures.h"
#include "policy_host.h"

#include "../../common/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS        1000000u
#define HOST_NS        20000000u /* between two looks at the host's memory */
#define BANDS_MAX      4096      /* of all policies of a recording */
#define COMPLAINTS_MAX 8u
#define POLICY_TIMES   "3" /* POLICY_FRUITLESS */

_Static_assert(POLICY_FRUITLESS == 3, "as the line says");

struct policies *policies_open(struct session *session, struct drain *drain, struct account *account,
                               struct processes *processes, struct store *store, const struct clock *clock,
                               int is_quiet)
{
    struct policies *k = xcalloc(1, sizeof *k);
    *k = (struct policies){.session = session,
                           .drain = drain,
                           .account = account,
                           .processes = processes,
                           .store = store,
                           .clock = clock,
                           .is_quiet = is_quiet};
    return k;
}

static void drop_policy(struct policies *k)
{
    policy_free(&k->policy);
    free(k->states);
    free(k->source);
    k->states = NULL;
    k->source = NULL;
}

void policies_close(struct policies *k)
{
    if (!k)
        return;
    drop_policy(k);
    for (size_t i = 0; i < k->pending_count; i++)
        if (k->pending[i].time->unanswered-- == 1)
            free(k->pending[i].time);
    free(k->pending);
    free(k);
}

/* --- which one --- */

struct complaint {
    struct policies *k;
    const char *source;
    unsigned process_id;
};

static const char *process_name(const struct policies *k, unsigned process_id, int *pid)
{
    for (uint32_t i = 0; i < k->processes->slot_end; i++) {
        const struct process *p = k->processes->by_slot[i];
        if (p && p->process_id == process_id) {
            *pid = p->outer_pid;
            return p->name;
        }
    }
    *pid = 0;
    return "?";
}

static void complain(void *arg, unsigned line, const char *what)
{
    const struct complaint *c = arg;
    int pid;
    if (c->source) {
        fprintf(stderr, "memprof: %s:%u: %s\n", c->source, line, what);
        return;
    }
    if (c->k->complaints++ >= COMPLAINTS_MAX)
        return;
    const char *name = process_name(c->k, c->process_id, &pid);
    fprintf(stderr, "memprof: policy of %s (%d): line %u: %s\n", name, pid, line, what);
}

int policies_set(struct policies *k, const char *text, size_t length, const char *source, unsigned process_id)
{
    struct policy next;
    struct complaint complaint = {k, source, process_id};
    if (policy_parse(&next, text, length, source != NULL, complain, &complaint))
        return 0;
    if (k->band_rows + next.count > BANDS_MAX) {
        policy_free(&next);
        complain(&complaint, 1, "a recording has had too many policies");
        return 0;
    }
    policy_end_bands(k);
    drop_policy(k);
    k->policy = next;
    k->source = source ? xstrdup(source) : NULL;
    k->states = xcalloc(k->policy.count * (size_t)DEVICE_ROWS, sizeof *k->states);
    k->generation++;
    k->look_ns = k->host_ns = 0;
    policy_write_bands(k, process_id);
    __atomic_store_n(&k->session->control->has_orders, (uint32_t)policy_has_orders(&k->policy), __ATOMIC_RELEASE);
    return 1;
}

/* --- figures --- */

void policy_device_name(const struct policies *k, unsigned device, char name[POLICY_NAME])
{
    const struct device_rows *rows = drain_state(k->drain).devices;
    memset(name, 0, POLICY_NAME);
    if (device)
        snprintf(name, POLICY_NAME, "%s:%u", rows->rows[device].kind, rows->rows[device].ordinal % 1000);
    else
        memcpy(name, "host", 4);
}

static uint64_t freed_of(struct policies *k, unsigned device, uint64_t now)
{
    const uint64_t last = k->freed[device].last;
    k->freed[device].sum += now >= last ? now - last : now;
    k->freed[device].last = now;
    return k->freed[device].sum;
}

static void look_at_host(struct policies *k)
{
    if (k->host_total && k->now_ns - k->host_ns < HOST_NS)
        return;
    k->host_ns = k->now_ns;
    if (!policy_host(&k->host_used, &k->host_total))
        k->host_total = 0;
}

void policy_figures_now(struct policies *k, unsigned device, struct policy_figures *f)
{
    struct account_figures a;
    account_figures_device(k->account, device, 0, &a);
    *f = (struct policy_figures){.active = a.active_bytes,
                                 .reserved = a.reserved_bytes,
                                 .resident = device ? a.reserved_bytes : a.used_bytes,
                                 .freed = freed_of(k, device, a.free_bytes)};
    if (device) {
        /* what its driver says, where anybody asks it */
        f->used = a.used_bytes ? a.used_bytes : a.reserved_bytes;
        f->total = a.total_bytes ? a.total_bytes : drain_state(k->drain).devices->rows[device].total_bytes;
    } else {
        look_at_host(k);
        f->used = k->host_used;
        f->total = k->host_total;
    }
}

/* --- what is due --- */

static struct policy_state *state_of(const struct policies *k, unsigned band, unsigned device)
{
    return &k->states[band * (size_t)DEVICE_ROWS + device];
}

static unsigned look_at_device(struct policies *k, unsigned device)
{
    struct policy_figures f;
    char name[POLICY_NAME];
    unsigned acted = 0;
    int is_known = 0;
    policy_device_name(k, device, name);
    for (unsigned i = 0; i < k->policy.count; i++) {
        if (!policy_is_of(&k->policy.bands[i], name))
            continue;
        if (!is_known)
            policy_figures_now(k, device, &f);
        is_known = 1;
        struct policy_state *s = state_of(k, i, device);
        if (!policy_is_due(&k->policy.bands[i], s, &f, k->now_ns) || !policy_act(k, i, device, &f))
            continue;
        policy_acted(s, &f, k->now_ns);
        acted++;
    }
    return acted;
}

unsigned policies_look(struct policies *k, uint64_t now_ns)
{
    const struct device_rows *rows = drain_state(k->drain).devices;
    unsigned changes = 0;
    if ((!k->policy.count && !k->pending_count) || now_ns - k->look_ns < LOOK_NS)
        return 0;
    k->look_ns = k->now_ns = now_ns;
    changes += policy_settle(k);
    for (unsigned device = 0; device < rows->count && k->policy.count; device++)
        changes += look_at_device(k, device);
    return changes;
}

/* --- whether it helped --- */

static int is_to_help(enum policy_what what)
{
    return policy_whose[what] == POLICY_PROGRAM;
}

static void switch_off(struct policies *k, const struct policy_time *t, unsigned action)
{
    const char *why = t->done[action] ? "gave nothing back, " POLICY_TIMES " times in a row" : "is not possible there";
    const struct policy_band *b = &k->policy.bands[t->band];
    char name[POLICY_NAME];
    policy_device_name(k, t->device, name);
    policy_write_off(k, t, action);
    if (!k->is_quiet)
        fprintf(stderr, "memprof: %s:%u: %s %s (%s); it is switched off\n", k->source ? k->source : "policy", b->line,
                policy_what_names[b->actions[action].what], why, name);
}

void policy_time_ends(struct policies *k, struct policy_time *t)
{
    if (t->mark_id)
        drain_mark_end(k->drain, t->mark_id, clock_ns(k->clock, clock_stamp(k->clock)));
    if (t->generation == k->generation && k->policy.count)
        for (unsigned i = 0; i < k->policy.bands[t->band].action_count; i++) {
            const enum policy_what what = k->policy.bands[t->band].actions[i].what;
            /* a function may be there later; a heap that cannot be trimmed never can */
            if (!is_to_help(what) || !(t->done[i] + (what == POLICY_CALLBACK ? 0 : t->refused[i])))
                continue;
            if (policy_helped(state_of(k, t->band, t->device), i, t->before[i], t->after[i]))
                switch_off(k, t, i);
        }
    free(t);
}

void policies_end(struct policies *k)
{
    policy_abandon(k);
    policy_end_bands(k);
}
