/*
 * fuzz_policy.c: policies, which programs hand over (memprof_policy) and users name (run --policy): what one says is
 * held against figures of all sizes. A program's may neither signal nor run anything.
 */
#include "../../profiler/collect/policy_engine.h"
#include "input.h"

#include <stdlib.h>
#include <string.h>

static uint64_t take_figure(struct input *in)
{
    const unsigned shift = input_take(in) % 64;
    return (uint64_t)input_take(in) << shift;
}

static void tell(void *arg, unsigned line, const char *what)
{
    unsigned *count = arg;
    (*count)++;
    for (const char *p = what; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            abort();
    if (!line || !*what)
        abort();
}

static void hold(const struct policy_band *b, struct input *in)
{
    struct policy_state s = {.acted_ns = take_figure(in), .freed_base = take_figure(in)};
    struct policy_figures f = {take_figure(in), take_figure(in), take_figure(in),
                               take_figure(in), take_figure(in), take_figure(in)};
    const int was_due = policy_is_due(b, &s, &f, s.acted_ns + POLICY_PAUSE_NS);
    if (was_due && policy_value(b, &s, &f) < policy_threshold(b, &f))
        abort();
    policy_acted(&s, &f, s.acted_ns + 1);
    for (unsigned i = 0; i < b->action_count; i++)
        for (unsigned times = 0; times < 2 * POLICY_FRUITLESS; times++)
            policy_helped(&s, i, 0, f.used);
    if (policy_is_due(b, &s, &f, UINT64_MAX)) /* all are off */
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct policy p;
    unsigned told = 0;
    const int is_trusted = input_take(&in) & 1;
    const unsigned wrong = policy_parse(&p, (const char *)in.data, in.size, is_trusted, tell, &told);
    if (told != wrong || !wrong != (p.count > 0))
        abort();
    for (unsigned i = 0; i < p.count; i++) {
        const struct policy_band *b = &p.bands[i];
        for (unsigned k = 0; k < b->action_count; k++)
            if ((policy_whose[b->actions[k].what] == POLICY_TRUSTED && !is_trusted) ||
                (b->actions[k].what == POLICY_RUN) != (b->actions[k].command != NULL))
                abort();
        hold(b, &in);
    }
    policy_free(&p);
    return 0;
}
