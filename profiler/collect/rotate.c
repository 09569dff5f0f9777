#include "rotate.h"

#include "../../common/array.h"
#include "../../common/beside.h"
#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/rotated.h"
#include "../account/account.h"
#include "../store/store.h"
#include "drain.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAMES_MAX       1000 /* that are tried: of the next milliseconds */
#define ROOM_MORE_BYTES (1 << 20)

struct rotation {
    const char *path;
    struct rotate_options options;
    struct store *store;
    struct account *account;
    struct drain *drain;
    int64_t since_ns, since_bytes; /* when, and at which size, the running part began: its key frame is just before */
    int64_t begin_bytes;           /* the file's, when the copy under way began */
    int64_t end_ns;                /* of the part that is copied */
    int is_asked;
    uint32_t part;       /* the running one, from 1 */
    uint32_t next_chunk; /* of the copy under way: the first chunk that is not in it */
    char **files;        /* that were made, oldest first */
    uint32_t file_count, file_room;
    /* of the copy under way; the other thread's until done */
    pthread_t thread;
    int is_copying;
    int done; /* atomic */
    int rc;
    sqlite3 *from; /* has the instant that is copied */
    char *to, *part_path;
    struct error err;
};

/* --- the copy, on its own thread --- */

static int finish_copy(const struct rotation *r, sqlite3 *to, struct error *err)
{
    struct buf text = BUF(1 << 16);
    buf_printf(&text, "rotated: the recording goes on in %s", r->path);
    int rc = db_leave_log(to, 0, err);
    if (rc == 0 && (db_meta_set_text(to, "partial", buf_text(&text)) || db_meta_set_int(to, "part_end_ns", r->end_ns)))
        rc = db_error(to, err);
    buf_free(&text);
    return rc;
}

/* What was reserved behind the file's end. */
static void give_back_room(const char *path)
{
    struct stat st;
    if (stat(path, &st) || truncate(path, st.st_size))
        return; /* it is used later */
}

static int copy(const struct rotation *r, struct error *err)
{
    sqlite3 *to = NULL;
    int rc =
        sqlite3_open_v2(r->part_path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) ? db_error(to, err) : 0;
    sqlite3_backup *backup = rc ? NULL : sqlite3_backup_init(to, "main", r->from, "main");
    if (rc == 0 && !backup)
        rc = db_error(to, err);
    if (backup) {
        int code = sqlite3_backup_step(backup, -1);
        int end = sqlite3_backup_finish(backup);
        if (code != SQLITE_DONE || end != SQLITE_OK)
            rc = db_error(to, err);
    }
    if (rc == 0)
        rc = finish_copy(r, to, err);
    sqlite3_close(to);
    if (rc == 0)
        give_back_room(r->part_path);
    if (rc == 0 && rename(r->part_path, r->to))
        rc = error_set(err, errno, "%s: %s", r->to, strerror(errno));
    if (rc) {
        unlink(r->part_path);
        beside_remove(r->part_path);
    }
    return rc;
}

static void *run(void *arg)
{
    struct rotation *r = arg;
    r->rc = copy(r, &r->err);
    __atomic_store_n(&r->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* --- names --- */

/* "out.20261124-190312.347.db": sorted by name they are sorted by time. */
static char *name_of(const char *path, int64_t now_ms)
{
    char when[32];
    struct tm tm;
    struct buf name = BUF(1 << 16);
    int stem = (int)db_stem(path);
    localtime_r(&(time_t){now_ms / 1000}, &tm);
    strftime(when, sizeof when, "%Y%m%d-%H%M%S", &tm);
    buf_printf(&name, "%.*s.%s.%03d%s", stem, path, when, (int)(now_ms % 1000), path + stem);
    return buf_take(&name);
}

static char *free_name(const char *path)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < NAMES_MAX; i++) {
        char *name = name_of(path, (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + i);
        if (access(name, F_OK))
            return name;
        free(name);
    }
    return NULL;
}

static void forget_oldest(struct rotation *r)
{
    unlink(r->files[0]);
    beside_remove(r->files[0]);
    free(r->files[0]);
    memmove(r->files, r->files + 1, --r->file_count * sizeof *r->files);
}

/* --- the running file --- */

static int64_t used_bytes(const struct rotation *r)
{
    sqlite3 *db = store_db(r->store);
    return (db_int(db, "PRAGMA page_count", 0) - db_int(db, "PRAGMA freelist_count", 0)) *
           db_int(db, "PRAGMA page_size", 0);
}

struct rotation *rotate_open(const char *path, const struct rotate_options *options, struct store *store,
                             struct account *account, struct drain *drain)
{
    struct rotation *r = xcalloc(1, sizeof *r);
    *r = (struct rotation){
        .path = path, .options = *options, .store = store, .account = account, .drain = drain, .part = 1};
    return r;
}

static void tell_failure(const struct rotation *r)
{
    fprintf(stderr, "memprof: %s: not rotated: %s; its events stay in %s\n", r->to, r->err.text, r->path);
}

static void forget_copy(struct rotation *r)
{
    tell_failure(r);
    if (r->part_path)
        unlink(r->part_path);
    free(r->to);
    free(r->part_path);
    r->to = r->part_path = NULL;
}

static void end_copy(struct rotation *r)
{
    pthread_join(r->thread, NULL);
    sqlite3_close(r->from);
    r->is_copying = 0;
    if (r->rc) {
        forget_copy(r);
    } else {
        *ARRAY_ADD(r->files, r->file_count, r->file_room) = r->to;
        free(r->part_path);
    }
    r->to = r->part_path = NULL;
    while (r->options.keep && r->file_count > r->options.keep)
        forget_oldest(r);
}

void rotate_close(struct rotation *r)
{
    if (!r)
        return;
    if (r->is_copying)
        end_copy(r);
    for (uint32_t i = 0; i < r->file_count; i++)
        free(r->files[i]);
    free(r->files);
    free(r);
}

int rotate_is_due(const struct rotation *r, int64_t time_ns)
{
    if (r->is_copying)
        return 0;
    return r->is_asked || (r->options.every_ns && time_ns - r->since_ns >= r->options.every_ns) ||
           (r->options.every_bytes && used_bytes(r) - r->since_bytes >= r->options.every_bytes);
}

void rotate_ask(struct rotation *r)
{
    r->is_asked = 1;
}

/* Facts of the running part, as rotated_drop needs them. */
static void store_part(const struct rotation *r, int64_t start_ns, uint64_t first_event, uint32_t first_chunk)
{
    store_meta_int(r->store, "part", r->part);
    store_meta_int(r->store, "part_start_ns", start_ns);
    store_meta_int(r->store, "part_first_event", (int64_t)first_event);
    store_meta_int(r->store, "part_chunk", first_chunk);
}

static void mark_part(struct rotation *r, int64_t time_ns)
{
    char name[32];
    snprintf(name, sizeof name, "part %u", r->part);
    drain_mark_end(r->drain, drain_mark(r->drain, "rotate", name, 0, r->since_ns, 1), time_ns);
}

void rotate_end(struct rotation *r, int64_t end_ns)
{
    if (r->part > 1)
        mark_part(r, end_ns);
}

/* Room for the copy, on disk: what is copied is no longer in the accounts, so the copy should not fail. */
static int reserve(struct rotation *r)
{
    sqlite3 *db = store_db(r->store);
    int64_t bytes = db_int(db, "PRAGMA page_count", 0) * db_int(db, "PRAGMA page_size", 0) + ROOM_MORE_BYTES;
    int fd = open(r->part_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    int code = fd < 0 ? errno : 0;
    if (fd >= 0 && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, bytes) && errno != EOPNOTSUPP && errno != ENOSYS)
        code = errno;
    if (fd >= 0)
        close(fd);
    return code ? error_set(&r->err, code, "%s", strerror(code)) : 0;
}

int rotate_prepare(struct rotation *r, int64_t time_ns)
{
    struct buf part = BUF(1 << 16);
    r->is_asked = 0;
    r->to = free_name(r->path);
    if (!r->to)
        return 0;
    buf_printf(&part, "%s.part", r->to);
    r->part_path = buf_take(&part);
    if (reserve(r)) {
        forget_copy(r);
        r->since_ns = time_ns + 1; /* the next try is that far away, too */
        r->since_bytes = used_bytes(r);
        return 0;
    }
    if (r->part == 1)
        store_part(r, 0, 0, 1);
    mark_part(r, time_ns);
    r->next_chunk = account_cut(r->account);
    return 1;
}

/* A transaction that reads: what it sees stays as it is. */
static int open_instant(struct rotation *r)
{
    int rc = sqlite3_open_v2(r->path, &r->from, SQLITE_OPEN_READONLY, NULL) ? db_error(r->from, &r->err) : 0;
    return rc ? rc : db_exec(r->from, "BEGIN; SELECT count(*) FROM meta", &r->err);
}

/* Signals are for the collector's own thread. */
static int start(struct rotation *r)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&r->thread, NULL, run, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code ? error_set(&r->err, code, "no thread: %s", strerror(code)) : 0;
}

void rotate_begin(struct rotation *r, int64_t time_ns)
{
    const char *slash = strrchr(r->to, '/');
    r->since_ns = r->end_ns = time_ns + 1;
    r->from = NULL;
    r->rc = open_instant(r);
    r->part++;
    account_anew(r->account);
    store_part(r, r->since_ns, account_started_event(r->account), r->next_chunk);
    store_meta_text(r->store, "rotating", slash ? slash + 1 : r->to);
}

void rotate_copy(struct rotation *r)
{
    r->done = 0;
    r->begin_bytes = r->since_bytes = used_bytes(r);
    r->is_copying = 1;
    if (r->rc == 0)
        r->rc = start(r);
    if (r->rc == 0)
        return;
    r->is_copying = 0;
    sqlite3_close(r->from);
    forget_copy(r);
}

int rotate_settle(struct rotation *r, int waits)
{
    if (!r->is_copying || !(waits || __atomic_load_n(&r->done, __ATOMIC_ACQUIRE)))
        return 0;
    end_copy(r);
    int rc = r->rc;
    if (rc == 0) {
        int64_t before = used_bytes(r);
        account_drop_before(r->account, r->next_chunk);
        rc = rotated_drop(store_db(r->store), &r->err);
        r->since_bytes = r->begin_bytes - (before - used_bytes(r));
    }
    return rc == 0;
}
