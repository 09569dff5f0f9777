/*
 * check.h: holds a recording to rules: what each measured, whether it is kept, and the code that breaks it. Numbers are
 * active bytes and counts, exact as the recording has them; what cannot be measured exactly is said, never guessed.
 */
#ifndef MEMPROF_CHECK_H
#define MEMPROF_CHECK_H

#include "../../common/error.h"
#include "../print/out.h"
#include "../query/lens.h"
#include "../query/suppress.h"
#include "rules.h"

#include <sqlite3.h>
#include <stdio.h>

enum check_verdict { CHECK_KEPT, CHECK_BROKEN, CHECK_UNKNOWN };
extern const char *const check_verdict_names[]; /* "kept", "broken", "unknown" */

struct check_baseline {
    const char *file;
    struct check_rules values; /* what it had: limits that growth is measured from */
    sqlite3 *db;               /* NULL: a file of rules */
};

struct check_options {
    const char *file;          /* as the user named it */
    const char *device, *kind; /* NULL: all */
    const struct lens_options *lens;
    struct suppressions *suppressions;
    int all; /* what libraries keep for themselves is a leak, too */
    const struct check_rules *rules;
    const struct check_baseline *baseline; /* NULL: none */
    int64_t top, frames;                   /* of what broke a rule; 0: all */
    const char *failed;                    /* that the program that was run did, and how; NULL: it did not */
    int is_killed;                         /* a signal ended it */
};

struct check_culprit { /* code that has a part of what broke a rule; strings are owned, NULL: unknown */
    int64_t value;
    int64_t live_bytes, kept_bytes, kept_blocks; /* of leaks: live at the end; of these, what no interpreter freed */
    enum { CULPRIT_LINE, CULPRIT_FUNCTION, CULPRIT_FILE } of; /* what the value is of; the line has the most of it */
    double slope;                                             /* of a range: bytes an execution */
    char *device, *function, *file;
    int64_t line, stack_id; /* stack_id 0: none */
};

struct check_result {
    enum check_id id;
    char *subject, *origin; /* owned; subject NULL: none */
    char *short_subject;    /* owned, as people read it: no template arguments; NULL: as it is */
    enum check_verdict verdict;
    int is_optional;  /* its place may be absent from the recording */
    int is_known;     /* what was measured, exactly: else it is at least that much */
    int64_t measured; /* of a range: rounded */
    int64_t most;     /* where it is not known: it is at most this; -1: nothing says */
    double slope;     /* of a range: bytes an execution */
    int64_t limit;
    int is_growth; /* measured from a baseline: limit is what there may be at the most */
    int64_t baseline;
    char note[256]; /* why it is not known, or what is to be known; "" */
    struct check_culprit *culprits;
    int culprit_count, culprit_capacity;
    int is_difference; /* the culprits' values are what there is more than in the baseline */
    int run, last_run; /* from 0 on: whose all this is, and the last one that had the rule */
    struct check_spread {
        double least, most; /* of the runs that measured it */
        int known_runs, broken_runs;
    } spread;
};

#define CHECK_RUNS_MAX 100

struct check_results {
    struct check_result *result;
    int count, capacity;
    int counts[3];               /* by verdict */
    sqlite3 *db[CHECK_RUNS_MAX]; /* of each run; borrowed */
    int run_count;
};

/* 0 or -errno with err; -EINVAL: what the user asked for is not in the recording. Free in any case. */
int check_measure(sqlite3 *db, const struct check_options *options, struct check_results *results, struct error *err);
void check_results_free(struct check_results *results);
/* repeat.c: adds one run's results to those of the runs before (all-zero: none), which are fewer than CHECK_RUNS_MAX:
 * each rule is that of its worst run. one is empty then. */
void check_results_join(struct check_results *all, struct check_results *one);

/* baseline.c: what a recording has, as rules: peaks, leaks, counts by device, and the functions that held most. */
int check_rules_of(sqlite3 *db, const struct check_options *options, struct check_rules *rules, struct error *err);
/* The same as a file of rules to look through; of several runs the most of each. */
int check_write_rules(sqlite3 *const dbs[], int count, const struct check_options *options, FILE *file,
                      struct error *err);

/* print.c: text, JSON or CSV. */
int check_print(sqlite3 *db, const struct check_options *options, const struct check_results *results,
                const struct report_out *out, struct error *err);
/* junit.c: a test case a rule, in the XML of Ant's JUnit task, as Jenkins and others read it. */
int check_junit(sqlite3 *db, const struct check_options *options, const struct check_results *results, FILE *file,
                struct error *err);
/* annotate.c: GitHub's workflow commands: "::error file=net.c,line=42,title=max-peak host::..." */
void check_annotate(const struct check_options *options, const struct check_results *results, const char *base,
                    FILE *file);

#endif
