#include "torch_compare.h"

#include "../../common/db.h"
#include "../query/vtab_event.h"

#include <stdio.h>
#include <string.h>

/* PyTorch reports a free to profilers when it is requested; in a snapshot that is free_requested, for most. */
static const char our_sql[] =
    "SELECT e.device, e.address, e.op = 'alloc', e.size_bytes FROM v_event e WHERE e.kind = 'sub' AND e.device LIKE "
    "'cuda:%' AND "
    "e.op IN ('alloc', 'free') AND e.process_id IN (SELECT process_id FROM process WHERE pid = ?1)";
static const char their_sql[] =
    "SELECT e.device, e.address, e.op = 'alloc', e.size_bytes FROM v_event e WHERE e.device LIKE "
    "'cuda:%' AND e.hook IN ('alloc', 'free_requested') AND ?1 <> 0";

static int copy(sqlite3 *from, const char *sql, int64_t pid, sqlite3 *to, const char *insert, struct error *err)
{
    sqlite3_stmt *read = NULL, *write = NULL;
    int step = SQLITE_DONE, rc = db_prepare(from, sql, &read, err);
    if (rc == 0)
        rc = db_prepare(to, insert, &write, err);
    if (rc == 0)
        sqlite3_bind_int64(read, 1, pid);
    while (rc == 0 && (step = sqlite3_step(read)) == SQLITE_ROW) {
        for (int i = 0; i < 4; i++)
            sqlite3_bind_value(write, i + 1, sqlite3_column_value(read, i));
        if (sqlite3_step(write) != SQLITE_DONE)
            rc = db_error(to, err);
        sqlite3_reset(write);
    }
    if (rc == 0 && step != SQLITE_DONE)
        rc = db_error(from, err);
    sqlite3_finalize(read);
    sqlite3_finalize(write);
    return rc;
}

static void first_difference(sqlite3 *db, char text[256])
{
    static const char sql[] =
        "SELECT seq, who, device, address, is_alloc, size_bytes FROM ("
        " SELECT o.seq AS seq, 'ours' AS who, o.* FROM inside o LEFT JOIN theirs t USING(device, address, n)"
        " WHERE t.seq IS NULL OR t.is_alloc <> o.is_alloc OR t.size_bytes > o.size_bytes"
        " UNION ALL SELECT t.seq, 'PyTorch''s', t.* FROM theirs t LEFT JOIN ours o USING(device, address, n)"
        " WHERE o.seq IS NULL) ORDER BY seq LIMIT 1";
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        snprintf(text, 256, "number %lld of %s: %s at 0x%llx on %s, %lld bytes", (long long)sqlite3_column_int64(s, 0),
                 db_text(s, 1), sqlite3_column_int(s, 4) ? "an allocation" : "a free",
                 (unsigned long long)sqlite3_column_int64(s, 3), db_text(s, 2), (long long)sqlite3_column_int64(s, 5));
    sqlite3_finalize(s);
}

static const char tables[] = "CREATE TABLE our_rows(seq INTEGER PRIMARY KEY, device, address, is_alloc, size_bytes);"
                             "CREATE TABLE their_rows(seq INTEGER PRIMARY KEY, device, address, is_alloc, size_bytes);";
/* n: how many times the address was named before */
static const char numbered[] =
    "CREATE TABLE ours AS SELECT *, row_number() OVER (PARTITION BY device, address ORDER BY seq) AS n FROM our_rows;"
    "CREATE TABLE theirs AS SELECT *, row_number() OVER (PARTITION BY device, address ORDER BY seq) AS n FROM "
    "their_rows;"
    "CREATE INDEX our_index ON ours(device, address, n); CREATE INDEX their_index ON theirs(device, address, n);"
    "CREATE TABLE agree AS SELECT o.seq, o.is_alloc FROM ours o JOIN theirs t USING(device, address, n)"
    " WHERE o.is_alloc = t.is_alloc AND o.size_bytes >= t.size_bytes;"
    /* tensors that die while the interpreter ends are freed after the snapshot */
    "CREATE VIEW inside AS SELECT * FROM ours WHERE NOT EXISTS(SELECT 1 FROM agree) OR seq BETWEEN (SELECT min(seq) "
    "FROM"
    " agree) AND (SELECT max(seq) FROM agree);";

int torch_compare(sqlite3 *ours, sqlite3 *theirs, int64_t pid, struct torch_comparison *result, struct error *err)
{
    sqlite3 *db = NULL;
    int rc = 0;
    *result = (struct torch_comparison){0};
    if (sqlite3_open_v2("", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
        rc = db_error(db, err);
    if (rc == 0 && (vtab_event_register(ours) != SQLITE_OK || vtab_event_register(theirs) != SQLITE_OK))
        rc = db_error(ours, err);
    if (rc == 0)
        rc = db_exec(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN", err);
    if (rc == 0)
        rc = db_exec(db, tables, err);
    if (rc == 0)
        rc = copy(ours, our_sql, pid, db,
                  "INSERT INTO our_rows(device, address, is_alloc, size_bytes) VALUES(?, ?, ?, ?)", err);
    if (rc == 0)
        rc = copy(theirs, their_sql, 1, db,
                  "INSERT INTO their_rows(device, address, is_alloc, size_bytes) VALUES(?, ?, ?, ?)", err);
    if (rc == 0)
        rc = db_exec(db, numbered, err);
    if (rc == 0) {
        result->blocks = db_int(db, "SELECT count(*) FROM agree WHERE is_alloc", 0);
        result->frees = db_int(db, "SELECT count(*) FROM agree WHERE NOT is_alloc", 0);
        int64_t inside = db_int(db, "SELECT count(*) FROM inside", 0);
        result->only_ours = inside - result->blocks - result->frees;
        result->ours_outside = db_int(db, "SELECT count(*) FROM ours", 0) - inside;
        result->only_theirs = db_int(db, "SELECT count(*) FROM theirs", 0) - result->blocks - result->frees;
        if (result->only_ours || result->only_theirs)
            first_difference(db, result->first);
    }
    sqlite3_close(db);
    return rc;
}
