/*
 * policy_parse.h: the text of a policy (docs/policy.md): bands, one a line. A policy from a file is the user's own; one
 * that a program hands over (memprof_policy) is hostile input, and may neither signal nor run anything.
 */
#ifndef MEMPROF_POLICY_PARSE_H
#define MEMPROF_POLICY_PARSE_H

#include <stddef.h>
#include <stdint.h>

#define POLICY_BANDS     64u
#define POLICY_ACTIONS   8u /* of a band */
#define POLICY_NAME      16u
#define POLICY_TEXT_MAX  8000u /* bytes of a program's policy */
#define POLICY_FILE_MAX  65536u
#define POLICY_SHOWN_MAX 1000u /* bytes kept of a line */

enum policy_metric { POLICY_ACTIVE, POLICY_FREED, POLICY_MAX, POLICY_IDLE, POLICY_RESERVED, POLICY_METRICS };
extern const char *const policy_metric_names[POLICY_METRICS];

enum policy_who { POLICY_PROGRAM, POLICY_COLLECTOR, POLICY_TRUSTED };
enum policy_what {
#define X(name, id, who) POLICY_##id,
#include "policy_actions.def"
#undef X
    POLICY_WHATS
};
extern const char *const policy_what_names[POLICY_WHATS];
extern const enum policy_who policy_whose[POLICY_WHATS];

struct policy_action {
    enum policy_what what;
    int signal;             /* SIGNAL */
    char name[POLICY_NAME]; /* CALLBACK: which, "callback" where none is named */
    char *command;          /* RUN; owned */
};

struct policy_band {
    unsigned line;
    char device[POLICY_NAME]; /* "host", "cuda:0"; "cuda:*": each of them, a band of its own */
    unsigned from, to;        /* used %: from <= used < to */
    enum policy_metric metric;
    uint64_t bytes; /* the threshold is the larger of both */
    double percent; /* of the device's capacity */
    struct policy_action actions[POLICY_ACTIONS];
    unsigned action_count;
    char *text; /* the line, for people; owned */
};

struct policy {
    struct policy_band bands[POLICY_BANDS];
    unsigned count;
};

/* tell: each line that is none, with what is wrong with it; what follows is read on. Returns how many there were; with
 * any, or without one band, the policy is empty. Close what was parsed with policy_free. */
typedef void policy_tell(void *arg, unsigned line, const char *what);
unsigned policy_parse(struct policy *p, const char *text, size_t length, int is_trusted, policy_tell *tell, void *arg);
void policy_free(struct policy *p);

/* The number of a signal named "USR1", "SIGUSR1" or "10"; 0: none. */
int policy_signal(const char *name);
/* Whether the band is about this device, which has a name as the desk gives it. */
int policy_is_of(const struct policy_band *band, const char *device);
/* Whether programs are asked to do something themselves. */
int policy_has_orders(const struct policy *p);

#endif
