/*
 * pickle_write.h: writing a pickle, value by value. Protocol 4: PyTorch's viewer does not read 5. Failures are those of
 * the stream.
 */
#ifndef MEMPROF_PICKLE_WRITE_H
#define MEMPROF_PICKLE_WRITE_H

#include "pickle.h"

#include "../../common/buf.h"

#include <stdio.h>

struct pickle_writer {
    FILE *out;
    uint32_t memo_count;
    struct buf text; /* on its way; its limit is that of a text */
};

void pickle_put_start(struct pickle_writer *w);
void pickle_put_stop(struct pickle_writer *w);

/* An empty list or dict, and its number in the memo. */
uint32_t pickle_put_empty(struct pickle_writer *w, enum pickle_type type);
/* A list or dict, whose items follow, up to its end. */
uint32_t pickle_put_begin(struct pickle_writer *w, enum pickle_type type);
void pickle_put_next(struct pickle_writer *w, int64_t count); /* after item number count of a list */
void pickle_put_end(struct pickle_writer *w, enum pickle_type type);

void pickle_put_number(struct pickle_writer *w, int64_t v);
void pickle_put_float(struct pickle_writer *w, double v);
void pickle_put_bool(struct pickle_writer *w, int v);
void pickle_put_pair(struct pickle_writer *w, int64_t a, int64_t b); /* a tuple */
uint32_t pickle_put_text(struct pickle_writer *w, const char *text); /* made valid UTF-8; its number in the memo */
void pickle_put_again(struct pickle_writer *w, uint32_t memo);

#endif
