#include "store.h"

#include "../../common/db.h"
#include "../../common/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define BALLAST_BYTES_MAX (8u << 20)
#define ROOM_BYTES        (64u << 10) /* that a commit takes beside its pages */
#define PAGE_BYTES        4096u
#define LOG_PAGES_MAX     1000u /* in the log before it is emptied into the file: what is in both takes room twice */
#define LOG_PAGES_MIN     8u
#define LOG_SHARE         16u /* of the free space */

struct store {
    sqlite3 *db;
    char *path;
    int ballast_fd; /* an unnamed file: its blocks let the last commit of a full disk succeed */
    int ballast_shrunk;
    uint64_t room_bytes; /* free on its disk, after the last commit */
    int version;         /* of the file, as far as store_needs raised it */
    int failed;          /* 0 or -errno */
    struct error error;
    struct map statements; /* by the address of their SQL */
};

/* Of the file's disk; UINT64_MAX: not known. */
static uint64_t free_bytes(const char *path)
{
    struct statvfs fs;
    return statvfs(path, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
}

static int ballast_open(const char *path)
{
    char *directory = xstrdup(path);
    char *slash = strrchr(directory, '/');
    if (slash == directory)
        slash++;
    if (slash)
        *slash = 0;
    const char *where = slash ? directory : ".";
    int fd = open(where, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    uint64_t bytes = fd >= 0 ? free_bytes(where) / 4 : 0;
    if (fd >= 0) {
        if (bytes > BALLAST_BYTES_MAX)
            bytes = BALLAST_BYTES_MAX;
        /* not fallocate(3): its emulation would write every block */
        if (!bytes || fallocate(fd, 0, 0, (off_t)bytes)) {
            close(fd);
            fd = -1;
        }
    }
    free(directory);
    return fd;
}

static void ballast_drop(struct store *store)
{
    if (store->ballast_fd >= 0)
        close(store->ballast_fd);
    store->ballast_fd = -1;
    store->ballast_shrunk = 0;
}

static void log_limit(struct store *store)
{
    uint64_t pages = store->room_bytes / LOG_SHARE / PAGE_BYTES;
    pages = pages < LOG_PAGES_MIN ? LOG_PAGES_MIN : pages > LOG_PAGES_MAX ? LOG_PAGES_MAX : pages;
    sqlite3_wal_autocheckpoint(store->db, (int)pages);
}

static void fail(struct store *store)
{
    if (store->failed)
        return;
    store->failed = db_error(store->db, &store->error);
    for (struct map_entry *e = NULL; (e = map_next(&store->statements, e));)
        sqlite3_reset((sqlite3_stmt *)(uintptr_t)e->value);
    if (!sqlite3_get_autocommit(store->db))
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
}

int store_create(const char *path, struct store **store, struct error *err)
{
    struct store *s = xcalloc(1, sizeof *s);
    s->path = xstrdup(path);
    s->ballast_fd = -1;
    int rc = db_create(path, &s->db, err);
    /* Nothing waits for the disk: what a killed collector committed is in the page cache, and readers see that. A
     * temp_store in memory keeps the directory free of surprises. A log that is emptied often stays in the same pages
     * of memory, and leaves little to move at the end, when the user waits. */
    if (rc == 0)
        rc = db_exec(s->db,
                     "PRAGMA synchronous = OFF; PRAGMA cache_size = -16384;"
                     "PRAGMA temp_store = MEMORY; BEGIN",
                     err);
    if (rc) {
        if (s->db)
            unlink(path);
        sqlite3_close(s->db);
        free(s->path);
        free(s);
        return rc;
    }
    s->ballast_fd = ballast_open(path);
    s->room_bytes = free_bytes(path);
    log_limit(s);
    *store = s;
    return 0;
}

sqlite3 *store_db(struct store *store)
{
    return store->db;
}

sqlite3_stmt *store_statement(struct store *store, const char *sql)
{
    if (store->failed)
        return NULL;
    sqlite3_stmt *statement = map_pointer(&store->statements, (uintptr_t)sql);
    if (!statement) {
        if (sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK) {
            fail(store);
            return NULL;
        }
        map_set_pointer(&store->statements, (uintptr_t)sql, statement);
    }
    sqlite3_reset(statement);
    return statement;
}

void store_step(struct store *store, sqlite3_stmt *statement)
{
    if (store->failed || !statement)
        return;
    int code = sqlite3_step(statement);
    if (code != SQLITE_DONE && code != SQLITE_ROW)
        fail(store);
    sqlite3_reset(statement);
}

/* Where the disk may have no room for the next commit, it gets that of the ballast but for the last words. */
static void make_room(struct store *store)
{
    int cache_bytes = 0, most = 0;
    sqlite3_db_status(store->db, SQLITE_DBSTATUS_CACHE_USED, &cache_bytes, &most, 0);
    if (store->ballast_fd >= 0 && !store->ballast_shrunk &&
        free_bytes(store->path) < (uint64_t)cache_bytes + ROOM_BYTES &&
        lseek(store->ballast_fd, 0, SEEK_END) > ROOM_BYTES)
        store->ballast_shrunk = ftruncate(store->ballast_fd, ROOM_BYTES) == 0;
}

void store_rows(struct store *store, struct rows *rows, const char *sql)
{
    if (rows->last < rows->first || store->failed)
        return;
    rows_register(rows, store->db);
    sqlite3_stmt *s = store_statement(store, sql);
    if (s)
        rows_bind(rows, s);
    store_step(store, s);
    if (s)
        sqlite3_clear_bindings(s);
}

void store_commit(struct store *store)
{
    if (store->failed)
        return;
    make_room(store);
    for (const char *sql = "COMMIT"; sql; sql = sql[0] == 'C' ? "BEGIN" : NULL)
        if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
            fail(store);
            return;
        }
    if (store->ballast_shrunk && free_bytes(store->path) > 4 * ROOM_BYTES) {
        ballast_drop(store);
        store->ballast_fd = ballast_open(store->path);
    }
    store->room_bytes = free_bytes(store->path);
}

uint64_t store_room_bytes(const struct store *store)
{
    return store->room_bytes;
}

void store_needs(struct store *store, int version)
{
    char sql[64];
    if (version <= store->version)
        return;
    store->version = version;
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d", version);
    if (!store->failed && sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail(store);
}

int store_failed(const struct store *store, struct error *err)
{
    if (store->failed && err)
        *err = store->error;
    return store->failed;
}

/* With the ballast gone there is room to say why the file ends early. Its state stays "recording": what was live at the
 * last commit is for the next reader to write (recover.h). */
static void say_partial(struct store *store)
{
    char text[sizeof store->error.text + 64];
    snprintf(text, sizeof text, "storing stopped early: %s", store->error.text);
    db_meta_set_text(store->db, "partial", text);
}

int store_close(struct store *store, struct error *err)
{
    if (!store)
        return 0;
    if (!store->failed && sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        fail(store);
    for (struct map_entry *e = NULL; (e = map_next(&store->statements, e));)
        sqlite3_finalize((sqlite3_stmt *)(uintptr_t)e->value);
    map_close(&store->statements);
    ballast_drop(store);
    if (store->failed)
        say_partial(store);
    int rc = store->failed;
    if (rc && err)
        *err = store->error;
    int log_rc = db_leave_log(store->db, DB_BUSY_MS, rc ? NULL : err);
    rc = rc ? rc : log_rc;
    sqlite3_close(store->db);
    free(store->path);
    free(store);
    return rc;
}

void store_meta_text(struct store *store, const char *key, const char *value)
{
    sqlite3_stmt *q = store_statement(store, "INSERT OR REPLACE INTO meta VALUES(?1, ?2)");
    sqlite3_bind_text(q, 1, key, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(q, 2, value, -1, SQLITE_TRANSIENT);
    store_step(store, q);
}

void store_meta_int(struct store *store, const char *key, int64_t value)
{
    sqlite3_stmt *q = store_statement(store, "INSERT OR REPLACE INTO meta VALUES(?1, ?2)");
    sqlite3_bind_text(q, 1, key, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(q, 2, value);
    store_step(store, q);
}

void store_counter(struct store *store, int64_t process_id, const char *name, uint64_t value, const char *text)
{
    sqlite3_stmt *q = value ? store_statement(store, "INSERT INTO counter VALUES(nullif(?, 0), ?, ?, ?)") : NULL;
    if (!q)
        return;
    sqlite3_bind_int64(q, 1, process_id);
    sqlite3_bind_text(q, 2, name, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(q, 3, (int64_t)value);
    sqlite3_bind_text(q, 4, text, -1, SQLITE_TRANSIENT);
    store_step(store, q);
}
