/*
 * site_names.h: which line, function and operator each site of a recording is of, as reports name them. While a program
 * runs that takes looking up symbols and walking the tree of stacks (0.4 s for PyTorch's 700,000), so a process of low
 * priority does it, from the file, and ends: what it needed for it goes with it, and nothing waits for it.
 */
#ifndef MEMPROF_LIVE_SITE_NAMES_H
#define MEMPROF_LIVE_SITE_NAMES_H

#include "../../common/error.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

enum site_names_by {
#define LIVE_KEY(id, name) SITE_NAMES_BY_##id,
#include "row_keys.def"
    SITE_NAMES_BYS
};

extern const char *const site_names_by_texts[SITE_NAMES_BYS]; /* "line", ... */

struct site_name {
    const char *function, *plain; /* of an operator its name; plain: its plain name, of an operator its phase */
    const char *file;             /* absolute; of an operator the modules it runs in; "": none */
    const char *source;           /* for people: "src/net.c:42", "[libz.so.1]" */
    uint32_t line;                /* 0: none */
};

struct site_names { /* all zero: of no site */
    uint32_t site_end;
    const uint32_t *of[SITE_NAMES_BYS];      /* by site id below site_end: place in names; 0: none */
    struct site_name *names[SITE_NAMES_BYS]; /* 0: "", for sites without one */
    uint32_t count[SITE_NAMES_BYS];
    void *bytes; /* what the others point into */
    size_t length;
};

/* Opens a recording for reports, with its names; 0, or -errno with err. */
typedef int site_names_open(const char *path, sqlite3 **db, struct error *err);

struct naming;
/* Begins. is_quiet: nothing may be written to standard error meanwhile. NULL with err. */
struct naming *naming_begin(const char *path, site_names_open *open, int is_quiet, struct error *err);
/* Can be read (poll) when it is done. */
int naming_fd(const struct naming *n);
/* Waits until it is done, and ends it. *cpu_ns (or NULL): the processor time that it took. 0, or -errno with err. */
int naming_end(struct naming *n, struct site_names *names, int64_t *cpu_ns, struct error *err);
/* Ends it, done or not. NULL: nothing. */
void naming_cancel(struct naming *n);
void site_names_close(struct site_names *names);

/* What a site is of; the empty name where that is not known. */
const struct site_name *site_names_of(const struct site_names *names, enum site_names_by by, uint32_t site);

#endif
