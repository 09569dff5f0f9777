/*
 * export.h: a recording in the formats of other tools. One row of export.def and one function a format.
 */
#ifndef MEMPROF_EXPORT_H
#define MEMPROF_EXPORT_H

#include "../../common/error.h"
#include "../query/lens.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>

enum export_at { EXPORT_AT_ALL, EXPORT_AT_PEAK, EXPORT_AT_END, EXPORT_AT_TIME };

struct export_options {
    const char *file;          /* the recording, as its user names it */
    const char *commit;        /* of the program's source; NULL: unknown */
    const char *device, *kind; /* these only; NULL: the format's choice, all */
    enum export_at at;         /* what was live then alone; EXPORT_AT_ALL: all statistics of the run */
    int64_t at_ns;
    int stat;                  /* stat_id, one whose values add up; -1: the format's own */
    int all_frames;            /* the allocator family's, the interpreter's and those around main(), too */
    int64_t max_events;        /* of each device, the last ones; 0: all */
    int64_t min_size_bytes;    /* of a block */
    int has_window;            /* only what happened in this part of the run: */
    int64_t from_ns, to_ns;    /* before to_ns; INT64_MAX: to the end */
    struct lens_options *lens; /* process, functions, language, window: for export_sites_open to apply */
};

/* What a format can hold, of what export_options chooses. */
enum export_takes {
    EXPORT_TAKES_AT = 1 << 0,
    EXPORT_TAKES_WINDOW = 1 << 1,
    EXPORT_TAKES_RANGES = 1 << 2, /* a window of several */
    EXPORT_TAKES_DEVICE = 1 << 3,
    EXPORT_TAKES_KIND = 1 << 4,
    EXPORT_TAKES_PROCESS = 1 << 5,
    EXPORT_TAKES_FRAMES = 1 << 6, /* --skip, --native, --python-only, --all-frames */
    EXPORT_TAKES_MIN_SIZE = 1 << 7,
    EXPORT_TAKES_STAT = 1 << 8,
    EXPORT_TAKES_MAX_EVENTS = 1 << 9,
    EXPORT_TAKES_SITES = EXPORT_TAKES_MAX_EVENTS - 1, /* all that sites.h does */
    EXPORT_TAKES_COMMIT = 1 << 10,
    EXPORT_TAKES_OWN_FRAMES = 1 << 11, /* of those of FRAMES, what chooses the allocating line: not --all-frames */
    EXPORT_TAKES_ROWS = EXPORT_TAKES_WINDOW | EXPORT_TAKES_RANGES | EXPORT_TAKES_DEVICE | EXPORT_TAKES_KIND |
                        EXPORT_TAKES_PROCESS | EXPORT_TAKES_OWN_FRAMES | EXPORT_TAKES_MIN_SIZE | EXPORT_TAKES_COMMIT
};

struct export_result {
    int64_t item_count;
    const char *item; /* what was counted, in plural */
    char note[2048];  /* what is not in it, a line each; "": all is */
};

struct export_format {
    const char *name;   /* as --format has it */
    const char *suffix; /* of its files, with the dot */
    const char *text;
    unsigned takes; /* bits: enum export_takes */
    int (*write)(sqlite3 *db, const struct export_options *options, FILE *out, struct export_result *result,
                 struct error *err);
};

extern const struct export_format export_formats[];
extern const int export_format_count;
/* NULL: none of that name */
const struct export_format *export_find(const char *name);

#define FORMAT(name, function, suffix, takes, text)                                                                    \
    int function(sqlite3 *db, const struct export_options *options, FILE *out, struct export_result *result,           \
                 struct error *err);
#include "export.def"
#undef FORMAT

#endif
