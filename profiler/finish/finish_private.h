/*
 * finish_private.h: the stages of finish_database and the model of the recording that they share.
 */
#ifndef MEMPROF_FINISH_PRIVATE_H
#define MEMPROF_FINISH_PRIVATE_H

#include "../../common/db.h"
#include "../../common/packed.h"
#include "finish.h"

#include <semaphore.h>
#include <stddef.h>

struct model_ahead;

/* finish_symbols.c: fills function, file and frame, and module.symbols. One transaction. */
int finish_symbols(sqlite3 *db, struct model_ahead *ahead, const struct finish_options *options, struct error *err);

/* finish_source.c: fills file.source. */
int finish_source(sqlite3 *db, struct error *err);

/* finish_frees.c: of which block the frees were that matched none: whose address was last one that was freed. */
int finish_frees(sqlite3 *db, struct error *err);

/* finish_notebook.c: fills file.source of notebooks' cells. */
int finish_notebooks(sqlite3 *db, struct error *err);

/* --- the model: everything as arrays with index 0 for "none" ---------------------------------------------------- */

enum model_stat {
#define STAT(column, name, unit, combine, text) STAT_##column,
#include "../../common/stat.def"
#undef STAT
    STAT_COUNT,                    /* those of the events; */
    STAT_own_largest = STAT_COUNT, /* not in the file: the largest own peak of the sites of a row */
#define STAT(...)
#define SCANNED(column, name, unit, text) STAT_##column,
#include "../../common/stat.def"
#undef STAT
    SCANNED_END,
    STAT_start_bytes = SCANNED_END, /* inherited (site_start) */
    STAT_start_count,
    VALUE_COUNT
};

struct model_function {
    int64_t id;
    int is_allocator;
    int is_for_itself; /* c_library_allocates_for_itself, where it is of that library */
};

struct model_frame {
    uint32_t function; /* index; 0: no symbol */
    uint32_t file;     /* index; 0: none */
    int32_t line;      /* 0: no source position */
    uint32_t address;  /* index */
    uint32_t line_key; /* key of its line; 0: none */
    uint8_t is_python;
};

struct model_file {
    int64_t id;
    uint8_t has_source; /* its text is in the file, or can be read here */
};

struct model_address {
    int64_t offset;
    uint32_t first_frame, frame_count; /* innermost first */
    uint32_t module;                   /* index of the module key; 0: none */
    uint32_t line_key;  /* key of the address itself, where it is a self line without a function; 0: none */
    uint8_t is_ours;    /* code of libmemprof */
    uint8_t is_runtime; /* of the C or C++ run-time library, which calls back into everybody's code */
    uint8_t is_c;       /* of the C library, which allocates for its callers (strdup, fopen, qsort) */
    uint8_t is_own;     /* of a module that the user built: not installed, not the interpreter's */
};

struct model_node {  /* of the stack tree, after model_load in order: parents before children, subtrees together */
    uint32_t parent; /* index; 0: outermost */
    uint32_t address;
};

struct model_group { /* device and kind */
    int64_t device;
    char kind[32];
    uint32_t first_site, site_count;     /* its sites lie together */
    uint32_t device_first, device_count; /* and so do those of its device */
    int64_t peak_bytes;                  /* total.peak_active_bytes of the kind; -1: unknown */
    int64_t device_peak_bytes;           /* and of the device's 'all' */
};

struct model_site { /* by group, then by node */
    int64_t id;
    uint32_t node; /* 0: unknown stack */
    uint32_t group;
    uint32_t line_key; /* self line */
    uint32_t self_frame,
        self_address; /* what the self line is of; frame 0: an address without a function, or nothing */
    uint32_t row;     /* of its statistics */
};

struct model_stats { /* of sites, a column each, by the site's row (from 1) */
    struct packed_values of[VALUE_COUNT];
    uint64_t *own[VALUE_COUNT]; /* those of them that are none of m->packed */
    size_t capacity;            /* of each of these, where they grow */
};

struct model_line { /* what the table line says: indexes */
    uint32_t function, file;
    int32_t line;
    uint32_t module;
    int64_t offset;
    int has_offset;
};

struct model {
    sqlite3 *db;
    struct packed *packed; /* of recordings that have packed rows */
    sem_t *has_read;       /* NULL: nobody waits until the tree's rows are read */
    struct model_function *functions;
    size_t function_count, function_capacity; /* counts include the unused index 0 */
    struct model_file *files;
    size_t file_count, file_capacity;
    size_t module_count;
    struct model_address *addresses;
    size_t address_count, address_capacity;
    struct model_frame *frames;
    size_t frame_count, frame_capacity;
    struct model_node *nodes;
    size_t node_count, node_capacity;
    size_t tree_addresses;    /* rows of the table address when the nodes were read */
    struct model_site *sites; /* from 0 */
    size_t site_count, site_capacity;
    struct model_stats stats;   /* none: self only */
    int is_self_only;           /* sites by their ids, nodes by theirs, and statistics in m->packed alone */
    struct model_group *groups; /* from 0 */
    size_t group_count, group_capacity;
    struct model_line *lines;
    size_t line_count, line_capacity;
};

static inline int64_t model_stat(const struct model *m, const struct model_site *site, enum model_stat stat)
{
    return (int64_t)packed_at(&m->stats.of[stat], site->row);
}

/* A column of the model's own for row_count rows, all 0. */
uint64_t *model_stats_add(struct model_stats *s, enum model_stat stat, size_t row_count);
void model_stats_free(struct model_stats *s);

/* Calls row for every row of the query. -EINTR: interrupted. */
int model_each(sqlite3 *db, const char *sql, void (*row)(void *arg, sqlite3_stmt *s), void *arg, struct error *err);

/* finish_ahead.c: reads the tree of a large recording beside what its symbols take, in a thread and by a connection of
 * its own. Returns NULL where it cannot, or does not pay. */
struct model_ahead *model_ahead_begin(sqlite3 *db);
/* Waits until it needs the file no longer: without a log (WAL), a writer and a reader keep each other out. */
void model_ahead_wait(struct model_ahead *ahead);
/* Waits for it and moves the tree into m, which gets none where it failed: model_tree then says why. */
void model_ahead_take(struct model_ahead *ahead, struct model *m);
void model_ahead_close(struct model_ahead *ahead);
/* finish_tree.c: nodes, sites and groups, which nothing but the recording says. */
int model_tree(sqlite3 *db, struct model *m, struct error *err);
/* What the looks at present pages saw of each site: add gets what is to be added to which statistic. */
int model_scans(const struct model *m, void (*add)(void *arg, int64_t site_id, enum model_stat stat, uint64_t value),
                void *arg, struct error *err);
/* finish_model.c: reads the recording; writes module_key. is_self_only: for the rows of what allocated itself alone,
 * where that is cheaper. */
int model_load(sqlite3 *db, int is_self_only, struct model_ahead *ahead, struct model *m, struct error *err);
void model_free(struct model *m);
/* finish_lines.c: self lines of all sites, keys of all frames; */
void model_lines(struct model *m);
/* and their rows of line and site_line. */
int model_write_lines(struct model *m, struct error *err);
/* finish_plain.c: of packed tables, writes plain rows of what is looked at most. */
int model_plain(struct model *m, struct error *err);
/* finish_account.c: sums of the sites by line, function, file and module, beside what else is made of the model. */
struct model_sums;
struct model_sums *model_sums_begin(struct model *m);
void model_sums_close(struct model_sums *sums);
/* Waits for them and writes account. */
int model_accounts(struct model_sums *sums, struct error *err);
/* finish_ops.c: PyTorch's operators and phases; writes op, site_op, their accounts, and marks of domain 'pytorch'. */
int model_ops(struct model *m, struct error *err);

/* --- own peaks (ownpeak.c) -------------------------------------------------------------------------------------- */

struct ownpeak_range {
    uint32_t first, end; /* sites, by index in the model */
};

struct ownpeak_set {                   /* a set of sites whose largest common live bytes are wanted */
    uint32_t first_range, range_count; /* ascending, disjoint; none: leave it unknown */
    int64_t low_bytes;                 /* known to have been live at some instant */
    int64_t high_bytes;                /* never more than this */
    uint32_t rank;                     /* 0: wanted most; the first ones are settled before the rest */
    int64_t peak_bytes;                /* result; -1: not known */
};

/* Why none of a recording that goes on are known, in its copy: nothing has yet ended what is live. */
#define OWNPEAK_RUNNING "it is still being recorded"
/* NULL: ownpeak_compute may find them. */
const char *ownpeak_hindrance(sqlite3 *db);
/* Exact peaks from the events. Returns 0, -EINTR or -errno; *incomplete: why some are not known, NULL when all are. */
int ownpeak_compute(const struct model *m, const struct ownpeak_range *ranges, struct ownpeak_set *sets,
                    size_t set_count, const char **incomplete, struct error *err);

#endif
