/*
 * lines_load.h: what `memprof lines` shows: functions grouped by their source (instances of a template, clones and the
 * same function in several processes become one), each with its lines.
 */
#ifndef MEMPROF_LINES_LOAD_H
#define MEMPROF_LINES_LOAD_H

#include "../query/line_reserved.h"
#include "lines.h"

struct lines_line {
    int64_t line;
    struct stat_row stats;
    int has_own_peaks; /* each of its instances does, whose sum has none */
    int64_t reserved_growth_bytes;
};

struct lines_group { /* strings are owned */
    char *name;      /* the qualified name, without arguments */
    char *plain_name;
    char *path; /* NULL: no source position */
    char *device;
    int64_t declared_file_id, declared_line; /* 0: unknown */
    int64_t bare_line_id;                    /* of code without a symbol; 0: of a function */
    int64_t file_id, device_id;
    struct lines_line *lines; /* ascending */
    int line_count, line_capacity;
    int64_t weight_bytes[2];          /* for sorting: the largest at_peak_bytes and alloc_bytes of a line */
    int64_t function_weight_bytes[2]; /* the same over all devices */
    uint32_t files;                   /* a bit per --file that its own matches */
    enum line_reserved_state reserved;
};

struct lines_groups {
    struct lines_group *group;
    int count, capacity;
    int64_t function_count; /* functions that matched, with data or without */
    /* a bit per --func and --file, in their order: matches a function, matches something that is shown */
    uint32_t known_functions, shown_functions, shown_files;
};

/* A statistic of a line, those of lines alone as well. */
int64_t lines_value(const struct lines_group *group, const struct lines_line *line, int stat, int *is_known);
int lines_load(sqlite3 *db, const struct lines_options *options, struct lines_groups *groups, struct error *err);
void lines_unload(struct lines_groups *groups);
void lines_free_group(struct lines_group *group);

/* lines_own.c */
struct lines_places { /* the directory of the run, and that of the script that an interpreter ran */
    char *run;
    struct buf script;
};
void lines_places_open(sqlite3 *db, struct lines_places *places);
void lines_places_close(struct lines_places *places);
int lines_places_have(const struct lines_places *places, const char *path); /* NULL: no file */
/* Takes out what a --file means beside a file of the program's own, one in the run's directory or the script's; a
 * pattern or a longer end of the path asks for both. Appends what to say of it. */
void lines_prefer_own(sqlite3 *db, const struct lines_options *options, struct lines_groups *groups, struct buf *said);
/* Moves Python's own functions, and those of packages, behind the program's where these hold enough to be looked at. */
void lines_own_first(sqlite3 *db, struct lines_groups *groups);
/* Declared line of the function that follows this one in the same file; INT64_MAX without one. */
int64_t lines_next_function(sqlite3 *db, const struct lines_group *group);

#endif
