/* import.h: a fuzzer's input as the file of an import: read, and written into accounts and a database. */
#ifndef MEMPROF_FUZZ_IMPORT_H
#define MEMPROF_FUZZ_IMPORT_H

#include "../../profiler/import/import_private.h"
#include "../../profiler/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fuzz_bytes {
    const uint8_t *data;
    size_t length;
};

static inline long fuzz_read(void *context, void *data, size_t size)
{
    struct fuzz_bytes *b = context;
    size_t n = size < b->length ? size : b->length;
    memcpy(data, b->data, n);
    b->data += n;
    b->length -= n;
    return (long)n;
}

/* One database for all: rows that are there already make its writes fail, which then cost nothing. */
static inline struct store *fuzz_store(void)
{
    static struct store *s;
    char path[64];
    if (!s) {
        snprintf(path, sizeof path, "/tmp/memprof-fuzz-%d.db", (int)getpid());
        unlink(path);
        if (store_create(path, &s, NULL))
            abort();
        unlink(path);
    }
    return s;
}

static inline int fuzz_import(const struct import_form *form, const uint8_t *data, size_t length)
{
    struct fuzz_bytes bytes = {data, length};
    struct unpack_source source = {fuzz_read, &bytes};
    struct import_options options = {.path = "fuzz", .output = "fuzz.db"};
    struct importing importing = {
        .options = &options, .unpack = unpack_open(&source), .store = fuzz_store(), .form = form};
    struct error err = {""};
    int rc = form->read(&importing, &err);
    if (rc && (!err.text[0] || strchr(err.text, '\n')))
        abort(); /* a failure says why, in one line */
    unpack_close(importing.unpack);
    free(importing.note);
    return 0;
}

#endif
