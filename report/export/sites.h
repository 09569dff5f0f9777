/*
 * sites.h: the walk that the exports of totals share: each site that the options keep, with its frames and its values.
 * One site at a time, so that memory does not grow with their number: an export that lists frames or names keeps its
 * own numbers of them.
 */
#ifndef MEMPROF_EXPORT_SITES_H
#define MEMPROF_EXPORT_SITES_H

#include "../query/stat.h"
#include "../query/walk.h"
#include "export.h"

/* Strings and frames[] until the next call; what frames[] points to until export_sites_close, and each frame of the
 * recording is the same pointer every time. */
struct export_site {
    int64_t site_id, stack_id;
    int64_t process_id; /* that allocated here first */
    int64_t device_id;
    const char *device, *kind;
    const char *op, *phase, *module; /* PyTorch's operator, its phase and the modules that run; NULL: none */
    struct stat_row stats;           /* --at peak, end or TIME: what was live is end_bytes and end_count */
    /* Innermost first, inlined functions as frames of their own (is_inline: into the next one): from the site's own
     * frame, as the tables by line and function choose it, out to main(). At least one: where nothing is known of a
     * site's code it is one without anything. */
    const struct walk_frame *const *frames;
    int count;
    int is_cut, is_unknown; /* as in struct walk_stack: there are callers that were not recorded */
};

struct export_function {
    const char *raw_name; /* as in the symbol table; NULL: unknown */
    int64_t line;         /* where it is declared; 0: unknown */
};

struct export_module;
struct export_sites;

/* Applies the options to the database, which shows nothing else from then on. -EINVAL with err: what they name is not
 * in the recording. Close with export_sites_close in any case. */
int export_sites_open(sqlite3 *db, const struct export_options *options, struct export_sites **sites,
                      struct error *err);
void export_sites_close(struct export_sites *sites);

/* Before the first site again; of one device (its id), or of all that the options keep (-1). */
int export_sites_begin(struct export_sites *sites, int64_t device_id, struct error *err);
/* From now on only those that have some of this statistic, or of which it is not known (stat_id; -1: all again). */
void export_sites_only(struct export_sites *sites, int stat);
/* 1; 0: there is none left; -errno with err. */
int export_sites_next(struct export_sites *sites, struct export_site *site, struct error *err);

/* The devices that the options keep and that allocated something: next one by id, after this one (-1: the first);
 * name until the next call. 1, 0, -errno as above. */
int export_sites_device(struct export_sites *sites, int64_t after, int64_t *device_id, const char **name,
                        struct error *err);

/* Where a frame's code is (modules.h), and what its function is besides its name; the latter until the next call. */
int export_sites_module(struct export_sites *sites, const struct walk_frame *frame, struct export_module *module,
                        struct error *err);
/* The executable of the process that allocated most; without a path where none is known. */
int export_sites_program(struct export_sites *sites, struct export_module *module, struct error *err);
int export_sites_function(struct export_sites *sites, const struct walk_frame *frame, struct export_function *function,
                          struct error *err);

/* What a frame is called: "forward", "libz.so.1+0x1234", "??"; with its file where Python gives all the same name,
 * "<module> (json/__init__.py)". Appended as it is in the recording. */
void export_frame_name(const struct walk_frame *frame, struct buf *text);
/* The same in at most EXPORT_NAME_MOST bytes, for formats whose readers draw it. */
enum { EXPORT_NAME_MOST = 4000 };
void export_frame_label(const struct walk_frame *frame, struct buf *text);

/* Bytes at the peak: the device's, or with --kind that of the kind, at which blocks were not counted. */
int export_peak_stat(const struct export_options *options);
/* The statistic of formats that hold one number a site: that of --stat or --at, else what was live at the peak. */
int export_stat(const struct export_options *options);
/* What it is: "alloc.bytes, bytes requested by them", "bytes live at 1.5 s". */
void export_stat_text(const struct export_options *options, int stat, struct buf *text);
/* Its value at a site; 0 and counted where it is not known. */
int64_t export_value(struct export_sites *sites, const struct export_site *site, int stat);
/* -EINVAL with err where it was not known of any site that was walked since export_sites_begin. */
int export_check_known(const struct export_sites *sites, int stat, struct error *err);

#endif
