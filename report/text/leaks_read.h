/*
 * leaks_read.h: what is live at an instant, stack by stack or line by line, less what is suppressed or counted apart:
 * what leaks.c prints.
 */
#ifndef MEMPROF_LEAKS_READ_H
#define MEMPROF_LEAKS_READ_H

#include "../query/at.h"
#include "../query/noise.h"
#include "../query/process_parts.h"
#include "../query/programs.h"
#include "../query/rows.h"
#include "leaks.h"

struct leak {
    int64_t stack_id, line_id, bytes, blocks, largest_bytes;
    int64_t torn_bytes, torn_blocks;     /* of them: freed while the interpreter took itself down */
    int64_t killed_bytes, killed_blocks; /* of them, and not of those: of processes that a signal killed */
    char *device, *kind, *function, *file, *module;
    char *beside; /* of a line without a file, for people: the module, or who called it; NULL: not known */
    int64_t line;
    double bytes_variance, blocks_variance; /* of a sampled recording */
    uint64_t shown;                         /* walk_shown_hash, where frames are hidden */
    int is_start; /* made while the dynamic loader started the program, not by its main() or a thread */
    int is_kept;  /* by a process that took its interpreter down, which did not free all of it */
};

struct leaks {
    sqlite3 *db;
    const struct leaks_options *options;
    const struct report_out *out;
    struct walk *walk;
    struct walk *whole; /* with the frames that walk leaves out; NULL: it leaves out none */
    struct noise *noise;
    char *cwd;
    struct programs programs;   /* none: all count */
    struct process_parts parts; /* with has_parts */
    int has_parts;
    struct at_result at; /* with REPORT_AT_TIME */
    struct leak *leak;
    int count, capacity;
    int64_t bytes, blocks;                  /* not suppressed */
    double bytes_variance, blocks_variance; /* of these */
    int is_sampled;
    int64_t start_bytes, start_blocks;
    int64_t torn_bytes, torn_blocks;
    int64_t killed_bytes, killed_blocks; /* of these, and not of those before: of processes that were killed */
    struct {
        int64_t bytes, blocks;
    } hidden[NOISE_KINDS];                     /* not shown, and not among the above */
    int64_t other_bytes, other_blocks;         /* the same, of other programs than the one that was named */
    int64_t inherited_bytes, inherited_blocks; /* of a part of a rotated recording; not among the above */
    int64_t suppressed_stacks, suppressed_bytes, suppressed_blocks;
};

/* Those that are not suppressed, largest first. l: db, options and out are set. Returns 0 or a negative errno with err;
 * leaks_close() either way. */
int leaks_read(struct leaks *l, struct error *err);
void leaks_close(struct leaks *l);

/* Whether it is the end of the run or of a window that they are of. */
int leaks_are_of_end(const struct leaks *l);
/* People are shown what a traceback of Python has, unless they ask for all frames. */
int leaks_fold(const struct leaks *l);
/* Whether all of it was freed after what counts as the end. */
int leak_is_torn(const struct leak *leak);

#endif
