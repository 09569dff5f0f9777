#include "log.h"

#include "../../common/array.h"
#include "../../common/buf.h"
#include "../../common/chunk.h"
#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/match.h"
#include "../../common/text.h"
#include "../../common/units.h"
#include "../../profiler/outside/outside.h"
#include "../print/record.h"
#include "../query/device.h"
#include "glance.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define POLL_NS      200000000 /* as often as the collector commits */
#define LOOK_CHUNKS  64        /* of events that are read at once, */
#define LOOK_LINES   262144    /* or lines, before they are printed */
#define NAMING_SHARE 5         /* looking up the names may take this part of the time */
#define BEGIN_WAITS  50        /* as long as a recording may take to begin */
enum { IDS = 256, NOT_ASKED = 0, IS_WANTED, IS_NOT };

struct log_thread {
    int64_t tid, pid;
};

struct log {
    const struct log_options *options;
    struct error *err;
    /* of the recording, which only grow */
    char *devices[IDS];
    uint8_t device_wanted[IDS]; /* NOT_ASKED: unknown yet, too */
    struct log_thread *threads; /* by thread_id */
    size_t thread_room;
    int64_t thread_last; /* the highest id that was read */
    int64_t *pids;       /* by process_id */
    size_t pid_room;
    int has_begun;
    /* where it is */
    int64_t chunk_id, next_event;
    int64_t damaged_last, damaged; /* chunk; how many */
    struct chunk_codec *codec;
    /* names */
    struct site_names names;
    uint8_t *is_wanted; /* by place in the names of lines */
    int64_t naming_at_ns;
    struct line *waiting; /* what is to be printed, once it has names */
    size_t waiting_count, waiting_room;
    uint32_t waiting_site; /* the highest */
};

struct line {
    struct chunk_event event;
    int64_t number;
};

static const char *const op_texts[CHUNK_OP_COUNT] = {
#define X(name) [CHUNK_##name] = #name,
#include "../../common/chunk_ops.def"
#undef X
};

/* As v_event has it: a realloc is a free and a realloc. */
static const char *op_text(unsigned op)
{
    return op == CHUNK_realloc_free    ? "free"
           : op == CHUNK_realloc_alloc ? "realloc"
           : op < CHUNK_OP_COUNT       ? op_texts[op]
                                       : "?";
}

/* --- printing --- */

static void add_text(struct buf *out, const struct line *line, const struct log *l, const struct site_name *n)
{
    const struct chunk_event *e = &line->event;
    const struct log_thread *t = &l->threads[e->thread_id];
    struct buf text = BUF(1 << 20);
    char bytes[UNITS_TEXT];
    buf_printf(&text, "%11.6f s  %-14s %-7s %-8s %11s  tid %-7lld %s", (double)e->time_ns / 1e9, op_text(e->op),
               l->devices[e->device] ? l->devices[e->device] : "?", kind_name(e->kind),
               units_bytes(bytes, (int64_t)e->size_bytes), (long long)t->tid, *n->function ? n->function : "??");
    if (*n->source)
        buf_printf(&text, "  %s", n->source);
    text_clean(out, buf_text(&text)); /* never cut: what does not fit is on the next row */
    buf_free(&text);
}

static void add_json(struct buf *out, const struct line *line, const struct log *l, const struct site_name *n)
{
    const struct chunk_event *e = &line->event;
    const struct log_thread *t = &l->threads[e->thread_id];
    buf_printf(out, "{\"time_ns\": %lld, \"event_number\": %lld, \"op\": \"%s\", \"device\": ", (long long)e->time_ns,
               (long long)line->number, op_text(e->op));
    record_json_string(out, l->devices[e->device]);
    buf_printf(out,
               ", \"kind\": \"%s\", \"address\": %lld, \"size_bytes\": %lld, \"pid\": %lld, \"thread_id\": %u, "
               "\"tid\": %lld, \"site_id\": %u, \"function\": ",
               kind_name(e->kind), (long long)e->address, (long long)e->size_bytes,
               (long long)(e->process_id < l->pid_room ? l->pids[e->process_id] : 0), e->thread_id, (long long)t->tid,
               e->site_id);
    record_json_string(out, *n->function ? n->function : NULL);
    buf_puts(out, ", \"file\": ");
    record_json_string(out, *n->file ? n->file : NULL);
    if (n->line)
        buf_printf(out, ", \"line\": %u}", n->line);
    else
        buf_puts(out, ", \"line\": null}");
}

static int is_wanted_function(struct log *l, uint32_t site)
{
    if (!l->options->function)
        return 1;
    if (site >= l->names.site_end)
        return 0;
    uint32_t place = l->names.of[SITE_NAMES_BY_LINE][site];
    const struct site_name *n = &l->names.names[SITE_NAMES_BY_LINE][place];
    uint8_t *known = &l->is_wanted[place];
    if (*known == NOT_ASKED)
        *known = *n->function && match_function(l->options->function, n->function, n->plain) ? IS_WANTED : IS_NOT;
    return *known == IS_WANTED;
}

static int print_waiting(struct log *l)
{
    struct buf text = BUF(4 << 20);
    FILE *out = l->options->out.file;
    for (size_t i = 0; i < l->waiting_count; i++) {
        const struct line *line = &l->waiting[i];
        if (!is_wanted_function(l, line->event.site_id))
            continue;
        const struct site_name *n = site_names_of(&l->names, SITE_NAMES_BY_LINE, line->event.site_id);
        buf_reset(&text);
        if (l->options->out.format == REPORT_JSON)
            add_json(&text, line, l, n);
        else
            add_text(&text, line, l, n);
        fprintf(out, "%s\n", buf_text(&text));
    }
    buf_free(&text);
    l->waiting_count = 0;
    l->waiting_site = 0;
    return fflush(out) || ferror(out) ? error_set(l->err, EIO, "standard output: %s", strerror(errno)) : 0;
}

/* --- names --- */

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_until(int64_t time_ns)
{
    struct timespec t = {time_ns / 1000000000, time_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

/* What is printed is printed once, so it waits for its names. */
static int name_waiting(struct log *l)
{
    struct site_names names;
    int64_t cpu_ns = 0;
    if (l->waiting_site < l->names.site_end || !l->waiting_count)
        return 0;
    sleep_until(l->naming_at_ns);
    struct naming *n = naming_begin(l->options->file, l->options->open, 0, l->err);
    int rc = n ? naming_end(n, &names, &cpu_ns, l->err) : -EAGAIN;
    l->naming_at_ns = now_ns() + cpu_ns * NAMING_SHARE;
    if (rc)
        return rc;
    site_names_close(&l->names);
    free(l->is_wanted);
    l->names = names;
    l->is_wanted = xcalloc(names.count[SITE_NAMES_BY_LINE] + 1ul, 1);
    return 0;
}

/* --- reading --- */

static int read_devices(struct log *l, sqlite3 *db)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, "SELECT device_id, name FROM main.device WHERE device_id BETWEEN 0 AND 255", &s, l->err);
    while (rc == 0 && db_next(s, &rc, l->err)) {
        int id = sqlite3_column_int(s, 0);
        if (l->devices[id])
            continue;
        l->devices[id] = xstrdup(db_text(s, 1));
        l->device_wanted[id] = device_is(l->devices[id], l->options->device) ? IS_WANTED : IS_NOT;
    }
    sqlite3_finalize(s);
    return rc;
}

static int read_pids(struct log *l, sqlite3 *db)
{
    sqlite3_stmt *s = NULL;
    int rc =
        db_prepare(db, "SELECT process_id, pid FROM main.process WHERE process_id BETWEEN 0 AND 65535", &s, l->err);
    while (rc == 0 && db_next(s, &rc, l->err)) {
        size_t id = (size_t)sqlite3_column_int64(s, 0);
        ARRAY_ROOM_ZERO(l->pids, id + 1, l->pid_room);
        l->pids[id] = sqlite3_column_int64(s, 1);
    }
    sqlite3_finalize(s);
    return rc;
}

/* Those that are new; ids of a file that no collector wrote are left out. */
static int read_threads(struct log *l, sqlite3 *db)
{
    static const char sql[] = "SELECT t.thread_id, t.tid, p.pid FROM main.thread t LEFT JOIN main.process p "
                              "USING(process_id) WHERE t.thread_id > ?1 AND t.thread_id < 16777216";
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, sql, &s, l->err);
    if (rc == 0)
        sqlite3_bind_int64(s, 1, l->thread_last);
    while (rc == 0 && db_next(s, &rc, l->err)) {
        int64_t id = sqlite3_column_int64(s, 0);
        ARRAY_ROOM_ZERO(l->threads, (size_t)id + 1, l->thread_room);
        l->threads[id] = (struct log_thread){sqlite3_column_int64(s, 1), sqlite3_column_int64(s, 2)};
        l->thread_last = id > l->thread_last ? id : l->thread_last;
    }
    sqlite3_finalize(s);
    return rc;
}

static int is_wanted(const struct log *l, const struct chunk_event *e)
{
    const struct log_options *o = l->options;
    return l->device_wanted[e->device] != IS_NOT && (o->kind < 0 || e->kind == o->kind) &&
           (int64_t)e->size_bytes >= o->least_bytes &&
           (!o->pid || (e->process_id < l->pid_room && l->pids[e->process_id] == o->pid));
}

static void take_events(struct log *l, const struct chunk_event *events, long count, int64_t first)
{
    long i = l->next_event > first ? (long)(l->next_event - first < count ? l->next_event - first : count) : 0;
    for (; i < count; i++) {
        const struct chunk_event *e = &events[i];
        if (!is_wanted(l, e))
            continue;
        *ARRAY_ADD(l->waiting, l->waiting_count, l->waiting_room) = (struct line){*e, first + i};
        ARRAY_ROOM_ZERO(l->threads, e->thread_id < 16777216 ? e->thread_id + 1ul : 1, l->thread_room);
        if (e->thread_id >= l->thread_room)
            l->waiting[l->waiting_count - 1].event.thread_id = 0;
        if (e->site_id > l->waiting_site)
            l->waiting_site = e->site_id;
    }
    if (first + count > l->next_event)
        l->next_event = first + count;
}

static void count_damaged(struct log *l, int64_t chunk_id)
{
    l->damaged += chunk_id > l->damaged_last;
    l->damaged_last = chunk_id > l->damaged_last ? chunk_id : l->damaged_last;
}

/* The next chunk from the one on that was read last, which may have got more. 1; 0: there is none, or -errno. */
static int read_chunk(struct log *l, sqlite3_stmt *s)
{
    const struct chunk_event *events;
    int rc = 0;
    if (!db_next(s, &rc, l->err))
        return rc;
    const void *data = sqlite3_column_blob(s, 2);
    long n = data ? chunk_decode_events(l->codec, data, (size_t)sqlite3_column_bytes(s, 2), &events) : -EBADMSG;
    l->chunk_id = sqlite3_column_int64(s, 0);
    if (n == -ENOMEM)
        return error_set(l->err, ENOMEM, "out of memory");
    if (n < 0)
        count_damaged(l, l->chunk_id);
    else
        take_events(l, events, n, sqlite3_column_int64(s, 1));
    return 1;
}

/* What is new, as far as one look goes. *has_more: there is more. */
static int read_new(struct log *l, sqlite3 *db, int *has_more)
{
    static const char sql[] =
        "SELECT chunk_id, first_event, data FROM main.event_chunk WHERE chunk_id >= ? ORDER BY chunk_id";
    sqlite3_stmt *s = NULL;
    int rc = read_devices(l, db), more = 1;
    rc = rc ? rc : read_pids(l, db);
    rc = rc ? rc : read_threads(l, db);
    rc = rc ? rc : db_prepare(db, sql, &s, l->err);
    if (rc == 0)
        sqlite3_bind_int64(s, 1, l->chunk_id);
    for (int chunks = 0; rc == 0 && more > 0 && chunks < LOOK_CHUNKS && l->waiting_count < LOOK_LINES; chunks++) {
        more = read_chunk(l, s);
        rc = more < 0 ? more : 0;
    }
    *has_more = more > 0;
    sqlite3_finalize(s);
    return rc;
}

/* *is_over: all events are in what was read. The file is closed before anybody is waited for. */
static int look(struct log *l, int is_first, int *is_over)
{
    sqlite3 *db = NULL;
    int rc = glance_open(l->options->file, &db, l->err), has_more = 0;
    rc = rc ? rc : db_exec(db, "BEGIN", l->err);
    if (rc == 0) {
        char *state = db_meta_text(db, "state"), *kept = db_meta_text(db, "events_kept");
        l->has_begun = state != NULL; /* else its first commit is to come */
        *is_over = state && strcmp(state, "recording") != 0;
        if (kept && !strcmp(kept, "none"))
            rc = error_set(
                l->err, ENODATA,
                "%s: keeps no events, as all made with --aggregate or --sample, by merge, or of another tool's "
                "sums; "
                "'memprof top' shows what it holds",
                l->options->file);
        else if (is_first && *is_over && l->options->device && device_count(db, l->options->device) == 0)
            rc = error_set(l->err, ENODEV, "%s: nothing was allocated on a device '%s'", l->options->file,
                           l->options->device);
        free(state);
        free(kept);
    }
    rc = rc ? rc : read_new(l, db, &has_more);
    sqlite3_close(db);
    *is_over &= !has_more;
    rc = rc ? rc : name_waiting(l);
    rc = rc ? rc : print_waiting(l);
    return rc ? rc : has_more;
}

/* All that there is now. 0, or -errno. */
static int look_on(struct log *l, int is_first, int *is_over)
{
    int rc = look(l, is_first, is_over);
    while (rc > 0)
        rc = look(l, 0, is_over);
    return rc;
}

/* --- to the end --- */

static int follow(struct log *l)
{
    int is_over = 0, rc = look_on(l, 1, &is_over), writer = -1, is_last = 0;
    for (int waits = 0; rc == 0 && !is_over && !is_last; waits++) {
        if (writer < 0)
            writer = outside_writer(l->options->file);
        struct pollfd fd = {.fd = writer, .events = POLLIN};
        int has_ended = poll(&fd, 1, POLL_NS / 1000000) > 0;
        /* what the collector committed last is in the file then */
        is_last = has_ended || (writer < 0 && (l->has_begun || waits > BEGIN_WAITS));
        rc = look_on(l, 0, &is_over);
    }
    if (writer >= 0)
        close(writer);
    return rc;
}

int log_run(const struct log_options *o, int64_t *damaged, struct error *err)
{
    struct log l = {.options = o, .err = err, .codec = chunk_codec_open()};
    int is_over = 0;
    ARRAY_ROOM_ZERO(l.threads, 1, l.thread_room);
    int rc = !l.codec ? error_set(err, ENOMEM, "out of memory") : o->follows ? follow(&l) : look_on(&l, 1, &is_over);
    *damaged = l.damaged;
    site_names_close(&l.names);
    chunk_codec_close(l.codec);
    for (int i = 0; i < IDS; i++)
        free(l.devices[i]);
    free(l.threads);
    free(l.pids);
    free(l.waiting);
    free(l.is_wanted);
    return rc;
}
