#include "policy_engine.h"

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* What a heap keeps, of what is there: a hole that was given back to the system stays reserved. */
static uint64_t idle(const struct policy_figures *f)
{
    return less(f->reserved < f->resident ? f->reserved : f->resident, f->active);
}

uint64_t policy_value(const struct policy_band *b, const struct policy_state *s, const struct policy_figures *f)
{
    const uint64_t freed = less(f->freed, s->freed_base);
    switch (b->metric) {
    case POLICY_FREED:
        return freed;
    case POLICY_MAX:
        return freed > f->active ? freed : f->active;
    case POLICY_IDLE:
        return idle(f);
    case POLICY_RESERVED:
        return f->reserved;
    default:
        return f->active;
    }
}

uint64_t policy_threshold(const struct policy_band *b, const struct policy_figures *f)
{
    const double part = b->percent / 100 * (double)f->total;
    const uint64_t share = part < (double)UINT64_MAX ? (uint64_t)part : UINT64_MAX;
    return share > b->bytes ? share : b->bytes;
}

/* All actions that programs would be asked for were switched off, and there is no other one. */
static int is_over(const struct policy_band *b, const struct policy_state *s)
{
    for (unsigned i = 0; i < b->action_count; i++)
        if (!s->is_off[i])
            return 0;
    return 1;
}

int policy_is_due(const struct policy_band *b, const struct policy_state *s, const struct policy_figures *f,
                  uint64_t now_ns)
{
    if (!f->total || is_over(b, s) || (s->acted_ns && now_ns - s->acted_ns < POLICY_PAUSE_NS))
        return 0;
    const double used = 100.0 * (double)f->used / (double)f->total;
    return used >= b->from && used < b->to && policy_value(b, s, f) >= policy_threshold(b, f);
}

void policy_acted(struct policy_state *s, const struct policy_figures *f, uint64_t now_ns)
{
    s->freed_base = f->freed;
    s->acted_ns = now_ns;
    s->times++;
}

int policy_helped(struct policy_state *s, unsigned action, uint64_t before, uint64_t after)
{
    if (less(before, after) > before / 100) {
        s->fruitless[action] = 0;
        return 0;
    }
    if (s->is_off[action] || ++s->fruitless[action] < POLICY_FRUITLESS)
        return 0;
    return s->is_off[action] = 1;
}
