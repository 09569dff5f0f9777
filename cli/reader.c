#include "cli.h"

#include "../common/db.h"
#include "../profiler/finish/finish.h"
#include "../profiler/finish/recover.h"
#include "../report/query/older.h"
#include "../report/query/views.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum needs { NEEDS_ALL, NEEDS_SELF };

static int finish(sqlite3 *db, const char *path, int is_recording, enum needs needs, struct error *err)
{
    struct finish_options options = {.progress = isatty(STDERR_FILENO),
                                     .recording = path,
                                     .is_recording = is_recording,
                                     .is_self_only = needs == NEEDS_SELF};
    return finish_database(db, &options, err);
}

/* Into the file itself: 0 when it is complete now. */
static int finish_in_place(const char *path, struct error *err)
{
    sqlite3 *db = NULL;
    if (access(path, W_OK))
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    int rc = db_open_write(path, &db, err);
    if (rc == 0)
        rc = finish(db, path, 0, NEEDS_ALL, err);
    sqlite3_close(db);
    if (rc == 0)
        finish_forget(path);
    return rc;
}

#define COPY_CACHE_KIB "65536" /* most copies stay in memory */

/* A private copy in SQLite's temporary storage, which goes away with the connection. */
static int copy_to_temporary(sqlite3 *from, sqlite3 **copy, struct error *err)
{
    int rc = 0;
    if (sqlite3_open_v2("", copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        rc = db_error(*copy, err);
    if (rc == 0) {
        sqlite3_backup *backup = sqlite3_backup_init(*copy, "main", from, "main");
        if (!backup || sqlite3_backup_step(backup, -1) != SQLITE_DONE)
            rc = db_error(*copy, err);
        if (sqlite3_backup_finish(backup) != SQLITE_OK && rc == 0)
            rc = db_error(*copy, err);
    }
    if (rc == 0) {
        sqlite3_db_config(*copy, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(*copy, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        sqlite3_db_config(*copy, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
        /* it is thrown away when anything fails */
        rc = db_exec(*copy, "PRAGMA journal_mode = OFF; PRAGMA cache_size = -" COPY_CACHE_KIB, err);
    }
    if (rc) {
        sqlite3_close(*copy);
        *copy = NULL;
    }
    return rc;
}

/* The accounts by line and function are made when the symbols are known: before that a report has nothing to show. */
static int complete(const char *path, sqlite3 **db, enum needs needs, struct error *err)
{
    char *state = db_meta_text(*db, "state");
    int is_complete = state && strcmp(state, "complete") == 0;
    int is_due = recover_is_due(*db); /* its books could not be closed in it */
    int is_recording = state && strcmp(state, "recording") == 0 && !is_due;
    free(state);
    if (is_complete)
        return 0;
    if (!is_recording && !is_due && finish_in_place(path, err) == 0) {
        sqlite3_close(*db);
        return db_open_read(path, db, err);
    }
    sqlite3 *copy = NULL;
    int rc = copy_to_temporary(*db, &copy, err);
    if (rc == 0 && is_due)
        rc = recover_books(copy, err);
    if (rc == 0 && is_recording)
        rc = recover_so_far(copy, err);
    if (rc == 0)
        rc = finish(copy, path, is_recording, needs, err);
    if (rc == 0 && is_recording) /* the copy is complete, the recording is not */
        db_meta_set_text(copy, "state", "recording");
    if (rc == 0) {
        sqlite3_close(*db);
        *db = copy;
        return 0;
    }
    sqlite3_close(copy);
    return rc;
}

/* A file of before, whose tables lack columns of today's: a private copy of it has them, unknown in each row. */
static int add_columns(sqlite3 **db, struct error *err)
{
    sqlite3 *copy = NULL;
    if (!older_lacks(*db))
        return 0;
    int rc = copy_to_temporary(*db, &copy, err);
    if (rc == 0)
        rc = older_add(copy, err);
    if (rc) {
        sqlite3_close(copy);
        return rc;
    }
    sqlite3_close(*db);
    *db = copy;
    return 0;
}

static int open_for(const char *path, sqlite3 **db, enum needs needs, struct error *err)
{
    struct error recover_error;
    int rc = db_open_read(path, db, err);
    if (rc)
        return rc;
    if (recover_is_due(*db)) {
        sqlite3_close(*db);
        int recovered = recover_file(path, &recover_error);
        rc = db_open_read(path, db, err);
        if (rc)
            return rc;
        if (recovered)
            cli_note("%s; showing what is in the file", recover_error.text);
    }
    rc = complete(path, db, needs, err);
    if (rc == 0)
        rc = add_columns(db, err);
    if (rc == 0)
        rc = views_own(*db, err);
    if (rc) {
        sqlite3_close(*db);
        *db = NULL;
    }
    return rc;
}

int reader_open(const char *path, sqlite3 **db, struct error *err)
{
    return open_for(path, db, NEEDS_ALL, err);
}

static int open_still(const char *path, sqlite3 **db, enum needs needs, struct error *err)
{
    int rc = open_for(path, db, needs, err);
    if (rc == 0)
        rc = db_exec(*db, "BEGIN", err);
    if (rc) {
        sqlite3_close(*db);
        *db = NULL;
    }
    return rc;
}

int reader_open_still(const char *path, sqlite3 **db, struct error *err)
{
    return open_still(path, db, NEEDS_ALL, err);
}

int reader_open_running(const char *path, sqlite3 **db, struct error *err)
{
    int rc = db_open_read(path, db, err);
    char *state = rc == 0 ? db_meta_text(*db, "state") : NULL;
    int is_running = state && strcmp(state, "recording") == 0 && !recover_is_due(*db);
    free(state);
    if (rc == 0 && is_running)
        rc = views_own(*db, err);
    if (rc == 0 && is_running)
        rc = db_exec(*db, "BEGIN", err);
    if (rc == 0 && is_running)
        return 1;
    sqlite3_close(*db);
    *db = NULL;
    return rc;
}

int reader_open_self(const char *path, sqlite3 **db, struct error *err)
{
    return open_still(path, db, NEEDS_SELF, err);
}

int reader_open_some(const char *path, sqlite3 **db, struct error *err)
{
    struct error unused;
    int rc = reader_open_still(path, db, err);
    if (rc == 0)
        return 0;
    if (db_open_torn(path, db, &unused))
        return rc;
    if (views_own(*db, &unused)) {
        sqlite3_close(*db);
        *db = NULL;
        return rc;
    }
    error_set(err, EIO, "%s: damaged: only a part of it can be read", path);
    return 1;
}
