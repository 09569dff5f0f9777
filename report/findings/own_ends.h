/*
 * own_ends.h: what the program had live at its end, less what other programs that it ran had at theirs (a shell that
 * starts a helper, a compiler): as `memprof leaks` counts it.
 */
#ifndef MEMPROF_FINDING_OWN_ENDS_H
#define MEMPROF_FINDING_OWN_ENDS_H

#include "../../common/error.h"
#include "../query/process_parts.h"
#include "../query/programs.h"

struct own_ends {
    struct programs programs;
    struct process_parts parts;
    int has_others; /* 0: all that was recorded is the program */
    int has_killed; /* a signal killed some of its processes */
};

struct ends { /* of a site; torn: freed as an interpreter took itself down */
    int64_t bytes, count, torn_bytes, torn_count;
    int64_t killed_bytes; /* beside the torn ones: of processes that a signal killed, as far as that is known */
};

/* 0, or -errno with err. own_ends_close in any case. The second one reads whose processes are whose, and no ends. */
int own_ends_open(sqlite3 *db, struct own_ends *own, struct error *err);
int own_ends_programs(sqlite3 *db, struct own_ends *own, struct error *err);
void own_ends_close(struct own_ends *own);
/* Takes out of a site's ends what other programs had, which is returned, and what images had that executed another
 * program in their place, and tells what of the rest killed processes had; process_id: of its first allocation. */
struct ends own_ends_split(const struct own_ends *own, int64_t site_id, int64_t process_id, struct ends *ends,
                           struct ends *replaced);
/* Whether the process is of another program than the one that was to be recorded. */
int own_ends_is_other(const struct own_ends *own, int64_t process_id);

#endif
