/* Memory snapshots of PyTorch. */
#include "../account/account.h"
#include "../collect/facts.h"
#include "../store/store.h"
#include "import_snapshot.h"

#include <stdlib.h>
#include <string.h>

struct writing {
    struct importing *importing;
    struct account *account;
};

static void flush(void *context, uint64_t time_ns, int percent)
{
    struct writing *w = context;
    account_flush(w->account, time_ns);
    store_commit(w->importing->store);
    import_progress(w->importing, "counting", percent);
}

static void write_events(struct writing *w, const struct snapshot *snap, struct import_counts *counts)
{
    struct store *store = w->importing->store;
    struct import_names names = {0};
    struct facts facts = {.processes = 1};
    struct account_options options = {.is_snapshot = 1};
    w->account = account_open(store, &options);
    import_write_before(snap, w->importing->options->path, counts, store, &names);
    import_replay(snap, &names, w->account, flush, w, counts);
    uint64_t end_ns = import_time_ns(counts, counts->end_us);
    /* after the last instant: what the snapshot holds is live at it */
    struct event end = {.time_ns = end_ns + 1, .process_id = IMPORT_PROCESS, .op = EVENT_PROCESS_END};
    account_events(w->account, &end, 1);
    account_finish(w->account, end_ns + 1);
    account_counts(w->account, &facts.counts);
    facts.counts.events = counts->events; /* the end is none of the snapshot's */
    facts.duration_ns = (int64_t)end_ns;
    import_write_after(snap, store, counts);
    facts_end(store, &facts);
    store_commit(store);
    account_close(w->account);
    free(names.stack_ids);
    free(names.thread_ids);
}

static int is_any(const unsigned char *head, size_t length)
{
    (void)head;
    (void)length;
    return 1;
}

static int read_torch(struct importing *i, struct error *err)
{
    struct snapshot snap = {0};
    struct import_counts counts;
    struct snapshot_source source = {unpack_read, i->unpack};
    struct writing w = {.importing = i};
    int rc = snapshot_read(&snap, &source, err);
    snap.source = NULL;
    if (rc == 0)
        rc = import_begin(i, err);
    if (rc == 0) {
        import_span(&snap, &counts);
        write_events(&w, &snap, &counts);
        i->note = import_note(&snap, &counts);
    }
    snapshot_free(&snap);
    return rc;
}

const struct import_form import_torch = {"PyTorch memory snapshot", is_any, read_torch, NULL};
