/*
 * pprof_write.h: a profile as pprof reads it, written as it comes: what a message names (strings, functions, locations)
 * may be written before or after it, in the file's one pass. Memory: the strings, once each, and one message.
 */
#ifndef MEMPROF_PPROF_WRITE_H
#define MEMPROF_PPROF_WRITE_H

#include "../../common/buf.h"
#include "../../common/error.h"
#include "../../common/map.h"
#include "pprof.h"

#include <stdint.h>
#include <stdio.h>

struct pprof_writer { /* all of it the writer's own */
    FILE *out;
    struct z_stream_s *zip;
    struct text_map strings;
    struct buf message, part, text;
    unsigned char *plain, *zipped;
    size_t plain_count;
    int failed; /* errno of the first failure */
};

struct pprof_line {
    uint64_t function_id;
    int64_t line; /* 0: unknown */
};

struct pprof_label {
    const char *key, *text;
};

struct pprof_module {
    uint64_t id; /* from 1 on */
    uint64_t start, end;
    const char *path, *build_id; /* NULL: unknown */
};

/* Close in any case. */
void pprof_write_open(struct pprof_writer *w, FILE *out);
/* 0 or -errno with err. */
int pprof_write_close(struct pprof_writer *w, struct error *err);

/* Text may be any bytes up to its NUL: what is not UTF-8 becomes U+FFFD, of which readers of protocol buffers insist.
 */
uint64_t pprof_write_string(struct pprof_writer *w, const char *text);
void pprof_write_number(struct pprof_writer *w, enum pprof_profile_field field, int64_t value);
void pprof_write_text(struct pprof_writer *w, enum pprof_profile_field field, const char *text);
/* sample_type, in the order of the values of each sample, and period_type. */
void pprof_write_type(struct pprof_writer *w, enum pprof_profile_field field, const char *type, const char *unit);
/* The first one is the program. Each has functions, files, lines and inlined frames. */
void pprof_write_mapping(struct pprof_writer *w, const struct pprof_module *module);
void pprof_write_function(struct pprof_writer *w, uint64_t id, const char *name, const char *system_name,
                          const char *file, int64_t line);
/* lines: of functions inlined into one another, innermost first. mapping_id 0: none. */
void pprof_write_location(struct pprof_writer *w, uint64_t id, uint64_t mapping_id, uint64_t address,
                          const struct pprof_line *lines, int count);
void pprof_write_sample(struct pprof_writer *w, const uint64_t *locations, int location_count, const int64_t *values,
                        int value_count, const struct pprof_label *labels, int label_count);

#endif
