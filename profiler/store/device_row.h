/*
 * device_row.h: the rows of the table device: the host, and each GPU once, however many processes see it under whatever
 * ordinal (CUDA_VISIBLE_DEVICES): a UUID tells which one it is.
 */
#ifndef MEMPROF_DEVICE_ROW_H
#define MEMPROF_DEVICE_ROW_H

#include <stdint.h>

#define DEVICE_ROWS 256u /* device_id is a byte in events; 0 is the host */

struct store;

struct device_rows {
    struct store *store;
    unsigned count;
    uint64_t refused; /* devices beyond the room; the last row stands for all of them */
    struct device_row {
        uint64_t uuid[2]; /* 0, 0: unknown; bytes as the driver gives them */
        uint64_t total_bytes;
        unsigned ordinal; /* of its name */
        char kind[8];     /* "cuda" */
    } rows[DEVICE_ROWS];
};

/* As nvidia-smi writes it: "GPU-...". */
void device_row_uuid(const struct device_row *row, char text[64]);

/* Writes the host's row. */
void device_rows_open(struct device_rows *d, struct store *store);
/* The device_id of what a process calls "KIND:ORDINAL" ("cuda:0"), with a new row where none has that UUID (or, without
 * a UUID, that name). A name that a device of another UUID has already gives way to the next free ordinal. uuid: two
 * words, or NULL; total_bytes 0 and model NULL: unknown. */
unsigned device_rows_find(struct device_rows *d, const char *kind, unsigned ordinal, const uint64_t *uuid,
                          uint64_t total_bytes, const char *model);

#endif
