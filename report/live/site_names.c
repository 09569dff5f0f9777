#include "site_names.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/io.h"
#include "../../common/map.h"
#include "../query/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SITES_MAX (1u << 24)
#define BYTES_MAX (1u << 30)
#define NICE      5
enum { STRINGS = 4 }; /* of a name */

const char *const site_names_by_texts[SITE_NAMES_BYS] = {
#define LIVE_KEY(id, name) name,
#include "row_keys.def"
};
static const enum row_key keys[SITE_NAMES_BYS] = {ROW_LINE, ROW_FUNCTION, ROW_OP};

/* What the process leaves in a memory of its own: this, of each kind the sites' places, then the names' lines and
 * strings, each with its NUL. */
struct header {
    uint32_t site_end, count[SITE_NAMES_BYS];
    int32_t failed; /* errno: error has it, and nothing follows */
    struct error error;
};

/* --- in the process --- */

struct writer {
    sqlite3 *db;
    struct error *err;
    struct header header;
    struct map places[SITE_NAMES_BYS]; /* of keys (line_id, ...): place in names */
    struct map functions;              /* of lines: the function's key */
    struct buf names[SITE_NAMES_BYS];  /* lines and strings */
    uint32_t *of[SITE_NAMES_BYS];
};

static void add_name(struct writer *w, int by, const struct row *row, const char *base)
{
    struct buf function = BUF(1 << 20), source = BUF(1 << 20);
    uint32_t line = row->line > 0 && row->line < INT32_MAX ? (uint32_t)row->line : 0;
    if (by == SITE_NAMES_BY_OP)
        buf_puts(&source, row->module ? row->module : "");
    else
        row_source_text(row, base, &source);
    if (by == SITE_NAMES_BY_OP)
        buf_puts(&function, row->op ? row->op : "");
    else
        row_function_text(row, &function);
    const char *plain = by == SITE_NAMES_BY_OP ? row->phase : row->plain_name,
               *file = by == SITE_NAMES_BY_OP ? row->module : row->file;
    const char *strings[STRINGS] = {buf_text(&function), plain ? plain : "", file ? file : "", buf_text(&source)};
    buf_add(&w->names[by], &line, sizeof line);
    for (int i = 0; i < STRINGS; i++)
        buf_add(&w->names[by], strings[i], strlen(strings[i]) + 1);
    buf_free(&function);
    buf_free(&source);
}

/* Rows of several devices have one key. */
static int add_names(struct writer *w, int by)
{
    struct rows rows = {0};
    struct rows_query query = {.by = keys[by], .sort = STAT_alloc_count};
    char *base = db_meta_text(w->db, "cwd");
    int rc = rows_load(w->db, &query, &rows, w->err);
    for (int i = 0; i < rows.count && rc == 0; i++) {
        uint32_t next = w->header.count[by];
        if (map_number_or(&w->places[by], (uint64_t)rows.row[i].key_id, 0, next) != next)
            continue;
        add_name(w, by, &rows.row[i], base);
        w->header.count[by]++;
    }
    rows_free(&rows);
    free(base);
    return rc;
}

/* A function without a symbol is known by its line. */
static int read_functions(struct writer *w)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(w->db, "SELECT line_id, coalesce(function_id, -line_id) FROM line", &s, w->err);
    while (rc == 0 && db_next(s, &rc, w->err))
        *map_slot(&w->functions, (uint64_t)sqlite3_column_int64(s, 0), 0) = (uint64_t)sqlite3_column_int64(s, 1);
    sqlite3_finalize(s);
    return rc;
}

static void give(struct writer *w, int by, int64_t site, uint64_t key)
{
    uint32_t place = map_number(&w->places[by], key, 0);
    if (site > 0 && site < w->header.site_end && place != MAP_NONE)
        w->of[by][site] = place;
}

static int give_sites(struct writer *w, const char *sql, int is_op)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(w->db, sql, &s, w->err);
    while (rc == 0 && db_next(s, &rc, w->err)) {
        int64_t site = sqlite3_column_int64(s, 0);
        uint64_t key = (uint64_t)sqlite3_column_int64(s, 1);
        give(w, is_op ? SITE_NAMES_BY_OP : SITE_NAMES_BY_LINE, site, key);
        if (!is_op)
            give(w, SITE_NAMES_BY_FUNCTION, site, map_get(&w->functions, key, 0));
    }
    sqlite3_finalize(s);
    return rc;
}

static int read_all(struct writer *w)
{
    static const char none[sizeof(uint32_t) + STRINGS];
    int64_t last = db_int(w->db, "SELECT max(site_id) FROM site_line", 0);
    if (last < 0 || last >= SITES_MAX)
        return error_set(w->err, EFBIG, "too many sites");
    w->header.site_end = (uint32_t)last + 1;
    int rc = read_functions(w);
    for (int by = 0; by < SITE_NAMES_BYS; by++) {
        w->of[by] = xcalloc(w->header.site_end, sizeof **w->of);
        w->names[by] = (struct buf)BUF(BYTES_MAX);
        buf_add(&w->names[by], none, sizeof none);
        w->header.count[by] = 1;
        rc = rc ? rc : add_names(w, by);
    }
    if (rc == 0)
        rc = give_sites(w, "SELECT site_id, line_id FROM site_line", 0);
    return rc ? rc : give_sites(w, "SELECT site_id, op_id FROM site_op", 1);
}

static int write_all(const struct writer *w, int fd)
{
    int failed = io_write(fd, &w->header, sizeof w->header);
    for (int by = 0; by < SITE_NAMES_BYS && !failed && !w->header.failed; by++) {
        failed = w->names[by].failed || io_write(fd, w->of[by], w->header.site_end * sizeof **w->of) ||
                 io_write(fd, w->names[by].data, w->names[by].length);
        /* numbers stand at multiples of their size */
        static const char zeros[4];
        failed = failed || io_write(fd, zeros, -w->names[by].length & 3);
    }
    return failed;
}

static _Noreturn void run(const char *path, site_names_open *open_recording, int is_quiet, int out)
{
    struct error err = {""};
    struct writer w = {.err = &err};
    sigset_t none;
    sigemptyset(&none);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICE);
    int null = is_quiet ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
    if (null >= 0)
        dup2(null, STDERR_FILENO);
    int rc = open_recording(path, &w.db, &err);
    rc = rc ? rc : read_all(&w);
    w.header.failed = -rc;
    w.header.error = err;
    _exit(write_all(&w, out) ? 1 : 0);
}

/* --- outside --- */

struct naming {
    pid_t pid;
    int pidfd, memory;
};

struct naming *naming_begin(const char *path, site_names_open *open_recording, int is_quiet, struct error *err)
{
    struct naming n = {.memory = memfd_create("memprof-names", MFD_CLOEXEC), .pidfd = -1};
    if (n.memory < 0 || (n.pid = fork()) < 0) {
        error_set(err, errno, "%s: its names cannot be looked up: %s", path, strerror(errno));
        if (n.memory >= 0)
            close(n.memory);
        return NULL;
    }
    if (n.pid == 0)
        run(path, open_recording, is_quiet, n.memory);
    n.pidfd = (int)syscall(SYS_pidfd_open, n.pid, 0);
    struct naming *own = xmalloc(sizeof *own);
    *own = n;
    return own;
}

int naming_fd(const struct naming *n)
{
    return n->pidfd;
}

static void let_go(struct naming *n)
{
    if (n->pidfd >= 0)
        close(n->pidfd);
    close(n->memory);
    free(n);
}

void naming_cancel(struct naming *n)
{
    if (!n)
        return;
    kill(n->pid, SIGKILL);
    while (waitpid(n->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    let_go(n);
}

/* What it read came from a file that may be hostile, so it is looked at as if it did itself. */
static const char *take_names(struct site_names *n, int by, const char *at, const char *end)
{
    n->of[by] = (const uint32_t *)(const void *)at;
    if ((size_t)(end - at) / sizeof **n->of < n->site_end ||
        (size_t)(end - at) / (sizeof(uint32_t) + STRINGS) < n->count[by])
        return NULL;
    at += n->site_end * sizeof **n->of;
    n->names[by] = xcalloc(n->count[by] + 1ul, sizeof *n->names[by]);
    for (uint32_t i = 0; i < n->count[by]; i++) {
        const char *strings[STRINGS];
        if ((size_t)(end - at) < sizeof(uint32_t))
            return NULL;
        memcpy(&n->names[by][i].line, at, sizeof(uint32_t));
        at += sizeof(uint32_t);
        for (int k = 0; k < STRINGS; k++) {
            const char *stop = memchr(at, 0, (size_t)(end - at));
            if (!stop)
                return NULL;
            strings[k] = at;
            at = stop + 1;
        }
        n->names[by][i] = (struct site_name){strings[0], strings[1], strings[2], strings[3], n->names[by][i].line};
    }
    for (uint32_t i = 0; i < n->site_end; i++)
        if (n->of[by][i] >= n->count[by])
            return NULL;
    at += -(at - (const char *)n->bytes) & 3;
    return at <= end ? at : NULL;
}

static int take(int memory, struct site_names *n, struct error *err)
{
    struct stat st;
    struct header h;
    if (fstat(memory, &st) || st.st_size < (off_t)sizeof h)
        return error_set(err, EIO, "what looked up the names was killed");
    n->length = (size_t)st.st_size;
    n->bytes = xmalloc(n->length);
    lseek(memory, 0, SEEK_SET);
    if (io_read(memory, n->bytes, n->length) != n->length)
        return error_set(err, EIO, "what looked up the names was killed");
    memcpy(&h, n->bytes, sizeof h);
    h.error.text[sizeof h.error.text - 1] = 0;
    if (h.failed)
        return error_set(err, h.failed > 0 ? h.failed : EIO, "%s", h.error.text);
    const char *at = (const char *)n->bytes + sizeof h;
    n->site_end = h.site_end;
    for (int by = 0; by < SITE_NAMES_BYS && at; by++) {
        n->count[by] = h.count[by];
        at = take_names(n, by, at, (const char *)n->bytes + n->length);
    }
    return at ? 0 : error_set(err, EIO, "what looked up the names was killed");
}

int naming_end(struct naming *n, struct site_names *names, int64_t *cpu_ns, struct error *err)
{
    struct rusage usage;
    int status = 0, rc;
    *names = (struct site_names){0};
    while ((rc = wait4(n->pid, &status, 0, &usage)) < 0 && errno == EINTR)
        ;
    if (cpu_ns)
        *cpu_ns = rc < 0 ? 0
                         : (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000ll +
                               (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ll;
    rc = take(n->memory, names, err);
    let_go(n);
    if (rc)
        site_names_close(names);
    return rc;
}

void site_names_close(struct site_names *n)
{
    for (int by = 0; by < SITE_NAMES_BYS; by++)
        free(n->names[by]);
    free(n->bytes);
    *n = (struct site_names){0};
}

const struct site_name *site_names_of(const struct site_names *n, enum site_names_by by, uint32_t site)
{
    static const struct site_name unknown = {"", "", "", "", 0};
    return site < n->site_end ? &n->names[by][n->of[by][site]] : &unknown;
}
