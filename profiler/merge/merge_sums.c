/* Tables whose rows are sums: totals by device and kind, sizes, lifetimes, transfers. */
#include "merge_private.h"

#include "../../common/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TOTAL_ACTIVE = 6, TOTAL_RESERVED = 8 }; /* among the columns of total */

/* The columns of each table. What has no sum is set where all is written. */
static const struct {
    const char *table, *class, *columns;
    int count;
    int has_kind; /* a kind; else transfer's direction */
} tables[MERGE_SUMS] = {
    [MERGE_TOTAL] = {"total", NULL,
                     "alloc_count, free_count, alloc_bytes, free_bytes, temporary_count, temporary_bytes, "
                     "peak_active_bytes, peak_active_count, peak_reserved_bytes, end_active_bytes, end_count, "
                     "realloc_count, lifetime_ns",
                     13, 1},
    [MERGE_SIZE_CLASS] = {"size_class", "log2_size",
                          "alloc_count, alloc_bytes, free_count, temporary_count, lifetime_ns", 5, 1},
    [MERGE_LIFETIME_CLASS] = {"lifetime_class", "log2_ns", "free_count, free_bytes", 2, 1},
    [MERGE_TRANSFER] = {"transfer", "stack_id", "transfer_count, transfer_bytes", 2, 0},
};

static const char *const directions[] = {"HtoD", "DtoH", "DtoD", "HtoH", "peer", "fill", "unified"};
enum { DIRECTIONS = sizeof directions / sizeof *directions };

/* -1: none of ours. */
static int64_t kind_of(int table, const char *text)
{
    int count = tables[table].has_kind ? KIND_COUNT + 1 : DIRECTIONS; /* with 'all' */
    for (int i = 0; i < count; i++)
        if (strcmp(tables[table].has_kind ? kind_name((unsigned)i) : directions[i], text) == 0)
            return i;
    return -1;
}

static void add_row(struct input *in, int table, sqlite3_stmt *s)
{
    struct merge_sums *sums = &in->m->sums[table];
    int64_t device = merge_column(in, MERGE_DEVICE, s, 0), kind = kind_of(table, db_text(s, 1));
    int64_t class = table == MERGE_TRANSFER ? merge_column(in, MERGE_STACK, s, 2) : sqlite3_column_int64(s, 2);
    if (!device || kind < 0 || (table != MERGE_TRANSFER && (class < -1 || class > 64))) {
        merge_failed(in, EBADMSG, "damaged: a total is of no device or kind");
        return;
    }
    uint32_t at = map_number_or(&sums->of, (uint64_t)(device << 8 | kind), (uint64_t) class, sums->count);
    if (at == sums->count)
        *ARRAY_ADD(sums->rows, sums->count, sums->capacity) =
            (struct merge_sum){.device = (uint32_t)device - 1, .kind = kind, .class = class};
    for (int i = 0; i < tables[table].count; i++)
        sums->rows[at].value[i] = wrap_add(sums->rows[at].value[i], sqlite3_column_int64(s, 3 + i));
    if (table == MERGE_TOTAL && sqlite3_column_type(s, 3 + TOTAL_RESERVED) == SQLITE_NULL)
        sums->rows[at].has_no_reserved = 1;
}

void merge_totals(struct input *in)
{
    for (int t = 0; t < MERGE_SUMS; t++) {
        struct error err = {""};
        struct buf sql = BUF(4096);
        sqlite3_stmt *s = NULL;
        buf_printf(&sql, "SELECT device_id, %s, %s, %s FROM %s", tables[t].has_kind ? "kind" : "direction",
                   tables[t].class ? tables[t].class : "0", tables[t].columns, tables[t].table);
        int rc = db_prepare(in->db, buf_text(&sql), &s, &err);
        while (rc == 0 && db_next(s, &rc, &err))
            add_row(in, t, s);
        sqlite3_finalize(s);
        buf_free(&sql);
        if (rc)
            merge_failed(in, rc, err.text);
    }
}

/* Sums of peaks have no instant: theirs is that of the highest sum that is known. */
static void write_total(struct merge *m, const struct merge_sum *row)
{
    static const char total[] =
        "INSERT INTO total(device_id, kind, alloc_count, free_count, alloc_bytes, free_bytes, temporary_count, "
        "temporary_bytes, peak_active_bytes, peak_active_count, peak_reserved_bytes, end_active_bytes, end_count, "
        "realloc_count, lifetime_ns, peak_active_ns, peak_reserved_ns) "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";
    static const char peak[] = "INSERT INTO peak(device_id, kind, what, rank, time_ns, value_bytes) "
                               "VALUES(?1, ?2, ?3, 0, ?4, ?5)";
    static const struct {
        const char *what;
        int value;
    } peaks[] = {{"active", TOTAL_ACTIVE}, {"reserved", TOTAL_RESERVED}};
    int64_t at_ns = (int64_t)m->common[row->device].least_peak_ns;
    sqlite3_stmt *q = store_statement(m->store, total);
    sqlite3_bind_int64(q, 1, row->device);
    sqlite3_bind_text(q, 2, kind_name((unsigned)row->kind), -1, SQLITE_STATIC);
    for (int i = 0; i < tables[MERGE_TOTAL].count; i++)
        sqlite3_bind_int64(q, 3 + i, row->value[i]);
    sqlite3_bind_int64(q, 16, at_ns);
    sqlite3_bind_int64(q, 17, at_ns);
    if (row->has_no_reserved) {
        sqlite3_bind_null(q, 3 + TOTAL_RESERVED);
        sqlite3_bind_null(q, 17);
    }
    store_step(m->store, q);
    for (int i = 0; i < 2 - row->has_no_reserved; i++) {
        q = row->value[peaks[i].value] ? store_statement(m->store, peak) : NULL;
        if (!q)
            continue;
        sqlite3_bind_int64(q, 1, row->device);
        sqlite3_bind_text(q, 2, kind_name((unsigned)row->kind), -1, SQLITE_STATIC);
        sqlite3_bind_text(q, 3, peaks[i].what, -1, SQLITE_STATIC);
        sqlite3_bind_int64(q, 4, at_ns);
        sqlite3_bind_int64(q, 5, row->value[peaks[i].value]);
        store_step(m->store, q);
    }
}

static void write_class(struct merge *m, int table, const struct merge_sum *row)
{
    static const char *const inserts[MERGE_SUMS] = {
        [MERGE_SIZE_CLASS] = "INSERT INTO size_class(device_id, kind, log2_size, alloc_count, alloc_bytes, free_count, "
                             "temporary_count, lifetime_ns) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
        [MERGE_LIFETIME_CLASS] =
            "INSERT INTO lifetime_class(device_id, kind, log2_ns, free_count, free_bytes) VALUES(?, ?, ?, ?, ?)",
        [MERGE_TRANSFER] = "INSERT INTO transfer(device_id, direction, stack_id, transfer_count, transfer_bytes) "
                           "VALUES(?, ?, ?, ?, ?)",
    };
    sqlite3_stmt *q = store_statement(m->store, inserts[table]);
    sqlite3_bind_int64(q, 1, row->device);
    sqlite3_bind_text(q, 2, tables[table].has_kind ? kind_name((unsigned)row->kind) : directions[row->kind], -1,
                      SQLITE_STATIC);
    sqlite3_bind_int64(q, 3, row->class);
    for (int i = 0; i < tables[table].count; i++)
        sqlite3_bind_int64(q, 4 + i, row->value[i]);
    store_step(m->store, q);
}

void merge_totals_end(struct merge *m)
{
    for (int t = 0; t < MERGE_SUMS; t++) {
        struct merge_sums *sums = &m->sums[t];
        for (uint32_t i = 0; i < sums->count; i++)
            if (t == MERGE_TOTAL)
                write_total(m, &sums->rows[i]);
            else
                write_class(m, t, &sums->rows[i]);
        map_close(&sums->of);
        free(sums->rows);
        *sums = (struct merge_sums){0};
    }
}
