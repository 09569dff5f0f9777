/*
 * import_private.h: import.c opens the other tool's file, makes the database and finishes it; a file import_FORM.c for
 * each form writes what it reads into it.
 */
#ifndef MEMPROF_IMPORT_PRIVATE_H
#define MEMPROF_IMPORT_PRIVATE_H

#include "../../common/unpack.h"
#include "../account/event.h"
#include "import.h"

#include <stddef.h>

struct store;
struct account;

#define IMPORT_PROCESS 1u

struct import_form;
struct importing {
    const struct import_options *options;
    struct unpack *unpack; /* of the other tool's file, from its beginning */
    struct store *store;   /* NULL until import_begin */
    const struct import_form *form;
    char *note; /* import_result's */
};

/* What import.c is told: a form reads its file, calls import_begin, and writes all up to the accounts by line. 0, or
 * -errno with err, which then lacks the file's name. */
#define IMPORT_NO_RESERVED "UPDATE total SET peak_reserved_bytes = NULL, peak_reserved_ns = NULL"
struct import_form {
    const char *text; /* a few words: "heaptrack file" */
    int (*is)(const unsigned char *head, size_t length);
    int (*read)(struct importing *i, struct error *err);
    const char *after_sql; /* once the accounts by line are written; NULL: nothing */
};
extern const struct import_form import_torch, import_heaptrack, import_pprof;

/* import.c. The file could be read, or its beginning: makes i->store, where none is there. 0, or -errno with err. */
int import_begin(struct importing *i, struct error *err);
void import_progress(const struct importing *i, const char *what, int percent);

/* import_rows.c: rows that every import has. */
struct import_meta {
    int64_t start_unix_ns, duration_ns;
    const char *clock;       /* as meta has it */
    const char *events_kept; /* the same */
    const char *command;
};
void import_meta(struct importing *i, const struct import_meta *meta);
void import_process(struct store *store, const char *exe, const char *command_line);
void import_thread(struct store *store, uint32_t thread_id, int64_t tid, const char *name);
void import_device(struct store *store, unsigned device_id, const char *name);
void import_hook(struct store *store, unsigned hook_id, const char *name, const char *kind);
/* A fact for `memprof info`, of table counter. */

#endif
