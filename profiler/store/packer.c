#include "packer.h"

#include "../../common/db.h"

#include <stdlib.h>

#define CHUNK_BYTES_MAX (PACKED_ROWS * 16ul + (1u << 16))

struct packer {
    struct store *store;
    enum packed_table table;
    struct chunk_codec *codec;
    struct buf data;
    enum packed_column first_column;
    uint64_t values[][PACKER_STRIDE]; /* by column; those of PACKED_ROW_IDS come first */
};

struct packer *packer_open(struct store *store, enum packed_table table)
{
    static const enum packed_column first[] = {PACKED_KEY_stack, PACKED_KEY_site, PACKED_KEY_resident_site,
                                               PACKED_COLUMNS};
    struct packer *p = xcalloc(1, sizeof *p + (1 + first[table + 1] - first[table]) * sizeof p->values[0]);
    p->store = store;
    p->table = table;
    p->first_column = first[table];
    p->data = (struct buf)BUF(CHUNK_BYTES_MAX);
    p->codec = chunk_codec_open();
    if (!p->codec)
        out_of_memory(0);
    return p;
}

void packer_close(struct packer *p)
{
    if (!p)
        return;
    chunk_codec_close(p->codec);
    buf_free(&p->data);
    free(p);
}

uint64_t *packer_values(struct packer *p, enum packed_column column)
{
    return p->values[column == PACKED_ROW_IDS ? 0 : 1 + column - p->first_column];
}

void packer_column(struct packer *p, uint32_t part, enum packed_column column, uint32_t first_row, uint32_t count)
{
    int rc = packed_encode(p->codec, column, first_row, packer_values(p, column), count, &p->data);
    if (rc < 0)
        out_of_memory(0);
    sqlite3_stmt *q = rc ? store_statement(p->store, PACKED_INSERT) : NULL;
    if (!q)
        return;
    store_needs(p->store, column == PACKED_ROW_IDS ? DB_SCHEMA_PACKED : packed_schema(column));
    packed_bind(q, p->table, part, column, first_row, count, &p->data);
    store_step(p->store, q);
    sqlite3_clear_bindings(q);
}

static void drop(struct packer *p, const char *sql, uint32_t first_row)
{
    sqlite3_stmt *q = store_statement(p->store, sql);
    if (!q)
        return;
    sqlite3_bind_text(q, 1, packed_table_name(p->table), -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 2, first_row);
    store_step(p->store, q);
}

void packer_drop_chunk(struct packer *p, uint32_t first_row)
{
    drop(p, "DELETE FROM packed WHERE table_name = ?1 AND part = 0 AND first_row = ?2", first_row);
}

void packer_drop_all(struct packer *p)
{
    drop(p, "DELETE FROM packed WHERE table_name = ?1 AND ?2 = 0", 0);
}
