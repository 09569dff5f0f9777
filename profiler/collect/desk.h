/*
 * desk.h: the collector's side of the desk of wire.h: rows with figures as last counted, and answers to those who ask
 * for what is exact up to their call. The collector's thread alone.
 */
#ifndef MEMPROF_DESK_H
#define MEMPROF_DESK_H

#include "../account/account.h"
#include "../store/device_row.h"
#include "drain.h"
#include "session.h"

struct desk;

/* All is borrowed. devices: those that have a row in the file. */
struct desk *desk_open(struct session *session, struct account *account, const struct device_rows *devices);
void desk_close(struct desk *k);

/* After each batch's way out of the drain, and before it goes into the accounts: types of devices that are new. */
void desk_devices(struct desk *k);
/* A SYNC, all events before it being counted. Those that wait for a commit are answered by desk_committed. */
void desk_sync(struct desk *k, const struct drain_sync *sync);
/* Whether somebody waits for a commit. */
int desk_wants_commit(const struct desk *k);
void desk_committed(struct desk *k);
/* After a round: the rows anew, where the last ones are old enough. now_ns: monotonic. */
void desk_publish(struct desk *k, uint64_t now_ns);
/* Into the file: what a type's devices held together at most, where it has several. */
void desk_write(struct desk *k, struct store *store);
/* Whether a SYNC was announced that is not answered yet: no time for a nap. */
int desk_is_asked(struct desk *k, uint64_t now_ns);
/* A nap that ends when somebody asks. */
void desk_nap(const struct desk *k, uint64_t nap_ns);

#endif
