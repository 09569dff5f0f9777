#include "histogram.h"

#include "../store/store.h"

#include "../../common/kind.h"

#include <string.h>

void histogram_sum(const struct histogram *h, struct histogram_sums *sums)
{
    memset(sums, 0, sizeof *sums);
    for (unsigned i = 0; i < HISTOGRAM_CLASSES; i++) {
        sums->alloc_count += h->sizes[i].alloc_count;
        sums->alloc_bytes += h->sizes[i].alloc_bytes;
        sums->free_count += h->sizes[i].free_count;
        sums->temporary_count += h->sizes[i].temporary_count;
        sums->lifetime_ns += h->sizes[i].lifetime_ns;
        sums->free_bytes += h->lifetimes[i].free_bytes;
    }
}

static void write_row(struct store *store, const char *sql, unsigned device, unsigned kind, unsigned class,
                      const uint64_t *values, unsigned value_count)
{
    sqlite3_stmt *s = store_statement(store, sql);
    if (!s)
        return;
    sqlite3_bind_int(s, 1, (int)device);
    sqlite3_bind_text(s, 2, kind_name(kind), -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 3, (int)class - 1);
    for (unsigned i = 0; i < value_count; i++)
        sqlite3_bind_int64(s, (int)i + 4, (int64_t)values[i]);
    store_step(store, s);
}

void histogram_write(const struct histogram *h, struct store *store, unsigned device, unsigned kind)
{
    static const char sizes_sql[] = "INSERT OR REPLACE INTO size_class(device_id, kind, log2_size, alloc_count, "
                                    "alloc_bytes, free_count, temporary_count, lifetime_ns) VALUES(?,?,?,?,?,?,?,?)";
    static const char lifetimes_sql[] =
        "INSERT OR REPLACE INTO lifetime_class(device_id, kind, log2_ns, free_count, free_bytes) VALUES(?,?,?,?,?)";
    for (unsigned i = 0; i < HISTOGRAM_CLASSES; i++) {
        const struct size_class *c = &h->sizes[i];
        const struct lifetime_class *l = &h->lifetimes[i];
        if (c->alloc_count || c->free_count)
            write_row(store, sizes_sql, device, kind, i,
                      (uint64_t[]){c->alloc_count, c->alloc_bytes, c->free_count, c->temporary_count, c->lifetime_ns},
                      5);
        if (l->free_count || l->free_bytes)
            write_row(store, lifetimes_sql, device, kind, i, (uint64_t[]){l->free_count, l->free_bytes}, 2);
    }
}
