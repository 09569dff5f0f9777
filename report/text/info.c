#include "info.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/units.h"
#include "../findings/advice.h"
#include "../findings/notes.h"
#include "../print/table.h"
#include "layers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PROCESSES_SHOWN = 200, THREADS_SHOWN = 50, MODULES_SHOWN = 40, DEPTH_MAX = 32 };

struct process {
    int64_t process_id, parent_id, pid, start_ns, end_ns, exit_status, exit_signal, threads;
    int has_end;
    char *start_kind, *command, *end_kind;
    int printed;
};

struct info {
    sqlite3 *db;
    const struct report_out *out;
    const char *path;
    int64_t file_bytes;
    struct process *process;
    int process_count, process_capacity;
};

static int load_processes(struct info *f, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(f->db,
                        "SELECT process_id, parent_id, pid, start_ns, end_ns, exit_status, exit_signal, start_kind, "
                        "command_line, end_kind,"
                        " (SELECT count(*) FROM thread t WHERE t.process_id = p.process_id) FROM process p ORDER BY "
                        "process_id LIMIT 100000",
                        &s, err);
    if (rc)
        return rc;
    while (sqlite3_step(s) == SQLITE_ROW) {
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
                             .threads = sqlite3_column_int64(s, 10)};
    }
    sqlite3_finalize(s);
    return 0;
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

static void add_process(struct info *f, struct table *t, struct process *p, int depth)
{
    struct buf text = BUF(1 << 16);
    char number[32];
    p->printed = 1;
    snprintf(number, sizeof number, "%lld", (long long)p->pid);
    table_text(t, number);
    table_text(t, p->start_kind);
    table_ns(t, p->start_ns);
    if (p->has_end && p->end_ns >= p->start_ns && p->start_ns >= 0)
        table_ns(t, p->end_ns - p->start_ns);
    else
        table_text(t, "-");
    table_count(t, p->threads);
    end_text(p, &text);
    table_text(t, text.data);
    buf_reset(&text);
    buf_printf(&text, "%*s%s", 2 * depth, "", p->command);
    table_text(t, buf_text(&text));
    buf_free(&text);
    for (int i = 0; i < f->process_count && depth < DEPTH_MAX && table_rows(t) < PROCESSES_SHOWN; i++)
        if (f->process[i].parent_id == p->process_id && !f->process[i].printed)
            add_process(f, t, &f->process[i], depth + 1);
}

static void print_processes(struct info *f)
{
    static const struct table_column columns[] = {{"pid", TABLE_RIGHT, 0, 0},
                                                  {"start", TABLE_LEFT, 0, 0},
                                                  {"at", TABLE_RIGHT, 0, 0},
                                                  {"lasted", TABLE_RIGHT, 0, 0},
                                                  {"threads", TABLE_RIGHT, 0, 0},
                                                  {"end", TABLE_LEFT, 0, 0},
                                                  {"command", TABLE_LEFT, TEXT_CUT_RIGHT, 0}};
    struct table *t = table_open(columns, 7);
    char count[UNITS_TEXT];
    struct buf title = BUF(256);
    /* roots first; then what a damaged tree hangs nowhere */
    for (int orphan = 0; orphan < 2; orphan++)
        for (int i = 0; i < f->process_count && table_rows(t) < PROCESSES_SHOWN; i++)
            if (!f->process[i].printed && (orphan || f->process[i].parent_id == 0))
                add_process(f, t, &f->process[i], 0);
    int64_t pids = db_int(f->db, "SELECT count(DISTINCT pid) FROM process", 0);
    buf_printf(&title, "Processes: %s", units_count(count, pids));
    if (pids < f->process_count) /* an exec makes another image of one process */
        buf_printf(&title, " in %s images", units_count(count, f->process_count));
    if (table_rows(t) < f->process_count)
        buf_printf(&title, " (%d shown)", table_rows(t));
    fputc('\n', f->out->file);
    table_line(f->out, TABLE_STRONG, title.data);
    table_print(t, f->out);
    table_close(t);
    buf_free(&title);
}

static void fact(struct table *t, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    table_text(t, key);
    table_text(t, value);
}

static void fact_meta(struct info *f, struct table *t, const char *key, const char *meta)
{
    char *value = db_meta_text(f->db, meta);
    fact(t, key, value);
    free(value);
}

static void events_fact(struct info *f, struct table *t)
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
    fact(t, "events", line.data);
    free(which);
    buf_free(&line);
}

static void arenas_fact(struct info *f, struct table *t)
{
    char text[UNITS_TEXT];
    struct buf line = BUF(1024);
    int64_t peak = advice_arenas_peak(f->db);
    if (peak > 0) {
        buf_printf(&line, "%s at most: small objects are inside (--python-allocators records each)",
                   units_bytes(text, peak));
        fact(t, "Python's arenas", line.data);
    }
    buf_free(&line);
}

static void own_facts(struct info *f, struct table *t)
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
    fact(t, "memprof itself", line.data);
    buf_free(&line);
}

static void print_facts(struct info *f)
{
    static const struct table_column columns[] = {{"", TABLE_LEFT, 0, 0}, {"", TABLE_LEFT, TEXT_CUT_RIGHT, 0}};
    struct table *t = table_open(columns, 2);
    char text[UNITS_TEXT], date[32];
    fact_meta(f, t, "command", "command");
    fact_meta(f, t, "directory", "cwd");
    fact_meta(f, t, "host", "host");
    fact(t, "began", notes_date(date, db_meta_int(f->db, "start_unix_ns", 0)));
    fact(t, "lasted", units_ns(text, db_meta_int(f->db, "duration_ns", 0)));
    fact_meta(f, t, "options", "options");
    fact_meta(f, t, "written by", "writer_version");
    if (db_int(f->db, "SELECT 1 FROM meta WHERE key = 'partial'", 0))
        fact(t, "state", "partial");
    else
        fact_meta(f, t, "state", "state");
    fact_meta(f, t, "clock", "clock");
    fact(t, "file size", units_bytes(text, f->file_bytes));
    events_fact(f, t);
    arenas_fact(f, t);
    own_facts(f, t);
    table_print_rows(t, f->out);
    table_close(t);
}

/* The texts are made for bare numbers; a time is shown with its unit. */
static void counter_text(struct table *t, const char *text)
{
    static const char unit[] = "nanoseconds ";
    struct buf line = BUF(1 << 16);
    if (strncmp(text, unit, sizeof unit - 1) == 0)
        buf_printf(&line, "time %s", text + sizeof unit - 1);
    table_text(t, line.data ? line.data : text);
    buf_free(&line);
}

/* Counters of all processes summed; those of nothing are left out. */
static int print_counters(struct info *f, struct error *err)
{
    static const struct table_column columns[] = {
        {"", TABLE_RIGHT, 0, 0}, {"", TABLE_LEFT, TEXT_CUT_RIGHT, 0}, {"", TABLE_LEFT, 0, 0}};
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(
        f->db,
        "SELECT total(value), max(text), name FROM counter GROUP BY name HAVING total(value) != 0 ORDER BY min(rowid)",
        &s, err);
    if (rc)
        return rc;
    struct table *t = table_open(columns, 3);
    while (sqlite3_step(s) == SQLITE_ROW) {
        const char *name = db_text(s, 2);
        size_t length = strlen(name);
        if (length > 3 && strcmp(name + length - 3, "_ns") == 0)
            table_ns(t, sqlite3_column_int64(s, 0));
        else
            table_count(t, sqlite3_column_int64(s, 0));
        counter_text(t, db_text(s, 1));
        table_text(t, name);
    }
    fputc('\n', f->out->file);
    table_line(f->out, TABLE_STRONG, "Lost, not tracked, waited for");
    if (table_rows(t))
        table_print_rows(t, f->out);
    else
        table_line(f->out, TABLE_PLAIN, "Nothing.");
    table_close(t);
    sqlite3_finalize(s);
    return 0;
}

static int print_threads(struct info *f, struct error *err)
{
    static const struct table_column columns[] = {{"pid", TABLE_RIGHT, 0, 0},
                                                  {"tid", TABLE_RIGHT, 0, 0},
                                                  {"start", TABLE_RIGHT, 0, 0},
                                                  {"end", TABLE_RIGHT, 0, 0},
                                                  {"allocs", TABLE_RIGHT, 0, 0},
                                                  {"allocated", TABLE_RIGHT, 0, 0},
                                                  {"thread", TABLE_LEFT, TEXT_CUT_RIGHT, 0}};
    int64_t count = db_int(f->db, "SELECT count(*) FROM thread", 0);
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(
        f->db,
        "SELECT p.pid, t.tid, t.start_ns, t.end_ns, a.alloc_count, a.alloc_bytes, t.name FROM thread t"
        " LEFT JOIN process p USING(process_id) LEFT JOIN (SELECT key_id, sum(alloc_count) AS alloc_count,"
        " sum(alloc_bytes) AS alloc_bytes FROM account WHERE scope = 'thread' AND inclusive = 0 AND kind = 'all'"
        " GROUP BY key_id) a ON a.key_id = t.thread_id ORDER BY a.alloc_bytes DESC, t.thread_id LIMIT 50",
        &s, err);
    if (rc)
        return rc;
    struct table *t = table_open(columns, 7);
    char number[32];
    while (sqlite3_step(s) == SQLITE_ROW) {
        for (int c = 0; c < 2; c++) {
            snprintf(number, sizeof number, "%lld", (long long)sqlite3_column_int64(s, c));
            table_text(t, number);
        }
        table_ns(t, sqlite3_column_int64(s, 2));
        if (sqlite3_column_type(s, 3) == SQLITE_NULL)
            table_text(t, "-");
        else
            table_ns(t, sqlite3_column_int64(s, 3));
        table_count(t, sqlite3_column_int64(s, 4));
        table_bytes(t, sqlite3_column_int64(s, 5));
        table_text(t, db_text(s, 6));
    }
    struct buf title = BUF(256);
    buf_printf(&title, "Threads: %s%s", units_count(number, count),
               count > THREADS_SHOWN ? " (those that allocated most)" : "");
    fputc('\n', f->out->file);
    table_line(f->out, TABLE_STRONG, title.data);
    table_print(t, f->out);
    buf_free(&title);
    table_close(t);
    sqlite3_finalize(s);
    return 0;
}

#define MODULE_QUERY                                                                                                   \
    "SELECT m.path, m.build_id, max(m.symbols), (SELECT count(*) FROM address a WHERE a.module_id = m.module_id) AS "  \
    "addresses"                                                                                                        \
    " FROM module m WHERE m.symbols IS NULL OR m.symbols LIKE 'none%' OR m.symbols = 'symtab'"                         \
    " GROUP BY m.path, m.build_id ORDER BY m.symbols IS NOT NULL AND m.symbols = 'symtab', addresses DESC, m.path"

static int print_modules(struct info *f, struct error *err)
{
    static const struct table_column columns[] = {{"addresses", TABLE_RIGHT, 0, 0},
                                                  {"module", TABLE_LEFT, TEXT_CUT_LEFT, 0},
                                                  {"symbols", TABLE_LEFT, TEXT_CUT_RIGHT, 0}};
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(f->db, MODULE_QUERY, &s, err), count = 0;
    if (rc)
        return rc;
    struct table *t = table_open(columns, 3);
    while (sqlite3_step(s) == SQLITE_ROW) {
        if (sqlite3_column_int64(s, 3) == 0 || count++ >= MODULES_SHOWN)
            continue;
        const char *symbols = db_text(s, 2);
        table_count(t, sqlite3_column_int64(s, 3));
        table_text(t, db_text(s, 0));
        table_text(t, strcmp(symbols, "symtab") == 0 ? "names only: no line information"
                      : *symbols                     ? symbols
                                                     : "not looked for yet");
    }
    if (count) {
        struct buf title = BUF(256);
        buf_puts(&title, "Modules without full symbols");
        if (count > MODULES_SHOWN)
            buf_printf(&title, " (%d of %d)", MODULES_SHOWN, count);
        fputc('\n', f->out->file);
        table_line(f->out, TABLE_STRONG, title.data);
        table_print(t, f->out);
        buf_free(&title);
    }
    table_close(t);
    sqlite3_finalize(s);
    return 0;
}

/* One array of the rows of a query, under its column names. */
static int record_query(struct info *f, struct record *r, const char *key, const char *sql, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(f->db, sql, &s, err);
    if (rc)
        return rc;
    record_array_begin(r, key);
    while (sqlite3_step(s) == SQLITE_ROW) {
        record_begin(r);
        for (int c = 0; c < sqlite3_column_count(s); c++) {
            int type = sqlite3_column_type(s, c);
            if (type == SQLITE_INTEGER)
                record_int(r, sqlite3_column_name(s, c), sqlite3_column_int64(s, c));
            else
                record_text(r, sqlite3_column_name(s, c), type == SQLITE_NULL ? NULL : db_text(s, c));
        }
        record_end(r);
    }
    record_array_end(r);
    sqlite3_finalize(s);
    return 0;
}

static int record_info(struct info *f, struct error *err)
{
    static const char *const texts[] = {"cwd", "options", "writer_version", "clock", "events_kept"};
    static const char *const numbers[] = {"event_count", "collector_cpu_ns", "collector_peak_rss_bytes",
                                          "symbolize_ns"};
    static const struct {
        const char *key, *sql;
    } arrays[] = {
        {"processes",
         "SELECT process_id, pid, parent_id, start_kind, exe, command_line, start_ns, end_ns, end_kind, exit_status,"
         " exit_signal FROM process ORDER BY process_id"},
        {"devices", "SELECT device_id, name, total_bytes, uuid, model FROM device ORDER BY device_id"},
        {"threads", "SELECT thread_id, process_id, tid, name, start_ns, end_ns FROM thread ORDER BY thread_id"},
        {"counters", "SELECT process_id, name, value, text FROM counter"},
        {"modules_without_symbols",
         "SELECT path, build_id, symbols, process_id FROM module WHERE symbols IS NULL OR symbols LIKE 'none%'"
         " OR symbols = 'symtab' ORDER BY path"},
    };
    struct record r;
    int rc = 0;
    record_open(&r, f->out);
    record_document_begin(&r);
    notes_record(f->db, f->path, &r);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *value = db_meta_text(f->db, texts[i]);
        record_member_text(&r, texts[i], value);
        free(value);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        record_member_int(&r, numbers[i], db_meta_int(f->db, numbers[i], 0));
    record_member_int(&r, "file_bytes", f->file_bytes);
    record_member_int(&r, "kept_event_count",
                      db_int(f->db, "SELECT CAST(total(event_count) AS INTEGER) FROM event_chunk", 0));
    for (size_t i = 0; rc == 0 && i < sizeof arrays / sizeof *arrays; i++)
        rc = record_query(f, &r, arrays[i].key, arrays[i].sql, err);
    if (rc == 0)
        rc = layers_record(f->db, NULL, f->out, &r, err);
    record_document_end(&r);
    record_close(&r);
    return rc;
}

int info_report(sqlite3 *db, const char *path, const struct report_out *out, struct error *err)
{
    struct info f = {.db = db, .out = out, .path = path};
    struct stat st;
    int rc;
    if (stat(path, &st) == 0)
        f.file_bytes = st.st_size;
    if (out->format != REPORT_TEXT)
        return record_info(&f, err);
    rc = load_processes(&f, err);
    if (rc == 0) {
        notes_print(db, out);
        print_facts(&f);
        print_processes(&f);
        rc = print_threads(&f, err);
    }
    if (rc == 0)
        rc = layers_print(db, NULL, out, err);
    if (rc == 0)
        rc = print_counters(&f, err);
    if (rc == 0)
        rc = print_modules(&f, err);
    for (int i = 0; i < f.process_count; i++) {
        free(f.process[i].start_kind);
        free(f.process[i].command);
        free(f.process[i].end_kind);
    }
    free(f.process);
    return rc;
}
