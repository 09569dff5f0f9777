#include "named_blocks.h"

#include "../../common/array.h"
#include "../../common/buf.h"
#include "../../common/db.h"

#include <stdlib.h>
#include <string.h>

#define SANE_MOST (INT64_C(1) << 52) /* sums of 65,536 of them fit */

enum { PROCESS, DEVICE, SITE, ADDRESS, BYTES, ALLOC, END, AT_END, NAME, SAID, VIEW, SPAN };
static const char sql[] =
    "SELECT n.process_id, n.device_id, n.site_id, n.block_address, n.block_bytes, n.alloc_ns, coalesce(n.free_ns, "
    "p.end_ns, 9223372036854775807), n.free_ns IS NULL OR coalesce(n.free_ns >= t.time_ns AND n.alloc_ns < t.time_ns, "
    "0), n.name, n.time_ns, n.address, n.span_bytes FROM block_name n LEFT JOIN process p USING(process_id) LEFT JOIN "
    "teardown t ON t.process_id = n.process_id WHERE n.name <> '' ORDER BY n.process_id, n.block_address, n.alloc_ns, "
    "n.name_id";

static uint32_t text_of(struct named_blocks *all, sqlite3_stmt *s, const char **name)
{
    struct buf key = BUF(1u << 20); /* processes mean other things by the same text */
    buf_printf(&key, "%lld ", (long long)sqlite3_column_int64(s, PROCESS));
    const size_t skip = key.length;
    buf_puts(&key, db_text(s, NAME));
    uint32_t *number = text_map_slot(&all->texts, key.data, key.length + 1);
    if (!*number)
        *number = ++all->text_count;
    *name = (const char *)text_map_key(number) + skip;
    buf_free(&key);
    return *number;
}

static struct named_block *add_block(struct named_blocks *all, sqlite3_stmt *s)
{
    const int64_t bytes = sqlite3_column_int64(s, BYTES);
    struct named_block *b = ARRAY_ADD(all->blocks, all->count, all->capacity);
    *b = (struct named_block){.device_id = sqlite3_column_int64(s, DEVICE),
                              .site_id = sqlite3_column_int64(s, SITE),
                              .size_bytes = bytes < 0           ? 0
                                            : bytes > SANE_MOST ? SANE_MOST
                                                                : bytes,
                              .alloc_ns = sqlite3_column_int64(s, ALLOC),
                              .end_ns = sqlite3_column_int64(s, END),
                              .is_at_end = sqlite3_column_int(s, AT_END),
                              .first = all->name_count};
    return b;
}

static void add_name(struct named_blocks *all, sqlite3_stmt *s)
{
    struct named_block *b = &all->blocks[all->count - 1];
    struct block_name *n = ARRAY_ADD(all->names, all->name_count, all->name_capacity);
    const uint64_t size = (uint64_t)b->size_bytes,
                   from = (uint64_t)sqlite3_column_int64(s, VIEW) - (uint64_t)sqlite3_column_int64(s, ADDRESS),
                   span = (uint64_t)sqlite3_column_int64(s, SPAN);
    n->block = all->count - 1;
    n->time_ns = sqlite3_column_int64(s, SAID);
    n->text = text_of(all, s, &n->name);
    n->from_byte = from < size ? from : size;
    n->to_byte = span < size - n->from_byte ? n->from_byte + span : size;
    b->count++;
}

int named_blocks_load(sqlite3 *db, struct named_blocks *all, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int64_t last[3] = {0};
    int rc = db_prepare(db, sql, &s, err);
    while (rc == 0 && db_next(s, &rc, err)) {
        const int64_t block[3] = {sqlite3_column_int64(s, PROCESS), sqlite3_column_int64(s, ADDRESS),
                                  sqlite3_column_int64(s, ALLOC)};
        if (!all->count || memcmp(block, last, sizeof last) != 0)
            add_block(all, s);
        memcpy(last, block, sizeof last);
        add_name(all, s);
    }
    sqlite3_finalize(s);
    return rc;
}

void named_blocks_close(struct named_blocks *all)
{
    free(all->blocks);
    free(all->names);
    text_map_close(&all->texts);
}

static int by_byte(const void *a, const void *b)
{
    const struct block_name *left = a, *right = b;
    return left->from_byte < right->from_byte ? -1 : left->from_byte > right->from_byte;
}

int64_t named_cover(struct block_name *names, size_t count)
{
    uint64_t covered = 0, end = 0;
    if (count)
        qsort(names, count, sizeof *names, by_byte);
    for (size_t i = 0; i < count; i++) {
        const uint64_t from = names[i].from_byte > end ? names[i].from_byte : end;
        covered += names[i].to_byte > from ? names[i].to_byte - from : 0;
        end = names[i].to_byte > end ? names[i].to_byte : end;
    }
    return (int64_t)covered;
}
