#include "info.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/units.h"
#include "../../common/wrap.h"
#include "../findings/advice.h"
#include "../findings/notes.h"
#include "../print/listing.h"
#include "../query/estimate.h"
#include "../query/merged.h"
#include "../query/program_name.h"
#include "../query/rotated_part.h"
#include "../query/threads.h"
#include "../query/unhooked.h"
#include "layers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PROCESSES_SHOWN = 200, THREADS_SHOWN = 50, MODULES_SHOWN = 40, RECORDINGS_SHOWN = 100, DEPTH_MAX = 32 };

struct process {
    int64_t process_id, parent_id, pid, start_ns, end_ns, exit_status, exit_signal, threads, peak_rss_bytes;
    int has_end, is_sampled; /* the peak RSS */
    char *start_kind, *command, *end_kind, *title, *not_recorded;
    int printed;
};

struct info {
    sqlite3 *db;
    const struct report_out *out;
    const char *path;
    int64_t file_bytes, log_bytes; /* log: SQLite's write-ahead log, of what is still being written */
    struct process *process;
    int process_count, process_capacity;
};

/* Columns of table process that older recordings lack. */
#define NEWER_COLUMNS "peak_rss_bytes, peak_rss_sampled, title, not_recorded"
#define NO_COLUMNS    "NULL AS peak_rss_bytes, NULL AS peak_rss_sampled, NULL AS title, NULL AS not_recorded"

static int prepare_processes(struct info *f, const char *columns, const char *order, sqlite3_stmt **s,
                             struct error *err)
{
    struct buf sql = BUF(4096);
    int is_new = db_int(f->db, "SELECT count(*) FROM (SELECT " NEWER_COLUMNS " FROM process LIMIT 1)", -1) >= 0;
    buf_printf(&sql,
               "SELECT %s, %s FROM process p LEFT JOIN (SELECT process_id, count(*) AS threads FROM thread GROUP BY "
               "process_id) USING(process_id) %s",
               columns, is_new ? NEWER_COLUMNS : NO_COLUMNS, order);
    int rc = db_prepare(f->db, sql.data, s, err);
    buf_free(&sql);
    return rc;
}

static int load_processes(struct info *f, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = prepare_processes(f,
                               "process_id, parent_id, pid, start_ns, end_ns, exit_status, exit_signal, start_kind, "
                               "command_line, end_kind, coalesce(threads, 0)",
                               "ORDER BY start_ns, process_id LIMIT 100000", &s, err);
    if (rc)
        return rc;
    while (db_next(s, &rc, err)) {
        *ARRAY_ADD(f->process, f->process_count, f->process_capacity) =
            (struct process){.process_id = sqlite3_column_int64(s, 0),
                             .parent_id = sqlite3_column_int64(s, 1),
                             .pid = sqlite3_column_int64(s, 2),
                             .start_ns = sqlite3_column_int64(s, 3),
                             .end_ns = sqlite3_column_int64(s, 4),
                             .has_end = sqlite3_column_type(s, 4) != SQLITE_NULL,
                             .exit_status = sqlite3_column_int64(s, 5),
                             .exit_signal = sqlite3_column_int64(s, 6),
                             .start_kind = xstrdup(db_text(s, 7)),
                             .command = xstrdup(db_text(s, 8)),
                             .end_kind = xstrdup(db_text(s, 9)),
                             .threads = sqlite3_column_int64(s, 10),
                             .peak_rss_bytes = sqlite3_column_int64(s, 11),
                             .is_sampled = sqlite3_column_int(s, 12),
                             .title = xstrdup(db_text(s, 13)),
                             .not_recorded = xstrdup(db_text(s, 14))};
    }
    sqlite3_finalize(s);
    return rc;
}

static void end_text(const struct process *p, struct buf *out)
{
    if (strcmp(p->end_kind, "exit") == 0)
        buf_printf(out, "exit %lld", (long long)p->exit_status);
    else if (strcmp(p->end_kind, "signal") == 0) {
        const char *name = p->exit_signal > 0 && p->exit_signal < 65 ? sigabbrev_np((int)p->exit_signal) : NULL;
        buf_printf(out, name ? "SIG%s" : "signal ", name);
        if (!name)
            buf_printf(out, "%lld", (long long)p->exit_signal);
    } else if (strcmp(p->end_kind, "exec") == 0)
        buf_puts(out, "exec");
    else
        buf_puts(out, p->has_end ? "ended" : "not seen to end");
}

static void peak_rss(const struct process *p, struct listing *l)
{
    char text[UNITS_TEXT];
    struct buf peak = BUF(256);
    if (p->peak_rss_bytes > 0)
        buf_printf(&peak, "%s%s", p->is_sampled ? ">= " : "", units_bytes(text, p->peak_rss_bytes));
    listing_text(l, peak.data);
    buf_free(&peak);
}

static void add_process(struct info *f, struct listing *l, struct process *p, int depth)
{
    struct buf end = BUF(1 << 16), command = BUF(1 << 16);
    p->printed = 1;
    end_text(p, &end);
    buf_printf(&command, "%*s", 2 * depth, "");
    if (*p->not_recorded)
        buf_printf(&command, "not recorded (%.*s): ", (int)strcspn(p->not_recorded, ":;"), p->not_recorded);
    program_process(&command, p->title, p->command);
    listing_int(l, p->pid);
    listing_text(l, p->start_kind);
    listing_int(l, p->start_ns);
    listing_int_if(l, p->has_end && p->end_ns >= p->start_ns && p->start_ns >= 0, p->end_ns - p->start_ns);
    listing_int(l, p->threads);
    peak_rss(p, l);
    listing_text(l, end.data);
    listing_text(l, buf_text(&command));
    buf_free(&end);
    buf_free(&command);
    for (int i = 0; i < f->process_count && depth < DEPTH_MAX && listing_rows(l) < PROCESSES_SHOWN; i++)
        if (f->process[i].parent_id == p->process_id && !f->process[i].printed)
            add_process(f, l, &f->process[i], depth + 1);
}

static void print_processes(struct info *f)
{
    static const struct column columns[] = {
        COLUMN(NULL, "pid", NUMBER),    COLUMN(NULL, "start", TEXT),
        COLUMN(NULL, "at", NS),         COLUMN(NULL, "lasted", NS, .none = "-"),
        COLUMN(NULL, "threads", COUNT), COLUMN(NULL, "peak RSS", BYTES, .none = "-"),
        COLUMN(NULL, "end", TEXT),      COLUMN(NULL, "command", TEXT, .cut = TEXT_CUT_RIGHT),
    };
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), f->out, NULL);
    char count[UNITS_TEXT];
    struct buf title = BUF(256);
    /* roots first; then what a damaged tree hangs nowhere */
    for (int orphan = 0; orphan < 2; orphan++)
        for (int i = 0; i < f->process_count && listing_rows(l) < PROCESSES_SHOWN; i++)
            if (!f->process[i].printed && (orphan || f->process[i].parent_id == 0))
                add_process(f, l, &f->process[i], 0);
    int64_t pids = db_int(f->db, "SELECT count(DISTINCT first_id) FROM v_image", 0);
    buf_printf(&title, "Processes: %s", units_count(count, pids));
    if (pids < f->process_count) /* an exec makes another image of one process */
        buf_printf(&title, " in %s images", units_count(count, f->process_count));
    if (listing_rows(l) < f->process_count)
        buf_printf(&title, " (%d shown)", listing_rows(l));
    table_heading(f->out, title.data, 0, 0);
    listing_print(l);
    listing_close(l);
    buf_free(&title);
    if (db_int(f->db, "SELECT EXISTS (SELECT 1 FROM v_fork)", 0))
        table_prose(f->out, TABLE_DIM,
                    "(the peak RSS of a fork has what it shares with its parent; 'memprof report --by process --sort "
                    "resident' tells it apart)");
}

static void fact(struct listing *l, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    listing_text(l, key);
    listing_text(l, value);
}

static void fact_meta(struct info *f, struct listing *l, const char *key, const char *meta)
{
    char *value = db_meta_text(f->db, meta);
    fact(l, key, value);
    free(value);
}

static void little_fact(void *context, enum note_kind kind, const char *note)
{
    if (kind == NOTE_LITTLE)
        fact(context, "nearly whole", note);
}

static void unhooked_fact(struct info *f, struct listing *l)
{
    struct buf text = BUF(1 << 16);
    unhooked_explain(f->db, "", &text);
    if (text.length)
        fact(l, "not seen", buf_text(&text));
    buf_free(&text);
}

static void events_fact(struct info *f, struct listing *l)
{
    int64_t events = db_meta_int(f->db, "event_count", 0);
    int64_t kept = db_int(f->db, "SELECT CAST(total(event_count) AS INTEGER) FROM event_chunk", 0);
    int64_t bytes = db_int(
        f->db, "SELECT CAST(total(length(data) + coalesce(length(site_delta), 0)) AS INTEGER) FROM event_chunk", 0);
    char text[4][UNITS_TEXT];
    struct buf line = BUF(1024);
    buf_printf(&line, "%s recorded, ", units_count(text[0], events));
    char *which = db_meta_text(f->db, "events_kept");
    if (which && strcmp(which, "all") == 0)
        buf_puts(&line, "all kept");
    else
        buf_printf(&line, "%s kept", kept ? units_count(text[1], kept) : "none");
    if (kept > 0)
        buf_printf(&line, ": %s, %.2f bytes an event (%.2f with the whole file)", units_bytes(text[2], bytes),
                   (double)bytes / (double)kept, (double)f->file_bytes / (double)kept);
    fact(l, "events", line.data);
    free(which);
    buf_free(&line);
}

/* Which of the heap's blocks are recorded. */
static void thinned_facts(struct info *f, struct listing *l)
{
    char text[3][UNITS_TEXT];
    int64_t sample_bytes = estimate_mean_bytes(f->db), least_bytes = db_meta_int(f->db, "least_bytes", 0);
    struct buf line = BUF(1024);
    if (sample_bytes) {
        buf_printf(&line,
                   "one block of the heap for each %s allocated, in the mean (--sample-seed %lld): its numbers "
                   "are estimates",
                   units_bytes(text[0], sample_bytes), (long long)db_meta_int(f->db, "sample_seed", 0));
        fact(l, "sampled", buf_text(&line));
        buf_reset(&line);
    }
    if (least_bytes > 0) {
        buf_printf(&line, "%s blocks, %s, as they are smaller than %s",
                   units_count(text[0], db_int(f->db, "SELECT CAST(total(alloc_count) AS INTEGER) FROM left_out", 0)),
                   units_bytes(text[1], db_int(f->db, "SELECT CAST(total(alloc_bytes) AS INTEGER) FROM left_out", 0)),
                   units_bytes(text[2], least_bytes));
        fact(l, "left out", buf_text(&line));
    }
    buf_free(&line);
}

static void arenas_fact(struct info *f, struct listing *l)
{
    char text[UNITS_TEXT];
    struct buf line = BUF(1024);
    int64_t peak = advice_arenas_peak(f->db);
    if (peak > 0) {
        buf_printf(&line, "%s at most: small objects are inside (--python-allocators records each)",
                   units_bytes(text, peak));
        fact(l, "Python's arenas", line.data);
    }
    buf_free(&line);
}

static void own_facts(struct info *f, struct listing *l)
{
    char text[3][UNITS_TEXT];
    struct buf line = BUF(1024);
    int64_t cpu_ns = db_meta_int(f->db, "collector_cpu_ns", -1),
            rss = db_meta_int(f->db, "collector_peak_rss_bytes", -1);
    int64_t symbolize_ns = db_meta_int(f->db, "symbolize_ns", -1);
    if (cpu_ns >= 0)
        buf_printf(&line, "%s of CPU time", units_ns(text[0], cpu_ns));
    if (symbolize_ns >= 0)
        buf_printf(&line, "%s%s symbolizing", line.length ? ", " : "", units_ns(text[1], symbolize_ns));
    if (rss >= 0)
        buf_printf(&line, "%sat most %s of memory", line.length ? ", " : "", units_bytes(text[2], rss));
    fact(l, "memprof itself", line.data);
    buf_free(&line);
}

static void file_size(const struct info *f, struct listing *l)
{
    char text[2][UNITS_TEXT];
    struct buf line = BUF(1 << 10);
    buf_puts(&line, units_bytes(text[0], f->file_bytes));
    if (f->log_bytes)
        buf_printf(&line, ", and %s in its write-ahead log", units_bytes(text[1], f->log_bytes));
    fact(l, "file size", line.data);
    buf_free(&line);
}

#define SETTINGS_SQL "SELECT substr(key, 7) AS name, value FROM meta WHERE key GLOB 'torch.?*' ORDER BY key"

/* What PyTorch's allocator was told to do, of an imported snapshot. */
static void settings_fact(struct info *f, struct listing *l)
{
    sqlite3_stmt *s = NULL;
    struct buf line = BUF(1 << 16);
    if (db_prepare(f->db, SETTINGS_SQL, &s, NULL) == 0)
        while (sqlite3_step(s) == SQLITE_ROW)
            buf_printf(&line, "%s%s %s", line.length ? ", " : "", db_text(s, 0), db_text(s, 1));
    sqlite3_finalize(s);
    if (line.length)
        fact(l, "allocator settings", line.data);
    buf_free(&line);
}

/* "2, from 203 ms (2026-11-24 22:05:57) to 633 ms (2026-11-24 22:05:58)": of a rotated recording, whose last one says
 * so. */
static void part_fact(const struct info *f, struct listing *l)
{
    char time[2][UNITS_TEXT], date[2][32];
    struct buf text = BUF(4096);
    int64_t start_ns = db_meta_int(f->db, "start_unix_ns", 0);
    const struct rotated_part p = rotated_part(f->db);
    const int64_t at[] = {p.start_ns, p.end_ns};
    if (!p.number)
        return;
    buf_printf(&text, "%lld%s", (long long)p.number, p.is_running ? ", the last one so far" : "");
    for (int i = 0; i < 2; i++)
        buf_printf(&text, "%s %s (%s)", i ? " to" : ", from", units_ns(time[i], at[i]),
                   notes_date(date[i], wrap_add(start_ns, at[i])));
    fact(l, "part", buf_text(&text));
    buf_free(&text);
}

static void print_facts(struct info *f)
{
    static const struct column columns[] = {
        COLUMN(NULL, "", TEXT),
        COLUMN(NULL, "", TEXT, .cut = TEXT_CUT_RIGHT),
    };
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), f->out, NULL);
    char text[UNITS_TEXT], date[32];
    char *command = db_meta_text(f->db, "command");
    struct buf program = BUF(1u << 16);
    if (command && program_name(&program, command))
        fact(l, "program", program.data);
    fact(l, "command", command);
    buf_free(&program);
    free(command);
    fact_meta(f, l, "directory", "cwd");
    fact_meta(f, l, "host", "host");
    fact(l, "began", notes_date(date, db_meta_int(f->db, "start_unix_ns", 0)));
    fact(l, "lasted", units_ns(text, db_meta_int(f->db, "duration_ns", 0)));
    part_fact(f, l);
    fact_meta(f, l, "options", "options");
    fact_meta(f, l, "written by", "writer_version");
    char *state = notes_state(f->db);
    fact(l, "state", state);
    free(state);
    notes_each(f->db, little_fact, l);
    unhooked_fact(f, l);
    fact_meta(f, l, "clock", "clock");
    file_size(f, l);
    events_fact(f, l);
    thinned_facts(f, l);
    arenas_fact(f, l);
    settings_fact(f, l);
    own_facts(f, l);
    listing_print(l);
    listing_close(l);
}

/* What a merged file was made of; programs get all of its columns. */
#define RECORDINGS_SQL                                                                                                 \
    "SELECT r.rank, r.path, r.start_unix_ns, r.start_ns, r.duration_ns, r.event_count, r.host, "                       \
    "CAST(total(t.alloc_count) AS INTEGER) AS alloc_count, CAST(total(t.alloc_bytes) AS INTEGER) AS alloc_bytes, "     \
    "max(t.peak_active_bytes) AS peak_active_bytes, max(t.peak_reserved_bytes) AS peak_reserved_bytes, "               \
    "CAST(total(t.end_active_bytes) AS INTEGER) AS end_active_bytes, r.partial, r.command FROM recording r "           \
    "LEFT JOIN recording_total t USING(recording_id) GROUP BY r.recording_id"

static int print_recordings(struct info *f, struct error *err)
{
    static const struct column columns[] = {
        COLUMN(NULL, "rank", NUMBER, .flags = COLUMN_OPTIONAL, .none = "-"),
        COLUMN(NULL, "began at", NS),
        COLUMN(NULL, "lasted", NS),
        COLUMN(NULL, "events", COUNT),
        COLUMN(NULL, "allocs", COUNT),
        COLUMN(NULL, "peak", BYTES, .none = "-"),
        COLUMN(NULL, "live\nat end", BYTES),
        COLUMN(NULL, "host", TEXT, .none = "?"),
        COLUMN(NULL, "file", TEXT, .cut = TEXT_CUT_LEFT),
        COLUMN(NULL, "not whole", TEXT, .flags = COLUMN_OPTIONAL, .cut = TEXT_CUT_RIGHT),
    };
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), f->out, NULL);
    int64_t all = 0;
    int rc = listing_query(l, f->db,
                           "SELECT rank, start_ns, duration_ns, event_count, alloc_count, peak_active_bytes, "
                           "end_active_bytes, host, path, partial, count(*) OVER () FROM (" RECORDINGS_SQL ") LIMIT ?2",
                           NULL, RECORDINGS_SHOWN, &all, err);
    listing_print_under(l, "Recordings that it was made of (peak: of the device that held most)", all);
    listing_close(l);
    return rc;
}

/* Counters of all processes summed; those of nothing are left out. Their texts are made for bare numbers; a time is
 * shown with its unit. */
static int print_counters(struct info *f, struct error *err)
{
    static const struct column columns[] = {
        COLUMN(NULL, "", COUNT),
        COLUMN(NULL, "", TEXT, .cut = TEXT_CUT_RIGHT),
        COLUMN(NULL, "", TEXT),
    };
    static const char unit[] = "nanoseconds ";
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(
        f->db,
        "SELECT total(value), max(text), name FROM counter GROUP BY name HAVING total(value) != 0 ORDER BY min(rowid)",
        &s, err);
    if (rc)
        return rc;
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), f->out, NULL);
    while (db_next(s, &rc, err)) {
        const char *text = db_text(s, 1), *name = db_text(s, 2);
        size_t length = strlen(name);
        char time[UNITS_TEXT];
        struct buf line = BUF(1 << 16);
        if (strncmp(text, unit, sizeof unit - 1) == 0)
            buf_printf(&line, "time %s", text + sizeof unit - 1);
        if (length > 3 && strcmp(name + length - 3, "_ns") == 0)
            listing_text(l, units_ns(time, sqlite3_column_int64(s, 0)));
        else
            listing_int(l, sqlite3_column_int64(s, 0));
        listing_text(l, line.data ? line.data : text);
        listing_text(l, name);
        buf_free(&line);
    }
    table_heading(f->out, "Lost, not tracked, waited for", 0, 0);
    if (listing_rows(l))
        listing_print(l);
    else
        table_line(f->out, TABLE_PLAIN, "Nothing.");
    listing_close(l);
    sqlite3_finalize(s);
    return rc;
}

static int print_threads(struct info *f, struct error *err)
{
    static const struct column columns[] = {
        COLUMN(NULL, "pid", NUMBER),
        COLUMN(NULL, "tid", NUMBER),
        COLUMN(NULL, "start", NS),
        COLUMN(NULL, "end", NS, .none = "-"),
        COLUMN(NULL, "allocs", COUNT),
        COLUMN(NULL, "allocated", BYTES),
        COLUMN(NULL, "thread", TEXT, .cut = TEXT_CUT_RIGHT),
    };
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), f->out, NULL);
    struct estimates *estimates = estimates_open(f->db);
    sqlite3_stmt *s = NULL;
    int64_t all = 0;
    int rc = db_prepare(
        f->db,
        "SELECT coalesce(p.pid, 0), t.tid, t.start_ns, t.end_ns, coalesce(a.alloc_count, 0), coalesce(a.alloc_bytes, 0)"
        ", t.name, count(*) OVER () FROM thread t"
        " LEFT JOIN process p USING(process_id) LEFT JOIN (SELECT key_id, sum(alloc_count) AS alloc_count,"
        " sum(alloc_bytes) AS alloc_bytes FROM account WHERE scope = 'thread' AND inclusive = 0 AND kind = 'all'"
        " GROUP BY key_id) a ON a.key_id = t.thread_id ORDER BY a.alloc_bytes DESC, t.thread_id LIMIT ?1",
        &s, err);
    if (rc == 0)
        sqlite3_bind_int(s, 1, THREADS_SHOWN);
    while (db_next(s, &rc, err)) {
        const int64_t bytes = sqlite3_column_int64(s, 5);
        const double error = estimates_bound(estimates, "host", bytes);
        listing_columns(l, s, 0, 4);
        listing_estimate(l, 1, sqlite3_column_int64(s, 4), -(error > 0));
        listing_estimate(l, 1, bytes, error);
        listing_columns(l, s, 6, 1);
        all = sqlite3_column_int64(s, 7);
    }
    sqlite3_finalize(s);
    estimates_close(estimates);
    if (rc == 0) {
        char title[128], number[UNITS_TEXT], images[UNITS_TEXT];
        int64_t seen = db_int(f->db, THREADS_SEEN, all);
        snprintf(title, sizeof title, "Threads: %s%s%s%s%s", units_count(number, seen), seen < all ? " in " : "",
                 seen < all ? units_count(images, all) : "", seen < all ? " images" : "",
                 all > THREADS_SHOWN ? " (those that allocated most)" : "");
        table_heading(f->out, title, 0, 0);
        listing_print(l);
    }
    listing_close(l);
    return rc;
}

static int print_modules(struct info *f, struct error *err)
{
    static const struct column columns[] = {
        COLUMN(NULL, "addresses", COUNT),
        COLUMN(NULL, "module", TEXT, .cut = TEXT_CUT_LEFT),
        COLUMN(NULL, "symbols", TEXT, .cut = TEXT_CUT_RIGHT),
    };
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), f->out, NULL);
    int64_t all = 0;
    int rc = listing_query(
        l, f->db,
        /* counted once: there may be hundreds of modules */
        "WITH counts AS MATERIALIZED (SELECT module_id, count(*) AS addresses FROM address GROUP BY module_id) "
        "SELECT addresses, path, CASE symbols WHEN 'symtab' THEN 'names only: no line information'"
        " ELSE coalesce(nullif(symbols, ''), 'not looked for yet') END, count(*) OVER () FROM (SELECT m.path,"
        " max(m.symbols) AS symbols, c.addresses FROM module m LEFT JOIN counts c USING(module_id)"
        " WHERE m.symbols IS NULL OR m.symbols LIKE 'none%' OR m.symbols = 'symtab'"
        " GROUP BY m.path, m.build_id) WHERE addresses > 0"
        " ORDER BY symbols IS NOT NULL AND symbols = 'symtab', addresses DESC, path LIMIT ?2",
        NULL, MODULES_SHOWN, &all, err);
    listing_print_under(l, "Modules without full symbols", all);
    listing_close(l);
    return rc;
}

/* One array of the rows of a query, under its column names. */
static int record_statement(struct record *document, const char *key, sqlite3_stmt *s, struct error *err)
{
    struct column columns[16] = {0};
    int count = sqlite3_column_count(s);
    for (int c = 0; c < count; c++)
        columns[c].key = sqlite3_column_name(s, c);
    struct listing *l = listing_open_in(document, key, columns, (size_t)count, NULL);
    int64_t all;
    int rc = listing_statement(l, s, &all, err);
    listing_close(l);
    sqlite3_finalize(s);
    return rc;
}

static int record_query(struct info *f, struct record *document, const char *key, const char *sql, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(f->db, sql, &s, err);
    return rc ? rc : record_statement(document, key, s, err);
}

static int record_processes(struct info *f, struct record *document, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = prepare_processes(f,
                               "process_id, pid, parent_id, start_kind, exe, command_line, start_ns, end_ns, end_kind,"
                               " exit_status, exit_signal",
                               "ORDER BY process_id", &s, err);
    return rc ? rc : record_statement(document, "processes", s, err);
}

static int record_info(struct info *f, struct record *document, struct error *err)
{
    static const char *const texts[] = {"cwd", "options", "writer_version", "clock", "events_kept"};
    static const char *const numbers[] = {"event_count", "collector_cpu_ns", "collector_peak_rss_bytes",
                                          "symbolize_ns"};
    static const struct {
        const char *key, *sql;
    } arrays[] = {
        {"devices", "SELECT device_id, name, total_bytes, uuid, model FROM device ORDER BY device_id"},
        {"threads", "SELECT thread_id, process_id, tid, name, start_ns, end_ns FROM thread ORDER BY thread_id"},
        {"counters", "SELECT process_id, name, value, text FROM counter"},
        {"modules_without_symbols",
         "SELECT path, build_id, symbols, process_id FROM module WHERE symbols IS NULL OR symbols LIKE 'none%'"
         " OR symbols = 'symtab' ORDER BY path"},
    };
    record_document_begin(document);
    notes_record(f->db, f->path, document);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *value = db_meta_text(f->db, texts[i]);
        record_member_text(document, texts[i], value);
        free(value);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        record_member_int(document, numbers[i], db_meta_int(f->db, numbers[i], 0));
    if (estimate_mean_bytes(f->db)) {
        record_member_int(document, "sample_bytes", estimate_mean_bytes(f->db));
        record_member_int(document, "sample_seed", db_meta_int(f->db, "sample_seed", 0));
    }
    if (db_meta_int(f->db, "least_bytes", 0) > 0)
        record_member_int(document, "least_bytes", db_meta_int(f->db, "least_bytes", 0));
    record_member_int(document, "file_bytes", f->file_bytes);
    record_member_int(document, "log_bytes", f->log_bytes);
    record_member_int(document, "kept_event_count",
                      db_int(f->db, "SELECT CAST(total(event_count) AS INTEGER) FROM event_chunk", 0));
    int rc = record_processes(f, document, err);
    if (rc == 0)
        rc = record_query(f, document, "allocator_settings", SETTINGS_SQL, err);
    for (size_t i = 0; rc == 0 && i < sizeof arrays / sizeof *arrays; i++)
        rc = record_query(f, document, arrays[i].key, arrays[i].sql, err);
    if (rc == 0 && db_meta_int(f->db, "least_bytes", 0) > 0)
        rc = record_query(f, document, "left_out", "SELECT log2_size, alloc_count, alloc_bytes FROM left_out", err);
    if (rc == 0 && merged_count(f->db))
        rc = record_query(f, document, "recordings", RECORDINGS_SQL " ORDER BY r.recording_id", err);
    if (rc == 0)
        rc = layers_list(f->db, NULL, document, err);
    record_document_end(document);
    return rc;
}

static int print_info(struct info *f, struct record *document, struct error *err)
{
    int rc = load_processes(f, err);
    if (rc == 0) {
        notes_print(f->db, f->out);
        print_facts(f);
        if (merged_count(f->db))
            rc = print_recordings(f, err);
        print_processes(f);
    }
    if (rc == 0) {
        rc = print_threads(f, err);
    }
    if (rc == 0)
        rc = layers_list(f->db, NULL, document, err);
    if (rc == 0)
        rc = print_counters(f, err);
    if (rc == 0)
        rc = print_modules(f, err);
    for (int i = 0; i < f->process_count; i++) {
        free(f->process[i].start_kind);
        free(f->process[i].command);
        free(f->process[i].end_kind);
        free(f->process[i].title);
        free(f->process[i].not_recorded);
    }
    free(f->process);
    return rc;
}

int info_report(sqlite3 *db, const char *path, const struct report_out *out, struct error *err)
{
    struct info f = {.db = db, .out = out, .path = path};
    struct record document;
    struct stat st;
    struct buf log = BUF(1 << 16);
    buf_printf(&log, "%s-wal", path);
    if (stat(path, &st) == 0)
        f.file_bytes = st.st_size;
    if (!log.failed && stat(buf_text(&log), &st) == 0)
        f.log_bytes = st.st_size;
    buf_free(&log);
    record_open(&document, out);
    int rc = out->format == REPORT_TEXT ? print_info(&f, &document, err) : record_info(&f, &document, err);
    record_close(&document);
    return rc;
}
