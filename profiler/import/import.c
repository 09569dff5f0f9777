#include "import.h"

#include "../account/account.h"
#include "../collect/facts.h"
#include "../finish/finish.h"
#include "../store/output.h"
#include "../store/store.h"
#include "import_private.h"

#include "../../common/db.h"
#include "../../common/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    const struct import_options *options;
    int fd;
    uint64_t total_bytes, read_bytes;
    int percent;
};

static void progress(const struct import_options *o, const char *what, int percent)
{
    if (o->progress)
        o->progress(o->progress_context, what, percent);
}

static long read_file(void *context, void *data, size_t size)
{
    struct file *f = context;
    ssize_t got;
    do
        got = read(f->fd, data, size);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    f->read_bytes += (uint64_t)got;
    int percent = f->total_bytes ? (int)(f->read_bytes * 100 / f->total_bytes) : 0;
    if (percent != f->percent)
        progress(f->options, "reading", f->percent = percent);
    return got;
}

static int open_file(struct file *f, struct error *err)
{
    struct stat st;
    const char *path = f->options->path;
    f->fd = input_open(path, &st, err);
    if (f->fd == -EISDIR)
        return error_set(err, EISDIR, "%s: a directory; expected the file that torch.cuda.memory._dump_snapshot wrote",
                         path);
    if (f->fd < 0)
        return f->fd;
    f->total_bytes = (uint64_t)st.st_size;
    return 0;
}

static int read_snapshot(const struct import_options *o, struct snapshot *snap, struct error *err)
{
    struct file file = {.options = o, .fd = -1, .percent = -1};
    struct snapshot_source source = {read_file, &file};
    struct error why = {""};
    int rc = open_file(&file, err);
    if (rc == 0) {
        rc = snapshot_read(snap, &source, &why);
        if (rc)
            error_set(err, -rc, "%s: %s", o->path, why.text);
    }
    if (file.fd >= 0)
        close(file.fd);
    snap->source = NULL;
    return rc;
}

struct writing {
    const struct import_options *options;
    struct store *store;
    struct account *account;
};

static void flush(void *context, uint64_t time_ns, int percent)
{
    struct writing *w = context;
    account_flush(w->account, time_ns);
    store_commit(w->store);
    progress(w->options, "counting", percent);
}

static void write_events(struct writing *w, const struct snapshot *snap, struct import_counts *counts)
{
    struct import_names names = {0};
    struct facts facts = {.processes = 1};
    struct account_options options = {.is_snapshot = 1};
    w->account = account_open(w->store, &options);
    import_write_before(snap, w->options->path, counts, w->store, &names);
    import_replay(snap, &names, w->account, flush, w, counts);
    uint64_t end_ns = import_time_ns(counts, counts->end_us);
    /* after the last instant: what the snapshot holds is live at it */
    struct event end = {.time_ns = end_ns + 1, .process_id = IMPORT_PROCESS, .op = EVENT_PROCESS_END};
    account_events(w->account, &end, 1);
    account_finish(w->account, end_ns + 1);
    account_counts(w->account, &facts.counts);
    facts.counts.events = counts->events; /* the end is none of the snapshot's */
    facts.duration_ns = (int64_t)end_ns;
    import_write_after(snap, w->store, counts);
    facts_end(w->store, &facts);
    store_commit(w->store);
    account_close(w->account);
    free(names.stack_ids);
    free(names.thread_ids);
}

static int finish(const struct import_options *o, const char *output, struct import_result *result, struct error *err)
{
    sqlite3 *db = NULL;
    struct stat st;
    struct finish_options options = {.with_source = o->with_source};
    progress(o, "adding up", 0);
    int rc = db_open_write(output, &db, err);
    if (rc == 0)
        rc = finish_database(db, &options, err);
    if (rc == 0) {
        result->event_count = (uint64_t)db_meta_int(db, "event_count", 0);
        result->devices = (uint32_t)db_int(db, "SELECT count(*) FROM device WHERE device_id > 0", 0);
        result->peak_bytes = db_int(db, "SELECT max(peak_active_bytes) FROM total WHERE kind = 'all'", 0);
        result->peak_reserved_bytes = db_int(db, "SELECT max(peak_reserved_bytes) FROM total WHERE kind = 'all'", 0);
    }
    sqlite3_close(db);
    if (rc == 0 && stat(output, &st) == 0)
        result->output_bytes = st.st_size;
    return rc;
}

int import_torch(const struct import_options *options, struct import_result *result, struct error *err)
{
    struct snapshot snap = {0};
    struct import_counts counts;
    struct output output;
    struct writing w = {.options = options};
    *result = (struct import_result){0};
    if (db_same_file(options->path, options->output))
        return error_set(err, EINVAL, "%s: is the snapshot itself; give the database another name with -o",
                         options->output);
    int rc = read_snapshot(options, &snap, err);
    if (rc == 0)
        rc = output_prepare(&output, options->output, err);
    if (rc) {
        snapshot_free(&snap);
        return rc;
    }
    rc = store_create(output.path, &w.store, err);
    if (rc == 0) {
        output_claim(&output);
        import_span(&snap, &counts);
        write_events(&w, &snap, &counts);
        result->note = import_note(&snap, &counts);
        rc = store_close(w.store, err);
    }
    snapshot_free(&snap);
    if (rc == 0)
        rc = finish(options, output.path, result, err);
    if (rc)
        output_remove(&output, 1);
    else
        output_keep(&output);
    result->output = rc ? NULL : xstrdup(output.path);
    output_close(&output);
    return rc;
}
