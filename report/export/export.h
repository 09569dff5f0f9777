/*
 * export.h: a recording in the formats of other tools. One row of export.def and one function a format.
 */
#ifndef MEMPROF_EXPORT_H
#define MEMPROF_EXPORT_H

#include "../../common/error.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>

struct export_options {
    const char *device;     /* this one only; NULL: the format's choice */
    int64_t max_events;     /* of each device, the last ones; 0: all */
    int64_t min_size_bytes; /* of a block */
    int has_window;         /* only what happened in this part of the run: */
    int64_t from_ns, to_ns; /* before to_ns; INT64_MAX: to the end */
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
    int (*write)(sqlite3 *db, const struct export_options *options, FILE *out, struct export_result *result,
                 struct error *err);
};

extern const struct export_format export_formats[];
extern const int export_format_count;
/* NULL: none of that name */
const struct export_format *export_find(const char *name);

#define FORMAT(name, function, suffix, text)                                                                           \
    int function(sqlite3 *db, const struct export_options *options, FILE *out, struct export_result *result,           \
                 struct error *err);
#include "export.def"
#undef FORMAT

#endif
