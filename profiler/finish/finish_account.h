/*
 * finish_account.h: what the files of the accounts by line, function, file and module share: their rows by key and kind
 * of account, and the rows of the table that come of them.
 */
#ifndef MEMPROF_FINISH_ACCOUNT_H
#define MEMPROF_FINISH_ACCOUNT_H

#include "../../common/map.h"
#include "../../common/wrap.h"
#include "finish_private.h"

enum scope { SCOPE_FILE, SCOPE_FUNCTION, SCOPE_LINE, SCOPE_MODULE, SCOPE_COUNT }; /* as the names sort */

struct row {
    uint32_t key;
    uint32_t next; /* of the same key and kind of account; 0: none */
    uint32_t group;
    uint32_t first_link, last_link; /* ranges of sites, ascending */
    uint32_t link_count, site_count;
    uint64_t salt;             /* of its sites: equal sets have equal sums */
    int64_t stat[VALUE_COUNT]; /* own_peak_bytes: the sum of the sites' own peaks, an upper bound */
};

struct link {
    struct ownpeak_range range;
    uint32_t next;
};

struct out_row { /* a row of the table */
    uint8_t scope, inclusive, is_all;
    uint32_t group; /* one of its groups */
    int64_t key_id;
    uint32_t set; /* index + 1; 0: own is final */
    int64_t own;
    int64_t stat[VALUE_COUNT];
};

struct set_rows {          /* what makes a set of sites: rows, one a group */
    uint32_t first, count; /* in row_lists */
    uint32_t range_count;
    int is_self;
    uint64_t site_count;
};

struct level { /* a node on the path from the root */
    uint32_t node;
    size_t first_key; /* of its outermost occurrences, in the pass's keys */
};

struct subtree { /* of a level, what a group has in it so far */
    uint32_t first_site;
    int has_sites;
    int64_t sum[VALUE_COUNT]; /* where it has any */
};

struct account_pass {
    struct model *m;
    uint32_t base[SCOPE_COUNT + 1]; /* first key of each scope */
    uint32_t *first_of;             /* by address: its keys in keys_of; those of the next one end them */
    uint32_t *keys_of;
    size_t keys_of_count, keys_of_capacity;
    uint8_t *on_path;   /* by key: 1: a node on the path has it */
    uint32_t *heads[2]; /* self and inclusive rows of a key */
    struct row *rows;   /* from 1 */
    size_t row_count, row_capacity;
    struct link *links; /* from 1 */
    size_t link_count, link_capacity;
    struct level *levels;
    size_t level_count, level_capacity;
    enum model_stat present[VALUE_COUNT]; /* statistics that any site has */
    unsigned present_count;
    int64_t stat[VALUE_COUNT]; /* of one site; 0 of the others */
    struct subtree *subtrees;  /* level, group */
    uint32_t *cursors;         /* group: first site not yet met */
    uint32_t *keys;            /* outermost occurrences of all levels */
    size_t key_count, key_capacity;
    /* own peaks */
    uint64_t *salt;  /* sums of random numbers over the sites before; NULL: none is looked for */
    int has_unknown; /* one would have been */
    struct map set_map;
    struct ownpeak_set *sets;
    struct set_rows *set_rows; /* by set */
    size_t set_count, set_capacity, set_rows_capacity;
    uint32_t *row_lists;
    size_t row_list_count, row_list_capacity;
    struct ownpeak_range *ranges;
    struct out_row *out;
    size_t out_count, out_capacity;
};

static inline int64_t account_sum(int64_t a, int64_t b)
{
    return wrap_add(a, b);
}

static inline int64_t account_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#define account_exact account_sum /* of own peaks: an upper bound */

static inline void account_combine(int64_t *into, const int64_t *from)
{
#define STAT(column, name, unit, combine, text)                                                                        \
    into[STAT_##column] = account_##combine(into[STAT_##column], from[STAT_##column]);
#define SCANNED(column, name, unit, text) into[STAT_##column] = account_sum(into[STAT_##column], from[STAT_##column]);
#include "../../common/stat.def"
#undef STAT
    for (int i = STAT_start_bytes; i <= STAT_start_count; i++)
        into[i] = account_sum(into[i], from[i]);
    into[STAT_own_largest] = account_max(into[STAT_own_largest], from[STAT_own_largest]);
}

struct row *account_row_of(struct account_pass *p, int inclusive, uint32_t key, uint32_t group);
/* The keys that a site counts for itself, one a scope. */
void account_self_keys(const struct account_pass *p, const struct model_site *site, uint32_t keys[SCOPE_COUNT]);
/* finish_account_walk.c: the rows of what allocated itself and of what it called. Uses the model alone, not the
 * database. Returns 0 or -EINTR. */
int account_walk(struct account_pass *p);
/* finish_account_self.c: the rows of what allocated itself, of a model that is of those alone. */
int account_sum_selves(struct account_pass *p, struct error *err);
/* finish_account_write.c: the rows of the table, and those of resident_account. */
int account_write_rows(struct account_pass *p, struct error *err);
/* finish_account_spread.c: the same of account_spread, of a pass over variances. */
void account_bind_key(const struct account_pass *p, const struct out_row *o, sqlite3_stmt *s);
int account_write_spread(const struct account_pass *p, struct error *err);
/* Puts the variances of the sites in place of their statistics; these are the caller's, to be given back. Returns 1; 0:
 * the recording is not sampled; or -errno. */
int account_spread_begin(struct model *m, struct model_stats *was, struct error *err);

#endif
