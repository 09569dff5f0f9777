/*
 * Snapshots from hostile files: read, and where they are one, replayed into accounts, with everything that is written.
 * What the history frees must have been found live before, whatever it says.
 */
#include "../../profiler/account/account.h"
#include "../../profiler/import/import_snapshot.h"
#include "../../profiler/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bytes {
    const uint8_t *data;
    size_t length;
};

static long read_bytes(void *context, void *data, size_t size)
{
    struct bytes *b = context;
    size_t n = size < b->length ? size : b->length;
    memcpy(data, b->data, n);
    b->data += n;
    b->length -= n;
    return (long)n;
}

/* One database for all: rows that are there already make its writes fail, which then cost nothing. */
static struct store *store(void)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    struct bytes bytes = {data, length};
    struct snapshot_source source = {read_bytes, &bytes};
    struct snapshot snap;
    struct error err = {""};
    struct import_counts counts;
    struct import_names names = {0};
    int rc = snapshot_read(&snap, &source, &err);
    if (rc && (!err.text[0] || strchr(err.text, '\n')))
        abort(); /* a failure says why, in one line */
    if (rc == 0) {
        struct account_options options = {0};
        struct account *account = account_open(store(), &options);
        import_span(&snap, &counts);
        import_write_before(&snap, "fuzz", &counts, store(), &names);
        import_replay(&snap, &names, account, NULL, NULL, &counts);
        account_finish(account, import_time_ns(&counts, counts.end_us));
        import_write_after(&snap, store(), &counts);
        struct account_counts ac;
        account_counts(account, &ac);
        if (ac.unmatched_frees) /* what is freed was allocated, or born before */
            abort();
        account_close(account);
        free(names.stack_ids);
        free(names.thread_ids);
    }
    snapshot_free(&snap);
    return 0;
}
