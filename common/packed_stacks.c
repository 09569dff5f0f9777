/* The columns of the table stack beside each other, chunk by chunk: who looks at each stack once needs neither whole.
 */
#include "packed.h"

#include <errno.h>
#include <stdlib.h>

#ifdef MEMPROF_LOADABLE
SQLITE_EXTENSION_INIT3
#endif

struct reader {
    struct chunk_codec *codecs[2]; /* each has the values of its column until its next chunk */
    uint64_t *zeros;               /* of a chunk that is left out */
    uint32_t next;                 /* stack */
    int is_begun;                  /* callers are read */
};

/* A column of the current row, of so many values; NULL: it is damaged. */
static const uint64_t *values_of(struct reader *r, sqlite3_stmt *s, int place, enum packed_column column,
                                 uint32_t count)
{
    const void *data = sqlite3_column_blob(s, 2 + place);
    const uint64_t *coded;
    if (!data && place)
        return r->zeros;
    long rows = data ? chunk_decode_numbers(r->codecs[place], data, (size_t)sqlite3_column_bytes(s, 2 + place), &coded)
                     : -EBADMSG;
    uint64_t *values = rows == (long)count ? (uint64_t *)(uintptr_t)coded : NULL; /* the codec's until its next call */
    return values && packed_decode(column, r->next, values, count) == 0 ? values : NULL;
}

/* The number of its values where it is the next chunk; 0: it is damaged. */
static uint32_t chunk_count(const struct reader *r, sqlite3_stmt *s)
{
    const int64_t first = sqlite3_column_int64(s, 0), count = sqlite3_column_int64(s, 1);
    const int is_sound =
        first == r->next && count > 0 && count <= (int64_t)PACKED_ROWS && first + count <= (int64_t)PACKED_ROWS_MAX;
    return is_sound ? (uint32_t)count : 0;
}

/* The next chunk, whose values are looked at as far as they are wanted. */
static int visit_chunk(struct reader *r, sqlite3_stmt *s, const struct packed_visit *v)
{
    const uint32_t first = r->next, count = chunk_count(r, s);
    const uint64_t *addresses = count ? values_of(r, s, 1, PACKED_stack_address_id, count) : NULL;
    if (!addresses)
        return -EBADMSG;
    r->is_begun = r->is_begun || !v->begins || v->begins(v->arg, addresses, count);
    const uint64_t *parents = r->is_begun ? values_of(r, s, 0, PACKED_stack_parent_id, count) : NULL;
    r->next += count;
    if (!r->is_begun)
        return 0;
    return parents ? v->take(v->arg, first, parents, addresses, count) : -EBADMSG;
}

int packed_each_stack(sqlite3 *db, const struct packed_visit *visit)
{
    static const char sql[] =
        "SELECT p.first_row, p.row_count, p.data, a.data FROM main.packed p LEFT JOIN main.packed a ON a.table_name = "
        "p.table_name AND a.part = 0 AND a.column_name = 'address_id' AND a.first_row = p.first_row WHERE p.table_name "
        "= 'stack' AND p.part = 0 AND p.column_name = 'parent_id' ORDER BY p.first_row";
    struct reader r = {.codecs = {chunk_codec_open(), chunk_codec_open()}, .next = 1};
    sqlite3_stmt *s = NULL;
    int step = SQLITE_DONE, rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK ? 0 : -EIO;
    r.zeros = calloc(PACKED_ROWS, sizeof *r.zeros);
    if (!r.codecs[0] || !r.codecs[1] || !r.zeros)
        rc = -ENOMEM;
    while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
        rc = visit_chunk(&r, s, visit);
    sqlite3_finalize(s);
    chunk_codec_close(r.codecs[0]);
    chunk_codec_close(r.codecs[1]);
    free(r.zeros);
    return rc == 0 && step != SQLITE_DONE ? -EIO : rc;
}
