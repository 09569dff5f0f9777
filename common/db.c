#include "db.h"

#include "beside.h"
#include "buf.h"
#include "schema.h"
#include "text.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define SHARED_BYTES 32768 /* that file's first part */
#define PAGE_MOST    65536 /* SQLite writes no more at once */

static const char *file_of(sqlite3 *db)
{
    const char *name = db ? sqlite3_db_filename(db, "main") : NULL;
    return name && *name ? name : "database";
}

/* The limit on the size of files where that, not the disk, is why one cannot grow: it is as long, or, given up, may
 * have been shortened on a disk with room for all that the limit allows. 0: the disk is full. */
static uint64_t reached_limit(const char *path)
{
    static const char *const files[] = {"", "-journal", "-wal"};
    char name[PATH_MAX];
    struct rlimit limit;
    struct statvfs disk;
    struct stat file;
    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return 0;
    int is_reached = statvfs(path, &disk) == 0 && disk.f_bavail >= limit.rlim_cur / disk.f_frsize + 1;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(name, sizeof name, "%s%s", path, files[i]);
        is_reached |= stat(name, &file) == 0 && (uint64_t)file.st_size + PAGE_MOST > limit.rlim_cur;
    }
    return is_reached ? limit.rlim_cur : 0;
}

/* SQLite does not call it full where the file beside a database, which readers share, cannot grow, nor where a limit
 * leaves no byte of a write. */
static int is_full(sqlite3 *db, int code)
{
    const int how = code == SQLITE_IOERR ? sqlite3_extended_errcode(db) : 0;
    struct statvfs disk;
    if (how == SQLITE_IOERR_WRITE || how == SQLITE_IOERR_TRUNCATE || how == SQLITE_IOERR_SHMSIZE)
        if (sqlite3_system_errno(db) == EFBIG || reached_limit(file_of(db)))
            return 1;
    return code == SQLITE_FULL || (how == SQLITE_IOERR_SHMSIZE && statvfs(file_of(db), &disk) == 0 &&
                                   disk.f_bavail * disk.f_frsize < SHARED_BYTES);
}

static int no_room(const char *path, struct error *err)
{
    char text[UNITS_TEXT];
    uint64_t limit_bytes = reached_limit(path);
    if (limit_bytes)
        return error_set(err, EFBIG, "%s: a file may not grow beyond %s (ulimit -f); raise that limit", path,
                         units_bytes(text, (int64_t)limit_bytes));
    return error_set(err, ENOSPC, "%s: disk full; free some space or choose another place with -o", path);
}

int db_error(sqlite3 *db, struct error *err)
{
    int code = db ? sqlite3_errcode(db) & 0xff : SQLITE_NOMEM;
    if (is_full(db, code))
        return no_room(file_of(db), err);
    if (code == SQLITE_BUSY)
        return error_set(err, EBUSY, "%s: another program has been reading or writing it for %d s; try again after it",
                         file_of(db), DB_BUSY_MS / 1000);
    return error_set(err, code == SQLITE_NOMEM ? ENOMEM : EIO, "%s: %s%s", file_of(db),
                     code == SQLITE_CORRUPT ? "damaged: " : "", db ? sqlite3_errmsg(db) : "out of memory");
}

int db_next(sqlite3_stmt *s, int *rc, struct error *err)
{
    int step = sqlite3_step(s);
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        *rc = db_error(sqlite3_db_handle(s), err);
    return step == SQLITE_ROW;
}

int db_exec(sqlite3 *db, const char *sql, struct error *err)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_error(db, err);
}

int db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **statement, struct error *err)
{
    return sqlite3_prepare_v2(db, sql, -1, statement, NULL) == SQLITE_OK ? 0 : db_error(db, err);
}

/* The file is made here, not by SQLite, so that an existing one or a link is never followed. */
static int create_file(const char *path, struct error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return error_set(err, errno, "%s: %s; choose another place with -o", path, strerror(errno));
    int rc = schema_write(fd);
    close(fd);
    if (rc == -ENOSPC || rc == -EFBIG)
        rc = no_room(path, err);
    else if (rc)
        error_set(err, -rc, "%s: %s", path, strerror(-rc));
    if (rc)
        unlink(path);
    return rc;
}

int db_create(const char *path, sqlite3 **db, struct error *err)
{
    *db = NULL;
    int rc = create_file(path, err);
    if (rc)
        return rc;
    if (sqlite3_open_v2(path, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        rc = db_error(*db, err);
    sqlite3_busy_timeout(*db, DB_BUSY_MS);
    if (rc == 0)
        rc = db_exec(*db, "PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL", err);
    if (rc) {
        sqlite3_close(*db);
        *db = NULL;
        unlink(path);
    }
    return rc;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* SQLite waits for nobody where a log is left for good. */
int db_leave_log(sqlite3 *db, unsigned wait_ms, struct error *err)
{
    int rc, code;
    int64_t until = now_ms() + wait_ms;
    sqlite3_busy_timeout(db, 10);
    do {
        rc = db_exec(db, "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE", err);
        code = sqlite3_errcode(db) & 0xff;
    } while (rc && code == SQLITE_BUSY && now_ms() < until);
    sqlite3_busy_timeout(db, DB_BUSY_MS);
    return code == SQLITE_BUSY ? 0 : rc;
}

/* Whether a file that SQLite does not take begins as ours do: how they begin, and the number at 68 that says whose. Of
 * one that ends within its header, which SQLite takes for an empty one, the first is enough. */
static int begins_as_ours(const char *path)
{
    static const unsigned char id[4] = {DB_APPLICATION_ID >> 24, DB_APPLICATION_ID >> 16 & 0xff,
                                        DB_APPLICATION_ID >> 8 & 0xff, DB_APPLICATION_ID & 0xff};
    unsigned char head[100];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof head);
    if (fd >= 0)
        close(fd);
    return n >= 16 && memcmp(head, "SQLite format 3", 16) == 0 &&
           (n < (ssize_t)sizeof head || memcmp(head + 68, id, sizeof id) == 0);
}

/* Why SQLite cannot open a file that may be whole: it cannot use the one beside it. 0: that is not why. */
static int check_beside(sqlite3 *db, const char *path, struct error *err)
{
    static const enum beside which[] = {BESIDE_JOURNAL, BESIDE_WAL, BESIDE_SHM};
    const int code = sqlite3_errcode(db) & 0xff;
    if (code != SQLITE_CANTOPEN && code != SQLITE_READONLY && code != SQLITE_IOERR && code != SQLITE_PERM)
        return 0;
    for (size_t i = 0; i < sizeof which / sizeof *which; i++)
        if (beside_look(path, which[i]) != BESIDE_NONE)
            return error_set(err, EACCES, "%s: cannot be read with the %s%s that is beside it (%s); see what that is",
                             path, text_basename(path), beside_suffix(which[i]), sqlite3_errmsg(db));
    return 0;
}

static int check_ours(sqlite3 *db, const char *path, struct error *err)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(db, "PRAGMA application_id", -1, &s, NULL) != SQLITE_OK || sqlite3_step(s) != SQLITE_ROW) {
        if (!check_beside(db, path, err) && begins_as_ours(path))
            error_set(err, EINVAL, "%s: damaged (%s); record again with 'memprof run'", path, sqlite3_errmsg(db));
        else if (!check_beside(db, path, err))
            error_set(err, EINVAL, "%s: not a memprof file (%s); expected what 'memprof run' writes", path,
                      sqlite3_errmsg(db));
        sqlite3_finalize(s);
        return -EINVAL;
    }
    int id = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    if (id != DB_APPLICATION_ID && begins_as_ours(path))
        return error_set(err, EINVAL, "%s: damaged (it ends within its header); record again with 'memprof run'", path);
    if (id != DB_APPLICATION_ID)
        return error_set(err, EINVAL, "%s: not a memprof file (application_id %d); expected what 'memprof run' writes",
                         path, id);
    int64_t version = db_int(db, "PRAGMA user_version", 0);
    if (version < 1)
        return error_set(err, EINVAL, "%s: damaged (its format is said to be %lld); record again with 'memprof run'",
                         path, (long long)version);
    if (version > DB_SCHEMA_VERSION)
        return error_set(err, EINVAL,
                         "%s: written by a newer memprof (format %lld, this one reads up to %d); update memprof", path,
                         (long long)version, DB_SCHEMA_VERSION);
    if (db_int(db, "SELECT count(*) FROM sqlite_schema", -1) == 0 ||
        db_int(db, "SELECT (SELECT count(*) FROM meta) + (SELECT count(*) FROM process)", -1) == 0)
        return error_set(err, ENODATA,
                         "%s: nothing is in it: memprof was killed before it had recorded anything; record again with "
                         "'memprof run'",
                         path);
    if (db_int(db, "SELECT count(*) FROM meta WHERE key = 'format' AND value = 'memprof'", 0) != 1)
        return error_set(err, EINVAL,
                         "%s: damaged: its meta table is missing or empty; record again with 'memprof run'", path);
    return 0;
}

static int is_set_aside(const char *path)
{
    char old[PATH_MAX];
    return snprintf(old, sizeof old, "%s.old", path) < (int)sizeof old && access(old, F_OK) == 0;
}

/* A table of ours that is a view in the file could run for ever. What is no database is not found out here. */
static int check_tables(sqlite3 *db, const char *path, struct error *err)
{
    static const char sql[] = "SELECT name FROM main.sqlite_schema WHERE type = 'view' OR (type = 'table' AND "
                              "sql NOT LIKE 'CREATE TABLE%')";
    sqlite3_stmt *s = NULL;
    int rc = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK)
        while (rc == 0 && sqlite3_step(s) == SQLITE_ROW) {
            const struct schema_item *ours = schema_find(db_text(s, 0));
            if (ours && !ours->is_view)
                rc = error_set(err, EINVAL, "%s: damaged: '%s' is not a table in it; record again with 'memprof run'",
                               path, db_text(s, 0));
        }
    sqlite3_finalize(s);
    return rc;
}

/* is_torn: SQLite refuses a file that is shorter than it says, all of it, unless its schema may be written. */
static int open_checked(const char *path, int flags, int is_torn, sqlite3 **db, struct error *err)
{
    struct stat st;
    *db = NULL;
    if (stat(path, &st) && errno == ENOENT && is_set_aside(path))
        return error_set(err, ENOENT,
                         "%s: not there: the last run recorded nothing; 'memprof report %s.old' shows the one before",
                         path, path);
    if (stat(path, &st))
        return error_set(err, errno, "%s: %s; 'memprof run PROGRAM' makes one", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return error_set(err, EINVAL, "%s: not a regular file", path);
    if (st.st_size == 0)
        return error_set(err, EINVAL, "%s: empty file; expected what 'memprof run' writes", path);
    if (access(path, R_OK))
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    int rc = 0;
    if (sqlite3_open_v2(path, db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        rc = db_error(*db, err);
    if (rc == 0) {
        sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, !is_torn, NULL);
        sqlite3_db_config(*db, SQLITE_DBCONFIG_WRITABLE_SCHEMA, is_torn, NULL);
        sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        sqlite3_db_config(*db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
        sqlite3_limit(*db, SQLITE_LIMIT_LENGTH, 512 << 20);
        sqlite3_busy_timeout(*db, DB_BUSY_MS);
        sqlite3_exec(*db, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;", NULL, NULL, NULL);
        rc = check_tables(*db, path, err);
    }
    if (rc == 0)
        rc = check_ours(*db, path, err);
    if (rc) {
        sqlite3_close(*db);
        *db = NULL;
    }
    return rc;
}

int db_open_read(const char *path, sqlite3 **db, struct error *err)
{
    return open_checked(path, SQLITE_OPEN_READONLY, 0, db, err);
}

int db_open_torn(const char *path, sqlite3 **db, struct error *err)
{
    return open_checked(path, SQLITE_OPEN_READONLY, 1, db, err);
}

int db_open_write(const char *path, sqlite3 **db, struct error *err)
{
    return open_checked(path, SQLITE_OPEN_READWRITE, 0, db, err);
}

int64_t db_int_of(sqlite3 *db, const char *sql, const int64_t *values, int count, int64_t fallback)
{
    sqlite3_stmt *s = NULL;
    int64_t value = fallback;
    int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    for (int i = 0; i < count && rc == SQLITE_OK; i++)
        rc = sqlite3_bind_int64(s, i + 1, values[i]);
    if (rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL)
        value = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return value;
}

int64_t db_int(sqlite3 *db, const char *sql, int64_t fallback)
{
    return db_int_of(db, sql, NULL, 0, fallback);
}

static sqlite3_stmt *meta_row(sqlite3 *db, const char *key)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = ?", -1, &s, NULL) == SQLITE_OK)
        sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
    if (!s || sqlite3_step(s) != SQLITE_ROW || sqlite3_column_type(s, 0) == SQLITE_NULL) {
        sqlite3_finalize(s);
        return NULL;
    }
    return s;
}

char *db_meta_text(sqlite3 *db, const char *key)
{
    sqlite3_stmt *s = meta_row(db, key);
    char *text = s ? xstrdup(db_text(s, 0)) : NULL;
    sqlite3_finalize(s);
    return text;
}

int64_t db_meta_int(sqlite3 *db, const char *key, int64_t fallback)
{
    sqlite3_stmt *s = meta_row(db, key);
    int64_t value = s ? sqlite3_column_int64(s, 0) : fallback;
    sqlite3_finalize(s);
    return value;
}

static int meta_set(sqlite3 *db, const char *key, const char *text, int64_t number)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO meta VALUES(?, ?)", -1, &s, NULL) != SQLITE_OK)
        return -EIO;
    sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
    if (text)
        sqlite3_bind_text(s, 2, text, -1, SQLITE_STATIC);
    else
        sqlite3_bind_int64(s, 2, number);
    int rc = sqlite3_step(s) == SQLITE_DONE ? 0 : -EIO;
    sqlite3_finalize(s);
    return rc;
}

int db_meta_set_text(sqlite3 *db, const char *key, const char *value)
{
    return meta_set(db, key, value, 0);
}

int db_meta_set_int(sqlite3 *db, const char *key, int64_t value)
{
    return meta_set(db, key, NULL, value);
}

const char *db_text(sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    return text ? (const char *)text : "";
}

int db_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int db_check_replaced(const char *path, struct error *err)
{
    struct stat st;
    if (stat(path, &st) || !S_ISREG(st.st_mode) || !begins_as_ours(path))
        return 0;
    return error_set(err, EINVAL,
                     "%s: is a recording of memprof; it is left as it is: give what is written another name", path);
}

size_t db_stem(const char *path)
{
    size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".db") == 0 ? length - 3 : length;
}

char *db_path_with(const char *path, const char *suffix)
{
    size_t stem = db_stem(path);
    char *with = xmalloc(stem + strlen(suffix) + 1);
    memcpy(with, path, stem);
    strcpy(with + stem, suffix);
    return with;
}

char *db_own_text(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL ? NULL : xstrdup(db_text(statement, column));
}
