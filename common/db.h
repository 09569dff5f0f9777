/*
 * db.h: opening our SQLite files, and short forms of the SQLite calls that everybody needs.
 */
#ifndef MEMPROF_DB_H
#define MEMPROF_DB_H

#include "error.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#define DB_APPLICATION_ID 0x4D505246 /* "MPRF" */
#define DB_SCHEMA_PLAIN   1          /* of files without rows in the table packed, which older versions read too */
#define DB_SCHEMA_PACKED  2          /* of files that have such rows */
#define DB_SCHEMA_PARTS   3          /* of files with events of parts of blocks (split, cut) */
#define DB_SCHEMA_CHANGES 4          /* of files whose packed sites have a column as changes (packed.c, recoded) */
#define DB_SCHEMA_LOOKS   5          /* of files with packed looks, or packed sites that say what a teardown freed */
#define DB_SCHEMA_INHERIT 6          /* of files with events of a forked child that frees its parent's blocks */
#define DB_SCHEMA_SAMPLED 7          /* of files that lack blocks of the heap (run --sample, --min-size) */
#define DB_SCHEMA_STARTED 8          /* of files whose accounts begin with what was inherited (run --rotate) */
#define DB_SCHEMA_VERSION 8
#define DB_BUSY_MS        2000 /* how long a connection waits for others that use the file */

/* Creates a new file with the schema; it must not exist. Returns 0 or -errno with err. Close with sqlite3_close. */
int db_create(const char *path, sqlite3 **db, struct error *err);

/* Opens an existing file for reading, after checking application_id, version and that the tables are there; the file
 * is untrusted, so triggers, functions in views and odd pages are refused (SQLITE_DBCONFIG_DEFENSIVE, TRUSTED_SCHEMA
 * off, cell size checks on). Returns 0 or -errno with err. */
int db_open_read(const char *path, sqlite3 **db, struct error *err);

/* The same of a file that lacks its end: what is in the part that is there can be read, all else fails as damaged. */
int db_open_torn(const char *path, sqlite3 **db, struct error *err);

/* The same for writing (finishing a file that a killed collector left). */
int db_open_write(const char *path, sqlite3 **db, struct error *err);

/* Puts what is in the file's log (WAL) into the file, and works without one from then on. Where somebody reads the file
 * for longer than wait_ms the log stays, which is no error: the file is whole with it. Returns 0, or -ENOSPC or -EIO
 * with err. */
int db_leave_log(sqlite3 *db, unsigned wait_ms, struct error *err);

/* Prepares one statement; -EIO with err when the file lacks what it names. Finalize with sqlite3_finalize. */
int db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **statement, struct error *err);

/* Runs statements without results. Returns 0, or as db_error does; err is filled. */
int db_exec(sqlite3 *db, const char *sql, struct error *err);

/* Fills err from the last failure on db: "FILE: MESSAGE". Returns -ENOSPC for a full disk, -EBUSY where
 * others use the file, else -EIO. */
int db_error(sqlite3 *db, struct error *err);
/* The next row of a statement. 0: there is none left, or (then *rc is not 0) it failed. */
int db_next(sqlite3_stmt *s, int *rc, struct error *err);

/* First column of the first row of a query without parameters; fallback when there is none. */
int64_t db_int(sqlite3 *db, const char *sql, int64_t fallback);
/* The same of one with count parameters. */
int64_t db_int_of(sqlite3 *db, const char *sql, const int64_t *values, int count, int64_t fallback);

/* meta.value as text or integer; NULL / fallback when absent. The text is the caller's to free. */
char *db_meta_text(sqlite3 *db, const char *key);
int64_t db_meta_int(sqlite3 *db, const char *key, int64_t fallback);
int db_meta_set_text(sqlite3 *db, const char *key, const char *value);
int db_meta_set_int(sqlite3 *db, const char *key, int64_t value);

/* Whether two paths name one file, through links too; 0 where either is not there. */
int db_same_file(const char *a, const char *b);
/* Before something else than a recording is written to path. 0, or -EINVAL with err: a recording is there. */
int db_check_replaced(const char *path, struct error *err);
/* Bytes of a path without .db at its end. */
size_t db_stem(const char *path);
/* out.html of out.db: with a suffix in the place of .db. The caller frees it. */
char *db_path_with(const char *path, const char *suffix);

/* Column text of a statement's current row, "" for NULL; borrowed until the next step. */
const char *db_text(sqlite3_stmt *statement, int column);
/* A copy of it, the caller's to free; NULL for NULL. */
char *db_own_text(sqlite3_stmt *statement, int column);

#endif
