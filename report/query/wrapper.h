/*
 * wrapper.h: functions that only pass memory on (xmalloc, zrealloc): --skip says more of what they hold.
 */
#ifndef MEMPROF_WRAPPER_H
#define MEMPROF_WRAPPER_H

#include "callers.h"

/* Whether a word of its name says so. A line of code without a name may always be one's. */
int wrapper_is_named(const struct row *row);
/* What --skip is to be given for the function of a row: its name, with as much of its scopes as tells it from others of
 * that name. Appended to out. */
void wrapper_skip_name(sqlite3 *db, const struct row *row, struct buf *out);
/* The options that show a wrapper's callers, " --skip NAME", appended to those in options that are others. */
void wrapper_add_skips(sqlite3 *db, const struct row *row, const struct callers *callers, struct buf *options);
void wrapper_add_options(const char *more, struct buf *options);
/* Whether the line of a row (by ROW_LINE) is a wrapper's that is called like that: its name says so, or what it does:
 * one line allocates all that its function does, for many functions, or for a few that ask for sizes of theirs. Where
 * no line is known, one address stands for it. */
int wrapper_is(struct walk *walk, const struct row *row, const struct callers *callers);

/* A caller that is the only one says little: its callers follow it, up to where they part. Of a row (by ROW_LINE), one
 * above the other; the last ones are those that wrapper_is asks for. 0 or -errno with err; free in both cases. */
#define WRAPPER_CHAIN_MAX 6
struct wrapper_chain {
    struct callers callers[WRAPPER_CHAIN_MAX];
    int count; /* at least 1 */
};
int wrapper_chain_load(sqlite3 *db, struct walk *walk, const struct row *row, enum callers_of of, const char *kind,
                       struct wrapper_chain *chain, struct error *err);
const struct callers *wrapper_chain_last(const struct wrapper_chain *chain);
void wrapper_chain_free(struct wrapper_chain *chain);

/* The last callers of the line of a site of a device, where that is a wrapper's; else callers->count is 0. Of a line
 * as it was recorded only if its name says so: a leak in a function that many call is one line's. skips, where it is
 * not NULL: wrapper_add_skips. 0 or -errno with err; callers_free in both cases. */
int wrapper_callers(sqlite3 *db, int64_t site_id, const char *device, enum callers_of of, struct callers *callers,
                    struct buf *skips, struct error *err);

#endif
