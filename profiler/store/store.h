/*
 * store.h: the database while it is being written: prepared inserts, transactions, and what happens when the disk is
 * full. After the first failed write it stores nothing more, keeps the error, and every call is a cheap no-op.
 */
#ifndef MEMPROF_STORE_H
#define MEMPROF_STORE_H

#include "../../common/error.h"
#include "../../common/rows.h"

#include <sqlite3.h>
#include <stdint.h>

struct store;

int store_create(const char *path, struct store **store, struct error *err);
sqlite3 *store_db(struct store *store);
/* A cached prepared statement for this literal SQL (pointer identity is the key), reset and ready to bind. NULL after a
 * failure. */
sqlite3_stmt *store_statement(struct store *store, const char *sql);
void store_step(struct store *store, sqlite3_stmt *statement); /* runs it; failures go to store_failed */
/* Inserts rows that there are in memory: sql, a literal, reads them as name(?1). */
void store_rows(struct store *store, struct rows *rows, const char *sql);
void store_commit(struct store *store);                         /* ends the open transaction and begins the next */
int store_failed(const struct store *store, struct error *err); /* 0, or the first failure as -errno with err */
uint64_t store_room_bytes(const struct store *store);           /* that its disk had after the last commit */
/* From now on only versions that know this version of the file (DB_SCHEMA_PACKED, ...) may read it. */
void store_needs(struct store *store, int version);
/* Ends in one plain file: commit, WAL checkpoint, journal_mode DELETE, close. */
int store_close(struct store *store, struct error *err);

/* One fact of table meta; an older one of that key is replaced. */
void store_meta_text(struct store *store, const char *key, const char *value);
void store_meta_int(struct store *store, const char *key, int64_t value);
/* One row of table counter, of a process or (0) of the whole recording; none where it counted nothing. */
void store_counter(struct store *store, int64_t process_id, const char *name, uint64_t value, const char *text);

#endif
