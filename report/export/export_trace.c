/*
 * Trace events as JSON, as Chromium's about:tracing and Perfetto read them: a row of counters for each device (active,
 * reserved and used bytes), ranges by thread, marks and failed allocations as instants. The counters are those of the
 * timeline: the end of each bucket, and its maximum where it is none of its ends, so a recording of any length is a few
 * megabytes. Times are microseconds with three decimals: nanoseconds.
 */
#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/units.h"
#include "../query/device.h"
#include "../query/merged.h"
#include "export.h"

#include <errno.h>
#include <string.h>

enum {
    BUCKETS_MAX = 65536, /* of all devices; about 400 bytes each at most */
    MARKS_MAX = 100000,  /* ranges and instants each */
    NAME_MOST = 240,     /* bytes of a name */
    DEVICE_PID = 1000000000
};

enum counter { ACTIVE, RESERVED, USED, COUNTERS };
static const char *const counter_names[COUNTERS] = {"active", "reserved", "used"};

struct trace {
    sqlite3 *db;
    const struct export_options *options;
    FILE *out;
    struct error *err;
    struct buf text;
    int64_t events, ranges_left_out;
    int64_t last[COUNTERS]; /* of the device; -1: none */
    int is_merged;          /* process numbers may come twice */
};

/* --- one event ---------------------------------------------------------------------------------------------------- */

static void put_time(struct trace *t, const char *key, int64_t ns)
{
    ns = ns > 0 ? ns : 0; /* a damaged file's */
    buf_printf(&t->text, ",\"%s\":%lld.%03d", key, (long long)(ns / 1000), (int)(ns % 1000));
}

/* Cut between letters. */
static void put_name(struct trace *t, const char *key, const char *name)
{
    char cut[NAME_MOST + 4];
    size_t length = strlen(name);
    if (length > NAME_MOST) {
        length = NAME_MOST;
        while (length && ((unsigned char)name[length] & 0xc0) == 0x80)
            length--;
        memcpy(cut, name, length);
        memcpy(cut + length, "...", 4);
        name = cut;
    }
    buf_printf(&t->text, "\"%s\":\"", key);
    buf_json(&t->text, name);
    buf_putc(&t->text, '"');
}

static void begin(struct trace *t, char phase, const char *name, int64_t pid, int64_t tid)
{
    buf_reset(&t->text);
    buf_puts(&t->text, t->events ? ",\n{" : "\n{");
    put_name(t, "name", name);
    buf_printf(&t->text, ",\"ph\":\"%c\",\"pid\":%lld,\"tid\":%lld", phase, (long long)pid, (long long)tid);
}

static void end(struct trace *t)
{
    buf_putc(&t->text, '}');
    fwrite(buf_text(&t->text), 1, t->text.length, t->out);
    t->events++;
}

static void put_label(struct trace *t, const char *what, int64_t pid, int64_t tid, const char *name)
{
    begin(t, 'M', what, pid, tid);
    buf_puts(&t->text, ",\"args\":{");
    put_name(t, "name", name);
    buf_putc(&t->text, '}');
    end(t);
}

/* A statement's rows, each given to take. */
static int each(struct trace *t, const char *sql, void (*take)(struct trace *t, sqlite3_stmt *s),
                void (*bind)(const struct trace *t, sqlite3_stmt *s))
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(t->db, sql, &s, t->err);
    if (rc == 0 && bind)
        bind(t, s);
    while (rc == 0 && !ferror(t->out) && db_next(s, &rc, t->err))
        take(t, s);
    sqlite3_finalize(s);
    return rc;
}

/* --- who ---------------------------------------------------------------------------------------------------------- */

static void take_process(struct trace *t, sqlite3_stmt *s)
{
    put_label(t, "process_name", sqlite3_column_int64(s, t->is_merged ? 0 : 1), 0, db_text(s, 2));
}

static void take_thread(struct trace *t, sqlite3_stmt *s)
{
    put_label(t, "thread_name", sqlite3_column_int64(s, t->is_merged ? 0 : 1),
              sqlite3_column_int64(s, t->is_merged ? 2 : 3), db_text(s, 4));
}

static int put_names(struct trace *t)
{
    int rc = each(t, "SELECT process_id, pid, exe FROM process ORDER BY process_id LIMIT 100000", take_process, NULL);
    if (rc == 0)
        rc = each(
            t,
            "SELECT p.process_id, p.pid, t.thread_id, t.tid, t.name FROM thread t JOIN process p USING(process_id) "
            "ORDER BY t.thread_id LIMIT 100000",
            take_thread, NULL);
    return rc;
}

/* --- counters ----------------------------------------------------------------------------------------------------- */

static void put_counter(struct trace *t, int64_t device_id, enum counter counter, int64_t time_ns, int64_t bytes)
{
    if (bytes == t->last[counter])
        return;
    t->last[counter] = bytes;
    begin(t, 'C', counter_names[counter], DEVICE_PID + device_id, 0);
    put_time(t, "ts", time_ns);
    buf_printf(&t->text, ",\"args\":{\"bytes\":%lld}", (long long)bytes);
    end(t);
}

/* The maximum, where it is higher than what the bucket ends with, then its end. */
static void take_bucket(struct trace *t, sqlite3_stmt *s)
{
    int64_t device_id = sqlite3_column_int64(s, 0), end_ns = sqlite3_column_int64(s, 1);
    for (int c = 0; c < COUNTERS; c++) {
        int at = 2 + 3 * c;
        if (sqlite3_column_type(s, at) == SQLITE_NULL)
            continue;
        int64_t last = sqlite3_column_int64(s, at), most = sqlite3_column_int64(s, at + 1);
        if (most > last && sqlite3_column_type(s, at + 2) != SQLITE_NULL)
            put_counter(t, device_id, (enum counter)c, sqlite3_column_int64(s, at + 2), most);
        put_counter(t, device_id, (enum counter)c, end_ns, last);
    }
}

struct device_row {
    int64_t id, buckets;
    char name[64];
};

static int put_device(struct trace *t, const struct device_row *d)
{
    static const char sql[] =
        "SELECT device_id, min(time_ns + width_ns, ?5), active_last_bytes, active_max_bytes, active_max_ns, "
        "reserved_last_bytes, reserved_max_bytes, reserved_max_ns, rss_last_bytes, rss_max_bytes, NULL FROM timeline "
        "WHERE device_id = ?1 AND level = (SELECT min(level) FROM (SELECT level, count(*) AS n FROM timeline WHERE "
        "device_id = ?1 GROUP BY level) WHERE n <= ?2) AND time_ns < ?4 AND time_ns + width_ns > ?3 ORDER BY time_ns";
    sqlite3_stmt *s = NULL;
    char label[96];
    snprintf(label, sizeof label, "memory of %s", d->name);
    put_label(t, "process_name", DEVICE_PID + d->id, 0, label);
    for (int c = 0; c < COUNTERS; c++)
        t->last[c] = -1;
    int rc = db_prepare(t->db, sql, &s, t->err);
    if (rc == 0) {
        sqlite3_bind_int64(s, 1, d->id);
        sqlite3_bind_int64(s, 2, d->buckets);
        sqlite3_bind_int64(s, 3, t->options->has_window ? t->options->from_ns : 0);
        sqlite3_bind_int64(s, 4, t->options->has_window ? t->options->to_ns : INT64_MAX);
        sqlite3_bind_int64(s, 5, db_meta_int(t->db, "duration_ns", INT64_MAX));
    }
    while (rc == 0 && !ferror(t->out) && db_next(s, &rc, t->err))
        take_bucket(t, s);
    sqlite3_finalize(s);
    return rc;
}

static int put_devices(struct trace *t)
{
    static const char sql[] = "SELECT d.device_id, d.name, count(*) OVER () FROM device d WHERE EXISTS(SELECT 1 FROM "
                              "timeline t WHERE t.device_id = d.device_id) AND (?1 IS NULL OR " DEVICE_IS(
                                  "d.name", "?1") ") ORDER BY 1 LIMIT 256";
    struct device_row d;
    sqlite3_stmt *s = NULL;
    int count = 0, rc = db_prepare(t->db, sql, &s, t->err);
    if (rc == 0)
        sqlite3_bind_text(s, 1, t->options->device, -1, SQLITE_TRANSIENT);
    while (rc == 0 && db_next(s, &rc, t->err)) {
        d.id = sqlite3_column_int64(s, 0);
        d.buckets = BUCKETS_MAX / sqlite3_column_int64(s, 2);
        snprintf(d.name, sizeof d.name, "%s", db_text(s, 1));
        rc = put_device(t, &d);
        count++;
    }
    sqlite3_finalize(s);
    if (rc == 0 && !count && t->options->device)
        rc = error_set(t->err, EINVAL,
                       "export: no device '%s' in this recording; 'memprof report --by device' lists "
                       "them",
                       t->options->device);
    return rc;
}

/* --- ranges, marks, failures -------------------------------------------------------------------------------------- */

static void bind_window(const struct trace *t, sqlite3_stmt *s)
{
    sqlite3_bind_int64(s, 1, t->options->has_window ? t->options->from_ns : 0);
    sqlite3_bind_int64(s, 2, t->options->has_window ? t->options->to_ns : INT64_MAX);
    sqlite3_bind_int64(s, 3, db_meta_int(t->db, "duration_ns", 0));
    sqlite3_bind_int64(s, 4, MARKS_MAX);
    sqlite3_bind_int(s, 5, t->is_merged);
}

static void take_range(struct trace *t, sqlite3_stmt *s)
{
    begin(t, 'X', db_text(s, 0), sqlite3_column_int64(s, 1), sqlite3_column_int64(s, 2));
    put_time(t, "ts", sqlite3_column_int64(s, 3));
    put_time(t, "dur", sqlite3_column_int64(s, 4));
    if (sqlite3_column_type(s, 5) != SQLITE_NULL) {
        buf_putc(&t->text, ',');
        put_name(t, "cat", db_text(s, 5));
    }
    end(t);
    t->ranges_left_out = sqlite3_column_int64(s, 6) - MARKS_MAX;
}

static void take_instant(struct trace *t, sqlite3_stmt *s)
{
    begin(t, 'i', db_text(s, 0), sqlite3_column_int64(s, 1), sqlite3_column_int64(s, 2));
    put_time(t, "ts", sqlite3_column_int64(s, 3));
    buf_puts(&t->text, ",\"s\":\"p\"");
    end(t);
}

static void take_failure(struct trace *t, sqlite3_stmt *s)
{
    char bytes[UNITS_TEXT], name[200];
    snprintf(name, sizeof name, "out of memory: %s of %.60s", units_bytes(bytes, sqlite3_column_int64(s, 4)),
             db_text(s, 0));
    begin(t, 'i', name, sqlite3_column_int64(s, 1), sqlite3_column_int64(s, 2));
    put_time(t, "ts", sqlite3_column_int64(s, 3));
    buf_printf(&t->text, ",\"s\":\"g\",\"args\":{\"size_bytes\":%lld,\"active_bytes\":%lld}",
               (long long)sqlite3_column_int64(s, 4), (long long)sqlite3_column_int64(s, 5));
    end(t);
}

#define WHO                                                                                                            \
    "coalesce(CASE WHEN ?5 THEN p.process_id ELSE p.pid END, 0) AS pid, coalesce(CASE WHEN ?5 THEN h.thread_id ELSE "  \
    "h.tid END, 0) AS tid"
#define OF(table)                                                                                                      \
    " LEFT JOIN process p ON p.process_id = " table ".process_id LEFT JOIN thread h ON h.thread_id = " table           \
    ".thread_id "

/* The longest ranges, where there are too many; one that was not closed ends with its process. */
static int put_marks(struct trace *t)
{
    static const char ranges[] =
        "SELECT name, pid, tid, start_ns, end_ns - start_ns, domain, n FROM (SELECT m.name, " WHO ", m.start_ns, "
        "max(coalesce(m.end_ns, p.end_ns, ?3), m.start_ns) AS end_ns, m.domain, count(*) OVER () AS n FROM mark "
        "m" OF("m") "WHERE m.is_range) WHERE start_ns < ?2 AND end_ns >= ?1 ORDER BY 5 DESC, start_ns LIMIT ?4";
    static const char instants[] = "SELECT m.name, " WHO ", m.start_ns FROM mark m" OF(
        "m") "WHERE NOT m.is_range AND m.start_ns >= ?1 AND m.start_ns < ?2 AND ?3 >= 0 ORDER BY m.start_ns LIMIT ?4";
    static const char failures[] =
        "SELECT d.name, " WHO ", o.time_ns, o.size_bytes, o.active_bytes FROM oom o JOIN device d USING(device_id)" OF(
            "o") "WHERE o.time_ns >= ?1 AND o.time_ns < ?2 AND ?3 >= 0 ORDER BY o.time_ns LIMIT ?4";
    int rc = each(t, ranges, take_range, bind_window);
    if (rc == 0)
        rc = each(t, instants, take_instant, bind_window);
    return rc ? rc : each(t, failures, take_failure, bind_window);
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static void tell(const struct trace *t, struct export_result *result)
{
    struct buf note = BUF(sizeof result->note - 1);
    char count[UNITS_TEXT];
    result->item_count = t->events;
    result->item = "trace events";
    if (t->ranges_left_out > 0)
        buf_printf(&note, "%s ranges, the shortest, are not in it\n", units_count(count, t->ranges_left_out));
    if (!db_int(t->db, "SELECT EXISTS(SELECT 1 FROM timeline)", 0))
        buf_puts(&note, "there are no counters: this recording has no timeline\n");
    snprintf(result->note, sizeof result->note, "%s", buf_text(&note));
    buf_free(&note);
}

int export_trace(sqlite3 *db, const struct export_options *options, FILE *out, struct export_result *result,
                 struct error *err)
{
    struct trace t = {.db = db, .options = options, .out = out, .err = err, .text = BUF(1 << 20)};
    t.is_merged = merged_count(db) > 0;
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", out);
    int rc = put_names(&t);
    if (rc == 0)
        rc = put_devices(&t);
    if (rc == 0)
        rc = put_marks(&t);
    fputs("\n]}\n", out);
    tell(&t, result);
    buf_free(&t.text);
    return rc;
}
