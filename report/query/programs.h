/*
 * programs.h: which processes of a recording are the program that was to be recorded: the one that was named, as it
 * ended, and what it forked; not what it executed (system, make). Where a shell was named, it is all that the shell
 * ran; where a launcher was (timeout, xargs), what it started.
 */
#ifndef MEMPROF_PROGRAMS_H
#define MEMPROF_PROGRAMS_H

#include "../../common/buf.h"
#include "../../common/error.h"

#include <sqlite3.h>
#include <stdint.h>

struct programs_process {
    int64_t process_id, pid;
    char *exe, *command;
    int is_named;          /* of the program */
    int is_replaced;       /* it ended as it executed another program, which has a process of its own here */
    int is_killed;         /* by a signal */
    int is_torn;           /* its interpreter took itself down before it ended */
    int64_t bytes, blocks; /* for the user of this to sum */
};

struct programs {
    struct programs_process *item; /* by process_id */
    uint32_t count, capacity;
};

int programs_load(sqlite3 *db, struct programs *programs, struct error *err);
void programs_free(struct programs *programs);
/* NULL: the recording does not say. */
struct programs_process *programs_find(const struct programs *programs, int64_t process_id);
/* The process that had most live at its end, if it is not of the program, and such processes all had more than the
 * program's did: what 'memprof leaks' lists is then not where most is. largest_id: which one it is; 0: by the accounts
 * alone. name: its program, appended. 0: none */
int64_t programs_other_pid(sqlite3 *db, int64_t largest_id, struct buf *name);
/* The command line of what is meant where the recording is of a launcher that started one program, or of a shell that
 * ran one, which had nearly all at the peak, or of one that did so in its place; NULL: it is not. Yours to free. */
char *programs_ran_only(sqlite3 *db);

#endif
