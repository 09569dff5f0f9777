/*
 * packed.h: the tables stack, site, those with a row a site, and resident_site of recordings with many stacks, as
 * compressed columns in the table packed (docs/format.md). Rows are numbered from 1 without gaps: by stack_id, by
 * site_id; those of resident_site one look after the other. A reader decodes whole columns when they are asked for; the
 * file may be hostile.
 */
#ifndef MEMPROF_PACKED_H
#define MEMPROF_PACKED_H

#include "buf.h"
#include "chunk.h"
#include "error.h"

#ifdef MEMPROF_LOADABLE
#include <sqlite3ext.h>
#else
#include <sqlite3.h>
#endif
#include <stdint.h>

#define PACKED_ROWS     CHUNK_NUMBERS /* in a chunk, at most */
#define PACKED_ROWS_MAX (1u << 28)    /* in a table */
#define PACKED_SITES    32768u        /* where there are more of them, they and their looks are packed */

enum packed_table { PACKED_TABLE_stack, PACKED_TABLE_site, PACKED_TABLE_resident_site, PACKED_TABLES };

enum packed_column {
#define COLUMN(table, column, coding) PACKED_##table##_##column,
#include "packed.def"
#undef COLUMN
    PACKED_COLUMNS,
    PACKED_KEY_stack = PACKED_stack_parent_id,
    PACKED_KEY_site = PACKED_site_stack_id,
    PACKED_KEY_resident_site = PACKED_resident_site_site_id,
    PACKED_STATS = PACKED_site_alloc_count, /* the first statistic; the others follow as in stat.def */
};

const char *packed_table_name(enum packed_table table);
const char *packed_column_name(enum packed_column column);
enum packed_table packed_table_of(enum packed_column column);

/* --- writing --- */

/* What the statement binds: table, part, column, first_row, row_count, data. Part 0 are the rows themselves; each later
 * part has new values of some rows, whose ids are its column 'row_id'. Of resident_site a part is a look: its scan_id,
 * and its rows, from 1. */
#define PACKED_INSERT                                                                                                  \
    "INSERT INTO packed(table_name, part, column_name, first_row, row_count, data) VALUES(?, ?, ?, ?, ?, ?)"
#define PACKED_ROW_IDS PACKED_COLUMNS /* the column row_id, of every table */

/* The version that a file with this column needs: DB_SCHEMA_PACKED or a later one. */
int packed_schema(enum packed_column column);
/* Replaces out by the values of rows from first_row on, which are changed on the way. Returns 1; 0 where there is
 * nothing to store, as all are 0; or -ENOMEM. */
int packed_encode(struct chunk_codec *codec, enum packed_column column, uint32_t first_row, uint64_t *values,
                  uint32_t count, struct buf *out);
/* Binds PACKED_INSERT. The data must stay until it was run. */
void packed_bind(sqlite3_stmt *insert, enum packed_table table, uint32_t part, enum packed_column column,
                 uint32_t first_row, uint32_t count, const struct buf *data);

/* --- reading --- */

/* Undoes what packed_encode did to values of rows from first_row on. Returns 0 or -EBADMSG. */
int packed_decode(enum packed_column column, uint32_t first_row, uint64_t *values, uint32_t count);

struct packed_values { /* of a column, by row; none of the two: all are 0 */
    uint32_t *narrow;
    uint64_t *wide;
};

static inline uint64_t packed_at(const struct packed_values *v, uint32_t row)
{
    return v->narrow ? v->narrow[row] : v->wide ? v->wide[row] : 0;
}

/* 1: the file has the table's rows packed; 0: as plain rows. */
int packed_has(sqlite3 *db, enum packed_table table);
/* Where all rows of the table can be read with packed_register: "packed_site", or "main.site". */
const char *packed_source(sqlite3 *db, enum packed_table table);
/* 1: some row of a packed table has something else than 0 in the column. */
int packed_has_column(sqlite3 *db, enum packed_column column);

struct packed;                           /* one thread, one connection */
struct packed *packed_open(sqlite3 *db); /* NULL: no memory. Of a copy that packed_keep was told of: the same one */
void packed_close(struct packed *p);
void packed_move(struct packed *p, sqlite3 *db); /* another connection to the same file, which keeps what was read */
void packed_renew(struct packed *p);             /* forgets what it read where the file has changed since */
/* Several readers may share one: while one of them holds it, what was read stays. */
void packed_hold(struct packed *p);
void packed_let(struct packed *p);

/* The connection's (packed_shared) is of a private copy that nobody else writes: what was read stays, and packed_set
 * says what a column is from now on, in place of the file. It takes the values, by row. */
void packed_keep(struct packed *p);
int packed_is_kept(const struct packed *p);
void packed_set(struct packed *p, enum packed_column column, uint64_t *values);

/* The rows of the table, and the values of a column for rows 1 to that: until the next packed_renew. -EBADMSG: damaged;
 * -ENOMEM, -EIO. packed_error says it in words. */
long packed_count(struct packed *p, enum packed_table table);
int packed_is_whole(const struct packed *p, enum packed_table table); /* there are no later parts; after packed_count */
/* Of resident_site, after packed_count: the rows of a look, from *first to *last (above it: none), and a row's look. */
void packed_look_rows(const struct packed *p, int64_t scan_id, uint32_t *first, uint32_t *last);
int64_t packed_look_of(const struct packed *p, uint32_t row);
int packed_read(struct packed *p, enum packed_column column, const struct packed_values **values);
const char *packed_error(long rc);
/* The frames of each stack, by its id: 1 is the outermost one alone. */
int packed_depths(struct packed *p, const uint32_t **depths);
/* The caller (0: none; a lower id) and the address of each stack, some thousand after the other in the order of their
 * ids, without keeping any (packed_stacks.c). Callers are read from the first chunk on whose addresses begins says 1
 * of; NULL: all. take: returns 0 or -errno, which ends it. */
struct packed_visit {
    int (*begins)(void *arg, const uint64_t *addresses, uint32_t count);
    int (*take)(void *arg, uint32_t first, const uint64_t *parents, const uint64_t *addresses, uint32_t count);
    void *arg;
};
int packed_each_stack(sqlite3 *db, const struct packed_visit *visit);
/* The sites of a stack, in ascending order: the first, and the one after a site; 0: none. */
int packed_site_of_stack(struct packed *p, int64_t stack_id, uint32_t *site);
uint32_t packed_next_site(const struct packed *p, uint32_t site);

/* Virtual tables packed_stack, packed_site, packed_site_line, ... with the columns of the plain ones (packed_table.c).
 */
int packed_register(sqlite3 *db);
/* And temporary views of the plain tables' names before those that are packed. */
int packed_views(sqlite3 *db, struct error *err);
/* What these tables of the connection read, to be held while it is used: columns at once are far quicker than rows by
 * SQL. NULL: packed_views was not called, or had nothing to show. */
struct packed *packed_shared(sqlite3 *db);

#endif
