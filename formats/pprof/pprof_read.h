/*
 * pprof_read.h: a profile of pprof as arrays, and its samples one at a time. The file is untrusted: numbers that lead
 * nowhere are taken as nothing and counted, and there is a limit to all that is kept.
 */
#ifndef MEMPROF_PPROF_READ_H
#define MEMPROF_PPROF_READ_H

#include "../../common/buf.h"
#include "../../common/error.h"
#include "../../common/map.h"
#include "../../common/unpack.h"

#include <stddef.h>
#include <stdint.h>

struct pprof_type { /* of a value */
    const char *type, *unit;
};

struct pprof_code_function {
    const char *name, *system_name, *file; /* "": none */
    int64_t start_line;
};

struct pprof_code_mapping {
    const char *path, *build_id;
    uint64_t start, offset;
};

struct pprof_code_line {
    uint32_t function; /* number from 1; 0: none */
    int64_t line;
};

struct pprof_code_location {
    uint64_t address;
    uint32_t mapping;                /* number from 1; 0: none */
    uint32_t first_line, line_count; /* innermost first */
};

struct pprof_tag {
    const char *key, *text; /* text NULL: it is a number */
    int64_t number;
};

struct pprof_taken {     /* one sample */
    uint32_t *locations; /* numbers from 1, innermost first; of what is none, 0 */
    int64_t *values;     /* one a type */
    struct pprof_tag *tags;
    uint32_t location_count, value_count, tag_count;
    uint32_t location_room, value_room, tag_room;
};

struct pprof_bytes {
    const uint8_t *at, *end;
};

struct pprof_read {
    struct buf bytes; /* the message */
    struct pprof_type *types;
    struct pprof_code_function *functions; /* from 1, as the next two */
    struct pprof_code_mapping *mappings;
    struct pprof_code_location *locations;
    struct pprof_code_line *lines; /* from 0 */
    char **texts;                  /* the string table; own copies, a NUL behind each */
    uint32_t type_count, function_count, mapping_count, location_count, line_count, text_count;
    uint32_t type_room, function_room, mapping_room, location_room, line_room, text_room;
    struct map function_ids, mapping_ids, location_ids; /* -> number */
    int64_t time_ns, duration_ns, period;
    const char *period_type, *default_type; /* "": none */
    struct pprof_bytes next;                /* of pprof_read_sample */
    struct pprof_taken sample;
    uint64_t bad_numbers; /* that name what is not there */
    uint64_t bad_samples; /* of another number of values than there are types, left out */
};

/* Reads all of it. 0, or -errno with err: -EBADMSG for what is no profile, is cut or damaged, -E2BIG for one of more
 * than a limit. Free with pprof_read_close in any case. */
int pprof_read_open(struct pprof_read *p, struct unpack *source, struct error *err);
void pprof_read_close(struct pprof_read *p);
/* The next one, until the next call; NULL: there is none left. */
const struct pprof_taken *pprof_read_sample(struct pprof_read *p);

#endif
