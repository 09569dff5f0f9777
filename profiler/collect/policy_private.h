/*
 * policy_private.h: what policy.c (which band acts, when), policy_act.c (how an action is done, and what came of it)
 * and policy_rows.c (its rows in the file) share, nobody else.
 */
#ifndef MEMPROF_POLICY_PRIVATE_H
#define MEMPROF_POLICY_PRIVATE_H

#include "policy.h"
#include "policy_engine.h"

#define POLICY_ACTIONS_MAX  65536u /* rows; what comes later is done, and not written down */
#define POLICY_PENDING_MAX  4096u
#define POLICY_COMMANDS_MAX 4u /* run at the same time */

/* One time that a band acted on a device. Its actions end one by one. */
struct policy_time {
    uint32_t generation; /* of the policy that it is of */
    unsigned band, device;
    int64_t mark_id;
    unsigned unanswered; /* orders */
    uint64_t before[POLICY_ACTIONS], after[POLICY_ACTIONS];
    unsigned asked[POLICY_ACTIONS], done[POLICY_ACTIONS], refused[POLICY_ACTIONS];
};

/* Something that was asked for, and what is to be seen of it. */
struct policy_pending {
    struct policy_time *time;
    unsigned action;
    const struct process *process; /* whose order, or whom it is about */
    uint32_t slot, number;         /* of the order */
    uint16_t process_id;
    int pid;            /* RUN: of the command */
    int is_answered;    /* its figures afterwards are read at settle_ns */
    uint64_t settle_ns; /* monotonic */
    int64_t action_id;  /* its row; 0: none */
    enum policy_what what;
};

struct policies {
    struct session *session;
    struct drain *drain;
    struct account *account;
    struct processes *processes;
    struct store *store;
    const struct clock *clock;
    int is_quiet;
    unsigned complaints; /* about programs' policies */
    struct policy policy;
    char *source; /* NULL: a program's */
    uint32_t generation;
    int64_t first_band_id;       /* of its bands in the file */
    struct policy_state *states; /* a band's are DEVICE_ROWS */
    struct {
        uint64_t last, sum; /* freed bytes: as the figures have them, which begin anew with an epoch; of all */
    } freed[DEVICE_ROWS];
    uint64_t look_ns, host_ns, now_ns;
    uint64_t host_used, host_total;
    struct policy_pending *pending;
    size_t pending_count, pending_room;
    int64_t action_rows, band_rows;
};

/* --- policy.c --- */

void policy_device_name(const struct policies *k, unsigned device, char name[POLICY_NAME]);
void policy_figures_now(struct policies *k, unsigned device, struct policy_figures *f);
/* All actions of a time are over. */
void policy_time_ends(struct policies *k, struct policy_time *t);

/* --- policy_act.c --- */

/* Has the actions of a band done. 0: there was nobody to do anything, and nothing was done. */
int policy_act(struct policies *k, unsigned band, unsigned device, const struct policy_figures *f);
/* What became of those that are pending. Returns how many changed. */
unsigned policy_settle(struct policies *k);
/* The recording ends. */
void policy_abandon(struct policies *k);

/* --- policy_rows.c --- */

void policy_write_bands(struct policies *k, unsigned process_id);
void policy_end_bands(struct policies *k);
int64_t policy_write_action(struct policies *k, const struct policy_time *t, unsigned action, unsigned process_id,
                            const struct policy_figures *f, const char *status);
void policy_write_answer(struct policies *k, int64_t action_id, const struct wire_order *o);
void policy_write_status(struct policies *k, int64_t action_id, const char *status);
void policy_write_after(struct policies *k, int64_t action_id, const struct policy_figures *f);
void policy_write_off(struct policies *k, const struct policy_time *t, unsigned action);

#endif
