#include "finish.h"

#include "../symbols/symbols_beside.h"
#include "finish_private.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

volatile sig_atomic_t finish_interrupted;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Everything that follows from the symbols, within one transaction of the caller's. */
static int write_accounts(sqlite3 *db, struct model_ahead *ahead, const struct finish_options *options,
                          int64_t start_ns, struct error *err)
{
    int rc = db_exec(db,
                     "DELETE FROM account WHERE scope <> 'thread'; DELETE FROM main.site_line; DELETE FROM line; "
                     "DELETE FROM site_op; DELETE FROM op;",
                     err);
    if (rc == 0 && !options->is_named)
        rc = db_exec(db, "DELETE FROM mark WHERE domain = 'pytorch'", err);
    if (rc == 0 && packed_has(db, PACKED_TABLE_site))
        rc = db_exec(db, "DELETE FROM packed WHERE column_name = 'line_id'", err);
    if (rc == 0)
        rc = finish_notebooks(db, err);
    if (rc == 0)
        rc = finish_frees(db, err);
    if (rc == 0 && options->with_source)
        rc = finish_source(db, err);
    struct model m = {0};
    struct model_sums *sums = NULL;
    if (rc == 0)
        rc = model_load(db, options->is_recording && options->is_self_only, ahead, &m, err);
    if (rc == 0) {
        model_lines(&m);
        sums = model_sums_begin(&m);
        rc = model_write_lines(&m, err);
    }
    if (rc == 0 && !options->is_recording) /* else it is a private copy, which plain sqlite3 never sees */
        rc = model_plain(&m, err);
    if (rc == 0)
        rc = model_accounts(sums, err);
    if (rc == 0)
        rc = model_ops(&m, err);
    model_sums_close(sums);
    model_free(&m);
    if (rc == 0 &&
        (db_meta_set_int(db, "symbolize_ns", now_ns() - start_ns) || db_meta_set_text(db, "state", "complete")))
        rc = db_error(db, err);
    return rc;
}

void finish_forget(const char *recording)
{
    symbols_beside_remove(recording);
}

int finish_database(sqlite3 *db, const struct finish_options *options, struct error *err)
{
    struct finish_options own = *options;
    own.progress = own.progress && isatty(STDERR_FILENO);
    int64_t start_ns = now_ns();
    int rc = packed_views(db, err);
    struct model_ahead *ahead = rc || own.is_named ? NULL : model_ahead_begin(db);
    if (rc == 0 && !own.is_named)
        rc = finish_symbols(db, ahead, &own, err);
    if (rc == 0 && (rc = db_exec(db, "BEGIN IMMEDIATE", err)) == 0) {
        rc = write_accounts(db, ahead, &own, start_ns, err);
        if (rc == 0)
            rc = db_exec(db, "COMMIT", err);
        if (rc)
            sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    }
    model_ahead_close(ahead);
    if (rc == -EINTR)
        error_set(err, EINTR, "symbolizing was interrupted; the next report does it");
    return rc;
}
