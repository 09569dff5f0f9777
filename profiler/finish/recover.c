/* A file whose collector was killed, or had no memory or disk left: closed properly, told apart, symbolized. */
#include "recover.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/rotated.h"
#include "../../common/units.h"
#include "recover_end.h"
#include "symbolize.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* When the process began, in wall-clock seconds; 0: unknown. */
static int64_t process_start_s(int pid)
{
    char path[64], text[1024], line[256];
    long long ticks = 0, boot_s = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    const char *rest = strrchr(text, ')'); /* the name may hold anything */
    if (!rest || sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %lld",
                        &ticks) != 1)
        return 0;
    f = fopen("/proc/stat", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "btime %lld", &boot_s) == 1)
            break;
    if (f)
        fclose(f);
    return boot_s ? boot_s + ticks / sysconf(_SC_CLK_TCK) : 0;
}

static int same_host(sqlite3 *db)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    char *recorded = db_meta_text(db, "host");
    int same = !recorded || strcmp(recorded, host) == 0;
    free(recorded);
    return same;
}

/* Its pid may be another process by now: one that began after the recording did. */
static int collector_lives(sqlite3 *db)
{
    int64_t pid = db_meta_int(db, "collector_pid", 0);
    int64_t start_s = db_meta_int(db, "start_unix_ns", 0) / 1000000000;
    if (pid <= 0 || pid > INT32_MAX || !same_host(db) || (kill((pid_t)pid, 0) && errno == ESRCH))
        return 0;
    int64_t began_s = process_start_s((int)pid);
    return !began_s || began_s <= start_s + 2;
}

/* A store that could not go on has said so itself, as "partial". */
static int has_stopped(sqlite3 *db)
{
    return db_int(db, "SELECT 1 FROM meta WHERE key = 'partial'", 0) != 0;
}

int recover_is_due(sqlite3 *db)
{
    char *state = db_meta_text(db, "state");
    int is_due = state && strcmp(state, "recording") == 0 && (has_stopped(db) || !collector_lives(db));
    free(state);
    return is_due;
}

/* Why it is partial: what its store said, else that the collector ended. Yours to free. */
static char *reason(sqlite3 *db)
{
    char *said = db_meta_text(db, "partial");
    return said ? said : xstrdup("the collector was killed or out of memory");
}

/* What cannot be told of a damaged file is not, which is_told says with why; the rest of it is shown. */
static int write_end(sqlite3 *db, int is_private, int *is_told, struct error *why, struct error *err)
{
    int rc = db_exec(db, "SAVEPOINT ending", err);
    int end_rc = rc ? rc : recover_end(db, is_private, why);
    *is_told = end_rc == 0;
    if (rc == 0 && end_rc && (end_rc == -ENOSPC || sqlite3_get_autocommit(db))) { /* it is the place that fails */
        if (err)
            *err = *why;
        return end_rc;
    }
    return rc ? rc : db_exec(db, end_rc ? "ROLLBACK TO ending; RELEASE ending" : "RELEASE ending", err);
}

int recover_so_far(sqlite3 *db, struct error *err)
{
    struct error why;
    struct buf text = BUF(1u << 16);
    int is_told, rc = write_end(db, 1, &is_told, &why, err);
    if (rc || is_told)
        return rc;
    buf_printf(&text, "still being recorded; what is live is not known: %s", why.text);
    rc = db_meta_set_text(db, "partial", buf_text(&text));
    buf_free(&text);
    return rc ? db_error(db, err) : 0;
}

int recover_books(sqlite3 *db, struct error *err)
{
    struct buf text = BUF(1u << 16);
    char saved[UNITS_TEXT];
    struct error end_error;
    int is_told, rc = write_end(db, 0, &is_told, &end_error, err);
    if (rc)
        return rc;
    char *why = reason(db);
    buf_puts(&text, why);
    if (!db_meta_int(db, "part_end_ns", 0)) /* else it is a part of a rotated recording, and whole */
        /* when it stopped is not known, nor how long before that it last had a processor */
        buf_printf(&text, "; what came after %s is missing (memprof saves four times a second)",
                   units_ns(saved, db_meta_int(db, "duration_ns", 0)));
    if (!is_told)
        buf_printf(&text, "; what was live at the end is not known: %s", end_error.text);
    rc = db_meta_set_text(db, "partial", buf_text(&text));
    rc = rc ? rc : db_meta_set_text(db, "state", "recorded");
    free(why);
    buf_free(&text);
    return rc ? db_error(db, err) : 0;
}

/* Where its store stopped, the run itself has said so. */
static int is_due_at(const char *path, int *is_killed)
{
    sqlite3 *db = NULL;
    if (db_open_read(path, &db, NULL))
        return 0; /* whoever reads it next will say what is wrong */
    int is_due = recover_is_due(db);
    *is_killed = !has_stopped(db);
    sqlite3_close(db);
    return is_due;
}

int recover_file(const char *path, struct error *err)
{
    int is_killed;
    if (!is_due_at(path, &is_killed))
        return 0;
    sqlite3 *db = NULL;
    int rc = db_open_write(path, &db, err);
    if (rc == 0 && is_killed)
        fprintf(stderr,
                "memprof: %s: its recording was cut off (the collector was killed or out of memory); finishing what is "
                "there\n",
                path);
    if (rc == 0)
        rc = db_leave_log(db, DB_BUSY_MS, err);
    if (rc == 0)
        rc = db_exec(db, "BEGIN", err);
    if (rc == 0)
        rc = rotated_recover(db, err);
    if (rc == 0)
        rc = recover_books(db, err);
    if (rc == 0)
        rc = db_exec(db, "COMMIT", err);
    sqlite3_close(db);
    if (rc)
        return rc;
    struct finish_options options = {.progress = isatty(STDERR_FILENO)};
    return symbolize_file(path, &options, -1, err);
}
