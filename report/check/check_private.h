/* check_private.h: what the files of a check share. */
#ifndef MEMPROF_CHECK_PRIVATE_H
#define MEMPROF_CHECK_PRIVATE_H

#include "../../common/buf.h"
#include "../query/diff.h"
#include "../query/rows.h"
#include "../query/walk.h"
#include "check.h"

struct check_device {
    char *name;
    int64_t value[CHECK_ID_COUNT];
    uint32_t known;
    int64_t reserved_ns;           /* when reserved bytes were highest */
    struct check_culprit *culprit; /* leaks */
    int culprit_count, culprit_capacity;
    int64_t torn_bytes; /* of leaks: what an interpreter freed when it took itself down */
};

struct check_measure { /* what was read of a recording so far */
    sqlite3 *db;
    struct diff *diff; /* by function, from a baseline that is a recording; NULL: not asked for */
    const struct check_options *options;
    struct check_device *device;
    int device_count, device_capacity;
    int has_totals, has_leaks, has_largest;
    struct check_rows {
        struct rows rows;
        int is_loaded;
    } rows[ROW_KEY_COUNT][2],    /* by key, inclusive */
        all_rows[ROW_KEY_COUNT]; /* inclusive, of all devices and kinds */
};

struct check_value {
    int is_known, is_absent; /* absent: no code of that name was recorded */
    int is_sum;              /* of a merged file: at most what its recordings had, each for itself */
    int64_t value;           /* where it is not known: it is at least this, */
    int64_t most;            /* and at most this; -1: nothing says */
    char note[256];
};

int check_is_of_leaks(enum check_id id);
void check_measure_close(struct check_measure *m);
int check_measure_devices(struct check_measure *m, struct error *err);
/* Of a device; culprits are added where the result is given and the limit is exceeded. */
int check_value_of_device(struct check_measure *m, enum check_id id, const char *device, struct check_value *value,
                          struct error *err);
int check_value_of_place(struct check_measure *m, enum check_id id, const char *subject, struct check_value *value,
                         struct error *err);
/* The rows that a place names: next(m, place, rows, from) is the number of the first from there on, or -1. */
struct rows *check_rows_of_place(struct check_measure *m, enum check_id id, const struct check_place *place,
                                 struct error *err);
int check_next_of_place(const struct check_place *place, const struct rows *rows, int from);

/* Whether a pattern of a place means the function of a row. */
int check_is_of_function(const char *pattern, const struct row *row);
/* baseline.c: "net.c:forward": neither directories nor lines, which change. 0: no rule can name it so. */
int check_place_name(const char *function, const char *file, struct buf *place);
/* merged.c: a peak of a merged file, whose recordings' own peaks make that sum. */
int check_value_of_merged(struct check_measure *m, enum check_id id, const char *device, int64_t sum,
                          struct check_value *value, struct error *err);
/* renamed.c: what a place of the baseline that is not in the recording is called there, as its file was renamed; the
 * caller frees it. NULL: it is gone. all: the rows of all functions. */
char *check_renamed(struct check_measure *m, const char *subject, const struct rows *all, int *rc, struct error *err);

/* absent.c: why a place is not known, with what may have been meant of these rows. */
void check_absent_note(const struct check_place *place, const struct rows *rows, char *note, size_t size);

/* What so many per cent of a baseline are, rounded down. */
int64_t check_percent_of(double percent, int64_t baseline);

/* growth.c: fills measured, slope, verdict and culprits of a rule on a range. */
int check_growth(struct check_measure *m, struct check_result *result, struct error *err);

/* names.c: fills short_subject. */
void check_shorten_subjects(struct check_results *results);

/* repeat.c: "; 96 to 104 in 3 runs": appended; nothing of one run. */
void check_spread_text(const struct check_results *results, const struct check_result *result, struct buf *out);
void check_free_result(struct check_result *result);

/* culprits.c */
int check_find_culprits(struct check_measure *m, struct check_result *result, struct error *err);
struct check_culprit *check_add_culprit(struct check_result *result);
void check_free_culprit(struct check_culprit *culprit);

/* print.c: "max-peak host, growth"; "940.50 KiB (963,072)"; "at most 2.00 GiB: 63,072 over". Appended. */
enum check_names { CHECK_NAMES_SHORT, CHECK_NAMES_FULL }; /* of functions: for people; for what tells cases apart */
void check_name_text(const struct check_result *result, enum check_names names, struct buf *out);
void check_measured_text(const struct check_result *result, struct buf *out);
void check_limit_text(const struct check_options *options, const struct check_results *results,
                      const struct check_result *result, struct buf *out);
void check_culprit_text(const struct check_result *result, const struct check_culprit *culprit, enum check_names names,
                        const char *base, struct buf *out);
/* Those that read the stacks of each run. */
struct check_walks {
    struct walk *walk[CHECK_RUNS_MAX];
};
int check_walks_open(const struct check_options *options, const struct check_results *results,
                     struct check_walks *walks, struct error *err);
void check_walks_close(struct check_walks *walks);
/* Lines of the culprits with their stacks. */
int check_print_culprits(struct walk *walk, const struct check_options *options, const struct check_result *result,
                         enum check_names names, const char *base, const struct report_out *out, const char *indent,
                         struct error *err);

#endif
