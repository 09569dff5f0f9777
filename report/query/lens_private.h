/*
 * lens_private.h: what a lens works on, and its stages: what the user asks for (lens.c), the sites (lens_load.c) and
 * their accounts (lens_account.c), the tables that stand before those of the file (lens_tables.c); sites alone
 * (lens_sites.c), and their lines (lens_own_lines.c).
 */
#ifndef MEMPROF_LENS_PRIVATE_H
#define MEMPROF_LENS_PRIVATE_H

#include "../../common/array.h"
#include "../../common/map.h"
#include "lens.h"
#include "replay.h"
#include "stat.h"

enum lens_scope {
    LENS_LINE,
    LENS_FUNCTION,
    LENS_FILE,
    LENS_MODULE,
    LENS_COUNT, /* of those that code makes up */
    LENS_OP = LENS_COUNT,
    LENS_THREAD,
    LENS_SCOPES
};

extern const char *const lens_scope_names[LENS_SCOPES];

struct lens_site {
    int64_t id, stack_id, process_id, device_id, op_id; /* op_id 0: none */
    uint32_t kind;                                      /* kinds */
    uint32_t line, old_line;
    struct tree_place self;
    struct stat_row stats;
};

struct lens_row { /* of an account */
    enum lens_scope scope;
    int inclusive;
    int64_t key; /* index of a line or function; id of a file or module */
    int64_t device_id;
    uint32_t kind;
    uint32_t site_count;
    struct stat_row stats;
};

struct lens {
    sqlite3 *db;
    const struct lens_options *options;
    struct tree tree;
    struct replay_images images;
    struct replay replay;
    int is_replayed;
    struct lens_site *sites;
    struct lens_row *rows;
    uint32_t site_count, site_capacity, row_count, row_capacity;
    char (*kinds)[32]; /* 0: "all" */
    uint32_t kind_count, kind_capacity;
    struct map row_of;  /* (key, device and kind) */
    struct map changed; /* (key, 0): its sites are not those of the file */
    struct map seen;    /* (key, 0): the site that was counted last */
    uint32_t no_frame;  /* line of the sites without a frame of the language; 0: all are shown */
};

enum { LENS_WINDOWED_COUNT = STAT_VALUE_COUNT - STAT_SCANNED_END };

/* A kind's number. */
uint32_t lens_kind(struct lens *l, const char *name);
int lens_load_sites(struct lens *l, struct error *err);
/* Marks what the options skip in the tree; -EINVAL where there is nothing of a name. */
int lens_mark_skipped(struct lens *l, struct error *err);
/* The line of sites without a frame of the language that is shown. */
void lens_add_no_frame(struct lens *l);
/* The self frame of a site: from the recorder's outwards; where that is of another language, from the innermost on. */
void lens_choose_self(struct lens *l, struct lens_site *site);
/* Chooses the line of each site and adds up its keys. */
void lens_account(struct lens *l);
/* Those of threads, which a replay by event has. */
void lens_account_threads(struct lens *l);
/* Rows whose sites are as before have the own peak that the recorder computed from the events. */
int lens_restore_own_peaks(struct lens *l, struct error *err);
/* As the database has it. */
int64_t lens_row_key(const struct lens *l, const struct lens_row *row);

int lens_write(struct lens *l, struct error *err);
/* Of it the lines alone that the tree has beyond the file's. */
int lens_write_lines(struct lens *l, struct error *err);

/* What is wanted of the events; is_replayed says whether anything is. */
int lens_load_replay(struct lens *l, struct error *err);
/* All of it where sites alone are wanted (lens_sites.c). */
int lens_apply_sites(struct lens *l, struct error *err);
/* Where functions are skipped or a language is shown: the line of each site, one site at a time (lens_own_lines.c). */
int lens_own_lines(struct lens *l, struct error *err);
/* Totals, the window, and the views over what temp.lens_site has. */
int lens_write_replayed(struct lens *l, struct error *err);
/* Statistics from first to end, at column at. */
void lens_bind_stats(sqlite3_stmt *s, int at, const struct stat_row *stats, int first, int end);
/* INSERT INTO temp.table VALUES(?, ...) */
int lens_prepare_insert(sqlite3 *db, const char *table, int columns, sqlite3_stmt **s, struct error *err);

#endif
