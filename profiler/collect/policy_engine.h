/*
 * policy_engine.h: when a band of a policy is due, and which of its actions help. Pure: figures and times come from
 * outside, so that it can be told about any device and any moment.
 */
#ifndef MEMPROF_POLICY_ENGINE_H
#define MEMPROF_POLICY_ENGINE_H

#include "policy_parse.h"

#define POLICY_PAUSE_NS  1000000000u /* between two times that a band acts on a device */
#define POLICY_FRUITLESS 3u          /* times that gave nothing back, until an action is switched off */

struct policy_figures { /* of a device, now: bytes */
    uint64_t active, reserved;
    uint64_t used, total; /* by anybody; total 0: not known, and nothing is due */
    uint64_t resident;    /* host: of the recorded processes; of a GPU as much as is reserved */
    uint64_t freed;       /* of all that was freed so far */
};

struct policy_state {    /* of a band on a device */
    uint64_t freed_base; /* freed when it acted last */
    uint64_t acted_ns;   /* 0: never */
    uint64_t times;
    uint8_t fruitless[POLICY_ACTIONS]; /* in a row */
    uint8_t is_off[POLICY_ACTIONS];
};

/* What the band's metric says, and what it must reach. */
uint64_t policy_value(const struct policy_band *b, const struct policy_state *s, const struct policy_figures *f);
uint64_t policy_threshold(const struct policy_band *b, const struct policy_figures *f);
/* Whether it is to act now; then it acts, and policy_acted follows. */
int policy_is_due(const struct policy_band *b, const struct policy_state *s, const struct policy_figures *f,
                  uint64_t now_ns);
void policy_acted(struct policy_state *s, const struct policy_figures *f, uint64_t now_ns);
/* One time of an action is over: before it was so much, and after it. Returns 1 where that switches it off. */
int policy_helped(struct policy_state *s, unsigned action, uint64_t before, uint64_t after);

#endif
