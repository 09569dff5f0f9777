/*
 * record.h: rows for programs: the same calls write JSON objects in an array, or CSV with the keys as heading. Numbers
 * keep full precision; text is made valid UTF-8 and escaped.
 */
#ifndef MEMPROF_RECORD_H
#define MEMPROF_RECORD_H

#include "../../common/buf.h"
#include "out.h"

struct record {
    const struct report_out *out;
    struct buf line, heading;
    struct buf *array; /* where rows within a row go; NULL: to out */
    int fields;        /* in the current row */
    int rows;
    int depth;      /* JSON: what is open */
    int is_heading; /* CSV: the row that is written is for the heading alone */
};

void record_open(struct record *r, const struct report_out *out);
/* Rows of an array within a row: appended to json, for record_raw(). */
void record_open_in(struct record *r, struct buf *json);
void record_close(struct record *r); /* frees, and ends an array within a row; writes nothing */

/* JSON only (nothing in CSV): the document's object, and named members of it. */
void record_document_begin(struct record *r);
void record_document_end(struct record *r);
void record_member_text(struct record *r, const char *key, const char *value); /* NULL: null */
void record_member_int(struct record *r, const char *key, int64_t value);
/* An array of rows; key NULL: the document is the array. In CSV the next row begins a new heading. */
void record_array_begin(struct record *r, const char *key);
void record_array_end(struct record *r);

void record_begin(struct record *r);
void record_text(struct record *r, const char *key, const char *value); /* NULL: null, an empty CSV field */
void record_int(struct record *r, const char *key, int64_t value);
void record_int_if(struct record *r, const char *key, int is_known, int64_t value); /* null where it is not */
void record_real(struct record *r, const char *key, double value);
void record_null(struct record *r, const char *key);
void record_raw(struct record *r, const char *key, const char *json); /* JSON: a finished value; CSV: as text */
void record_end(struct record *r);

/* "text" with quotes, as JSON; appended to out. NULL: null. */
void record_json_string(struct buf *out, const char *text);

#endif
