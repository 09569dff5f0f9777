/*
 * policy.h: the policy of a recording: looks at the devices' figures, has done what a band wants that is due, and says
 * what that gave back (tables policy_band, policy_action, marks of the domain "policy"). The collector's thread alone.
 */
#ifndef MEMPROF_POLICY_H
#define MEMPROF_POLICY_H

#include "../account/account.h"
#include "drain.h"
#include "session.h"

struct policies;

/* All is borrowed. is_quiet: no line on standard error where an action is switched off. */
struct policies *policies_open(struct session *session, struct drain *drain, struct account *account,
                               struct processes *processes, struct store *store, const struct clock *clock,
                               int is_quiet);
void policies_close(struct policies *k);

/* From now on this one. source: the file's name; NULL: a program's, process_id, which is refused more. Returns 0 where
 * it is none: lines on standard error say why, and the one before stays. */
int policies_set(struct policies *k, const char *text, size_t length, const char *source, unsigned process_id);
/* After a round. now_ns: monotonic. Returns how much there is to commit. */
unsigned policies_look(struct policies *k, uint64_t now_ns);
/* The recording ends: what was not answered never will be. */
void policies_end(struct policies *k);

#endif
