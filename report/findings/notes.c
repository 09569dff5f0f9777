#include "notes.h"

#include "../../common/db.h"
#include "../../common/little.h"
#include "../../common/text.h"
#include "../../common/units.h"
#include "../print/table.h"
#include "../query/ending.h"
#include "../query/merged.h"
#include "../query/recorded.h"
#include "../query/rotated_part.h"
#include "../query/rows.h"
#include "../query/unseen.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Counters that mean that numbers are wrong, and how; all others are shown by `memprof info` alone. */
static const struct {
    const char *name, *one, *many;
} losses[] = {
    {"map_refused", "time that the recorder got no memory: what came then lacks its stack, or is not counted",
     "times that the recorder got no memory: what came then lacks its stack, or is not counted"},
    {"early_count", "block was handed out before the recorder could start, and no count has it",
     "blocks were handed out before the recorder could start, and no count has them"},
    {"unknown_stacks", "event whose stack never came is in the totals, but in no line",
     "events whose stack never came are in the totals, but in no line"},
};

static int64_t counter(sqlite3 *db, const char *name)
{
    sqlite3_stmt *s = NULL;
    int64_t value = 0;
    if (sqlite3_prepare_v2(db, "SELECT CAST(total(value) AS INTEGER) FROM counter WHERE name = ?", -1, &s, NULL) ==
        SQLITE_OK) {
        sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
        if (sqlite3_step(s) == SQLITE_ROW)
            value = sqlite3_column_int64(s, 0);
    }
    sqlite3_finalize(s);
    return value;
}

#define LINE_OF_SITE                                                                                                   \
    " LEFT JOIN site_line sl USING(site_id) LEFT JOIN line l USING(line_id) LEFT JOIN function fn USING(function_id) " \
    "LEFT JOIN file p ON p.file_id = l.file_id LEFT JOIN module_key m ON m.key_id = l.module_key_id "

/* " of work (deep.c:12)", of a row that begins with function, path and line. */
static void add_line(sqlite3_stmt *s, struct buf *text)
{
    buf_printf(text, "of %s", sqlite3_column_type(s, 0) == SQLITE_NULL ? "??" : db_text(s, 0));
    if (sqlite3_column_type(s, 1) != SQLITE_NULL)
        buf_printf(text, " (%s:%lld)", text_basename(db_text(s, 1)), (long long)sqlite3_column_int64(s, 2));
}

/* Where the first block that was freed twice came from, and when that was. */
static void add_first_twice(sqlite3 *db, struct buf *text)
{
    static const char sql[] =
        "SELECT " ROW_FUNCTION_SQL ", p.path, l.line, u.freed_ns, u.time_ns FROM unmatched_free u" LINE_OF_SITE
        "WHERE u.site_id IS NOT NULL ORDER BY u.free_id";
    sqlite3_stmt *s = NULL;
    char first[UNITS_TEXT], again[UNITS_TEXT];
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
        return;
    if (sqlite3_step(s) == SQLITE_ROW) {
        add_line(s, text);
        buf_printf(text, ", freed at %s and again at %s", units_ns(first, sqlite3_column_int64(s, 3)),
                   units_ns(again, sqlite3_column_int64(s, 4)));
    }
    sqlite3_finalize(s);
}

/* Of the first ones the events say whether the address was last that of a block that was freed. */
static void add_unmatched(sqlite3 *db, void (*add)(void *context, enum note_kind kind, const char *note), void *context)
{
    int64_t all = counter(db, "unmatched_free"), looked_at = db_int(db, "SELECT count(*) FROM unmatched_free", 0);
    int64_t twice = db_int(db, "SELECT count(*) FROM unmatched_free WHERE site_id IS NOT NULL", 0);
    int is_known = looked_at == all && db_int(db, "SELECT value = 'all' FROM meta WHERE key = 'events_kept'", 0);
    struct buf text = BUF(1 << 17);
    char count[UNITS_TEXT];
    twice = twice < all ? twice : all;
    if (twice > 0) {
        buf_printf(&text, "%s block%s freed twice, unless calls that were not seen allocated there in between: %s",
                   units_count(count, twice), twice == 1 ? " was" : "s were", twice == 1 ? "" : "the first one ");
        add_first_twice(db, &text);
        add(context, NOTE_MISSING, buf_text(&text));
        buf_free(&text);
        all -= twice;
        text = (struct buf)BUF(1 << 17);
    }
    if (all > 0) {
        buf_printf(&text, "%s free%s of %s no live block: ", units_count(count, all), all == 1 ? "" : "s",
                   all == 1 ? "an address that is" : "addresses that are");
        if (!is_known)
            buf_puts(&text, "freed twice, or allocated by calls that were not seen, and that no count has");
        else if (all == 1)
            buf_puts(&text, "an allocation was not seen, and no count has it");
        else
            buf_puts(&text, "as many allocations were not seen, and no count has them");
        const int64_t more = unseen_heap_bytes(db);
        if (more)
            buf_printf(&text, "; glibc had up to %s more in use than was recorded", units_bytes(count, more));
        add(context, NOTE_MISSING, buf_text(&text));
    }
    buf_free(&text);
}

/* How wrong that is: older files lack both. */
static void add_missed_bytes(sqlite3 *db, struct buf *text)
{
    static const char sql[] =
        "SELECT " ROW_FUNCTION_SQL ", p.path, l.line FROM (SELECT value AS site_id FROM meta WHERE key = "
        "'replaced_site_id')" LINE_OF_SITE;
    sqlite3_stmt *s = NULL;
    char bytes[UNITS_TEXT];
    int64_t all = counter(db, "replaced_bytes"); /* one after another; at no time was more counted than at the peak */
    int64_t most = db_int(db, "SELECT peak_active_bytes FROM total WHERE kind = 'all' AND device_id = 0", all);
    if (all <= 0) {
        buf_puts(text, ", so what is live is too high");
        return;
    }
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW) {
        buf_puts(text, ", the largest ");
        add_line(s, text);
    }
    sqlite3_finalize(s);
    buf_printf(text,
               ": what is live was too high until their addresses were used again, by %s at most. What else such calls "
               "freed, and what they allocated, is not known",
               units_bytes(bytes, all < most ? all : most));
}

/* An allocation at the address of a live block: somebody freed that one past the hooks. */
static void add_missed_frees(sqlite3 *db, void (*add)(void *context, enum note_kind kind, const char *note),
                             void *context)
{
    struct buf text = BUF(1024);
    char count[UNITS_TEXT];
    char *options = db_meta_text(db, "options");
    static const char way[] = ". Code that calls the C library past preloaded libraries does so, as libraries loaded "
                              "with RTLD_DEEPBIND; record again with --deepbind";
    int64_t missed = counter(db, "replaced_block"), unfreed = unseen_freed_bytes(db);
    const char *next = !options || !strstr(options, "--deepbind") ? way : "";
    if (unfreed > 0) {
        buf_printf(
            &text,
            "calls that were not seen freed %s of what counts as live: glibc said at last that so much less is in "
            "use%s",
            units_bytes(count, unfreed), next);
        add(context, NOTE_MISSING, buf_text(&text));
        buf_free(&text);
        text = (struct buf)BUF(1024);
    }
    const int little =
        little_is(counter(db, "replaced_bytes"),
                  db_int(db, "SELECT peak_active_bytes FROM total WHERE kind = 'all' AND device_id = 0", 0));
    if (missed > 0 && !(unfreed && little) && counter(db, "lost_event") == 0) {
        buf_printf(&text, "%s block%s freed by calls that were not seen", units_count(count, missed),
                   missed == 1 ? " was" : "s were");
        add_missed_bytes(db, &text);
        if (!little && !unfreed)
            buf_puts(&text, next);
        add(context, little ? NOTE_LITTLE : NOTE_MISSING, buf_text(&text));
    }
    free(options);
    buf_free(&text);
}

#define NAMED_MOST 3

/* "the programs rustc, cargo and 2 more", of a query's paths; how many. */
static int64_t name_programs(sqlite3 *db, const char *sql, struct buf *text)
{
    sqlite3_stmt *s = NULL;
    char *names[NAMED_MOST] = {0};
    int64_t count = 0;
    if (db_prepare(db, sql, &s, NULL))
        return 0;
    for (; sqlite3_step(s) == SQLITE_ROW; count++)
        if (count < NAMED_MOST)
            names[count] = xstrdup(text_basename(db_text(s, 0)));
    sqlite3_finalize(s);
    buf_puts(text, count > 1 ? "the programs " : "the program ");
    for (int64_t i = 0; i < count && i < NAMED_MOST; i++) {
        buf_printf(text, "%s%s", !i ? "" : i + 1 == count ? " and " : ", ", names[i]);
        free(names[i]);
    }
    if (count > NAMED_MOST)
        buf_printf(text, " and %lld more", (long long)count - NAMED_MOST);
    buf_puts(text, count > 1 ? " have" : " has");
    return count;
}

/* A program's own operator new that was never met on the way to malloc: it has its blocks from elsewhere. */
static void add_own_new(sqlite3 *db, void (*add)(void *context, enum note_kind kind, const char *note), void *context)
{
    struct buf text = BUF(1 << 17);
    int64_t count = name_programs(
        db,
        "SELECT coalesce(p.exe, '?') FROM counter c JOIN process p USING(process_id) WHERE c.name = "
        "'own_new' AND c.value > 0 AND NOT EXISTS (SELECT 1 FROM module m JOIN address a USING(module_id) "
        "JOIN frame r USING(address_id) JOIN function f USING(function_id) WHERE m.path = p.exe AND f.plain_name "
        "LIKE 'operator new%') GROUP BY p.exe ORDER BY min(p.process_id)", /* stacks that processes share are one's */
        &text);
    buf_printf(&text, " an operator new of %s own: of %s blocks only what %s from malloc or %s from the kernel is seen",
               count > 1 ? "their" : "its", count > 1 ? "their" : "its", count > 1 ? "they take" : "it takes",
               count > 1 ? "map" : "maps");
    if (count)
        add(context, NOTE_MISSING, buf_text(&text));
    buf_free(&text);
}

static void add_own_malloc(sqlite3 *db, void (*add)(void *context, enum note_kind kind, const char *note),
                           void *context)
{
    struct buf text = BUF(1 << 17);
    int64_t count = name_programs(db,
                                  "SELECT coalesce(p.exe, '?') FROM counter c LEFT JOIN process p USING(process_id) "
                                  "WHERE c.name = 'own_malloc' AND c.value > 0 GROUP BY p.exe ORDER BY "
                                  "min(c.process_id)",
                                  &text);
    buf_printf(&text, " a malloc of %s own: what %s is not seen, only what %s from the kernel",
               count > 1 ? "their" : "its", count > 1 ? "they allocate" : "it allocates",
               count > 1 ? "they map" : "it maps");
    if (count)
        add(context, NOTE_MISSING, buf_text(&text));
    buf_free(&text);
}

static void add_losses(sqlite3 *db, void (*add)(void *context, enum note_kind kind, const char *note), void *context)
{
    char text[256], count[UNITS_TEXT], all[UNITS_TEXT];
    int64_t lost = counter(db, "lost_event"), seen = db_meta_int(db, "event_count", 0);
    if (lost > 0) {
        int64_t both;
        if (seen < 0 || __builtin_add_overflow(lost, seen, &both))
            both = lost;
        snprintf(text, sizeof text, "%s of %s event%s (%.1f %%) %s not recorded, and no count has %s",
                 units_count(count, lost), units_count(all, both), both == 1 ? "" : "s",
                 100.0 * (double)lost / (double)both, lost == 1 ? "was" : "were", lost == 1 ? "it" : "them");
        add(context, NOTE_MISSING, text);
    }
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        int64_t value = counter(db, losses[i].name);
        if (value <= 0)
            continue;
        snprintf(text, sizeof text, "%s %s", units_count(count, value), value == 1 ? losses[i].one : losses[i].many);
        add(context, NOTE_MISSING, text);
    }
}

/* --- a window of the run (lens.h) --- */

/* The row of temp.window; NULL: the whole run is shown. */
static sqlite3_stmt *window_row(sqlite3 *db)
{
    sqlite3_stmt *s = NULL;
    if (db_prepare(db,
                   "SELECT name, nth, of, range_count, from_ns, nullif(to_ns, 9223372036854775807), lasted_ns, "
                   "is_counted, start_ns, end_ns, chunks_damaged FROM temp.window",
                   &s, NULL) == 0 &&
        sqlite3_step(s) == SQLITE_ROW)
        return s;
    sqlite3_finalize(s);
    return NULL;
}

static void say_window(sqlite3_stmt *s, struct buf *line)
{
    char text[2][UNITS_TEXT];
    const int64_t nth = sqlite3_column_int64(s, 1), of = sqlite3_column_int64(s, 2), parts = sqlite3_column_int64(s, 3);
    const char *name = db_text(s, 0);
    int is_open = sqlite3_column_type(s, 5) == SQLITE_NULL;
    buf_puts(line, "Window: ");
    if (*name && of == 1)
        buf_printf(line, "%s, ", name);
    else if (*name && nth)
        buf_printf(line, "%s, #%lld of %s, ", name, (long long)nth, units_count(text[0], of));
    else if (*name)
        buf_printf(line, "%s, all %s, ", name, units_count(text[0], of));
    buf_printf(line, "%s to %s", units_ns(text[0], sqlite3_column_int64(s, 4)),
               is_open ? "the end" : units_ns(text[1], sqlite3_column_int64(s, 5)));
    if (!is_open)
        buf_printf(line, " (%s", units_ns(text[0], sqlite3_column_int64(s, 6)));
    if (!is_open && parts > 1)
        buf_printf(line, " in %s parts", units_count(text[0], parts));
    buf_puts(line, is_open ? "" : ")");
}

static void add_window(sqlite3 *db, void (*add)(void *context, enum note_kind kind, const char *note), void *context)
{
    sqlite3_stmt *s = window_row(db);
    struct buf text = BUF(4096);
    char at[2][UNITS_TEXT];
    if (s && !sqlite3_column_int(s, 7))
        buf_printf(&text,
                   "not all events of the window are kept: start and end are the stored instants %s and %s, and what "
                   "came and went between is not known",
                   units_ns(at[0], sqlite3_column_int64(s, 8)),
                   sqlite3_column_int64(s, 9) == INT64_MAX ? "at the end"
                                                           : units_ns(at[1], sqlite3_column_int64(s, 9)));
    else if (s && sqlite3_column_int64(s, 10) > 0)
        buf_printf(&text, "%s damaged parts of the events were skipped: the numbers of the window are not exact",
                   units_count(at[0], sqlite3_column_int64(s, 10)));
    if (text.length)
        add(context, NOTE_MISSING, text.data);
    buf_free(&text);
    sqlite3_finalize(s);
}

static void record_window(sqlite3 *db, struct record *record)
{
    static const char *const keys[] = {"nth",       "of",         "range_count", "from_ns", "to_ns",
                                       "lasted_ns", "is_counted", "start_ns",    "end_ns",  "chunks_damaged"};
    sqlite3_stmt *s = window_row(db);
    struct buf json = BUF(1 << 20);
    if (s) {
        buf_puts(&json, "{\"name\": ");
        record_json_string(&json, sqlite3_column_type(s, 0) == SQLITE_NULL ? NULL : db_text(s, 0));
        for (int i = 0; i < (int)(sizeof keys / sizeof *keys); i++) {
            buf_printf(&json, ", \"%s\": ", keys[i]);
            if (sqlite3_column_type(s, i + 1) == SQLITE_NULL)
                buf_puts(&json, "null");
            else
                buf_printf(&json, "%lld", sqlite3_column_int64(s, i + 1));
        }
        fprintf(record->out->file, ",\n\"window\": %s}", buf_text(&json));
    }
    buf_free(&json);
    sqlite3_finalize(s);
}

/* --- pauses (memprof pause, --paused, memprof_pause) --- */

/* An open one goes on, or did until the collector was killed: to the end. */
#define PAUSES_SQL                                                                                                     \
    "SELECT count(*), min(start_ns), min(CASE WHEN start_ns = first THEN end_ns END), sum(end_ns - start_ns), whole "  \
    "FROM (SELECT start_ns, coalesce(end_ns, max(start_ns, whole)) AS end_ns, min(start_ns) OVER () AS first, whole "  \
    "FROM mark, (SELECT coalesce((SELECT value FROM meta WHERE key = 'duration_ns'), 0) AS whole) "                    \
    "WHERE domain = 'pause' AND is_range)"

static void say_pauses(sqlite3_stmt *s, struct buf *text)
{
    char at[4][UNITS_TEXT];
    const int64_t count = sqlite3_column_int64(s, 0);
    units_ns(at[0], sqlite3_column_int64(s, 1));
    units_ns(at[1], sqlite3_column_int64(s, 2));
    units_ns(at[2], sqlite3_column_int64(s, 3));
    units_ns(at[3], sqlite3_column_int64(s, 4));
    if (count == 1)
        buf_printf(text, "the recording was paused from %s to %s of %s", at[0], at[1], at[3]);
    else
        buf_printf(text, "the recording was paused %lld times, for %s of %s, first from %s to %s", (long long)count,
                   at[2], at[3], at[0], at[1]);
    buf_puts(text, ": blocks of the heap that were born then are in no number");
}

static void add_pauses(sqlite3 *db, void (*add)(void *context, enum note_kind kind, const char *note), void *context)
{
    sqlite3_stmt *s = NULL;
    struct buf text = BUF(4096);
    if (db_prepare(db, PAUSES_SQL, &s, NULL) == 0 && sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int64(s, 0) > 0) {
        say_pauses(s, &text);
        add(context, NOTE_ABOUT, buf_text(&text));
    }
    buf_free(&text);
    sqlite3_finalize(s);
}

/* --- blocks that are not recorded (--sample, --min-size) --- */

static void add_sampled(sqlite3 *db, void (*add)(void *context, enum note_kind kind, const char *note), void *context)
{
    int64_t mean_bytes = db_meta_int(db, "sample_bytes", 0);
    char bytes[UNITS_TEXT], note[512];
    if (mean_bytes <= 0)
        return;
    snprintf(note, sizeof note,
             "sampled: of the heap's blocks one for each %s allocated was recorded, so what is said of kind heap is an "
             "estimate, with its error (the true value is within it in 95 of 100 recordings); mappings, GPUs and pools "
             "are recorded whole. Findings are of whole recordings alone: this one has none",
             units_bytes(bytes, mean_bytes));
    add(context, NOTE_ABOUT, note);
}

static void add_left_out(sqlite3 *db, void (*add)(void *context, enum note_kind kind, const char *note), void *context)
{
    int64_t least_bytes = db_meta_int(db, "least_bytes", 0);
    int64_t left_out = db_int(db, "SELECT CAST(total(alloc_count) AS INTEGER) FROM left_out", 0);
    char bytes[2][UNITS_TEXT], count[UNITS_TEXT], note[512];
    if (least_bytes <= 0 || left_out <= 0)
        return;
    snprintf(note, sizeof note, "%s block%s, %s allocated %s not in the tables: smaller than %s (--min-size)",
             units_count(count, left_out), left_out == 1 ? "" : "s",
             units_bytes(bytes[0], db_int(db, "SELECT CAST(total(alloc_bytes) AS INTEGER) FROM left_out", 0)),
             left_out == 1 ? "is" : "are", units_bytes(bytes[1], least_bytes));
    add(context, NOTE_ABOUT, note);
}

static void add_attached(sqlite3 *db, void (*add)(void *context, enum note_kind kind, const char *note), void *context)
{
    struct buf text = BUF(1024);
    char date[32], count[UNITS_TEXT];
    int64_t frees = counter(db, "inherited_free");
    if (!db_meta_int(db, "attached", 0))
        return;
    buf_printf(&text, "recorded since memprof attached to it at %s: blocks from before are in no number",
               notes_date(date, db_meta_int(db, "start_unix_ns", 0)));
    if (frees > 0)
        buf_printf(&text, ", nor %s of %s of them", frees == 1 ? "is the free" : "are the frees",
                   units_count(count, frees));
    buf_puts(&text, ". Its children and what it does with GPUs are not seen");
    add(context, NOTE_ABOUT, buf_text(&text));
    buf_free(&text);
}

/* Of the program itself, whose name stands above all numbers: what it executed may have done all the work. */
static void add_executed(sqlite3 *db, void (*add)(void *context, enum note_kind kind, const char *note), void *context)
{
    static const char sql[] =
        "WITH image(first_id, last_id) AS (SELECT min(process_id), max(process_id) FROM v_image WHERE first_id = "
        "(SELECT min(process_id) FROM process)) SELECT " NOT_RECORDED("last_id") " FROM image WHERE last_id > first_id";
    sqlite3_stmt *s = NULL;
    struct buf text = BUF(1 << 12);
    if (!merged_count(db) && db_prepare(db, sql, &s, NULL) == 0 && sqlite3_step(s) == SQLITE_ROW &&
        sqlite3_column_type(s, 0) != SQLITE_NULL) {
        buf_printf(&text, "the program that it executed in its place is not recorded (%.200s), and no number is of it",
                   db_text(s, 0));
        add(context, NOTE_ABOUT, buf_text(&text));
    }
    buf_free(&text);
    sqlite3_finalize(s);
}

static void add_part(sqlite3 *db, void (*add)(void *context, enum note_kind kind, const char *note), void *context)
{
    struct buf text = BUF(1024);
    rotated_part_explain(db, &text);
    if (text.length)
        add(context, NOTE_ABOUT, buf_text(&text));
    buf_free(&text);
}

/* What a part says that goes on in another file; all of the part is there. */
static const char rotated[] = "rotated: the recording goes on in ";

void notes_each(sqlite3 *db, void (*add)(void *context, enum note_kind kind, const char *note), void *context)
{
    char *partial = db_meta_text(db, "partial"), *running = ending_running_text(db);
    struct buf text = BUF(1 << 16);
    if (partial) {
        const int is_part = strncmp(partial, rotated, sizeof rotated - 1) == 0;
        buf_printf(&text, "%s%s", is_part ? "" : "partial recording: ", partial);
        if (text.data)
            add(context, is_part ? NOTE_FACT : NOTE_MISSING, text.data);
    } else if (running) {
        add(context, NOTE_MISSING, running);
    }
    buf_free(&text);
    free(partial);
    free(running);
    char *import = db_meta_text(db, "import_note");
    if (import)
        add(context, NOTE_ABOUT, import);
    free(import);
    if (merged_count(db)) {
        text = (struct buf)BUF(1 << 12);
        merged_explain(db, &text);
        add(context, NOTE_ABOUT, buf_text(&text));
        buf_free(&text);
    }
    add_executed(db, add, context);
    add_part(db, add, context);
    add_window(db, add, context);
    add_sampled(db, add, context);
    add_left_out(db, add, context);
    add_pauses(db, add, context);
    add_losses(db, add, context);
    add_unmatched(db, add, context);
    add_attached(db, add, context);
    add_missed_frees(db, add, context);
    add_own_malloc(db, add, context);
    add_own_new(db, add, context);
    if (db_int(db, "SELECT count(*) FROM process WHERE end_kind = 'signal' AND exit_signal = 31", 0)) /* SIGSYS */
        add(context, NOTE_ABOUT,
            "a seccomp filter killed a process for a system call that it does not allow; that may have been one of "
            "the recorder's, which a filter must allow (docs/recorder.md lists them)");
    if (db_int(db, "SELECT total(value) > 0 FROM counter WHERE name = 'python_unknown'", 0))
        add(context, NOTE_ABOUT,
            "the frames of this Python are not understood: stacks are native only (versions 3.9 to 3.14 are)");
}

char *notes_state(sqlite3 *db)
{
    return db_int(db, "SELECT 1 FROM meta WHERE key = 'partial'", 0) ? xstrdup("partial") : db_meta_text(db, "state");
}

static void print_note(void *context, enum note_kind kind, const char *note)
{
    struct buf text = BUF(1 << 16);
    if (kind == NOTE_LITTLE)
        return;
    buf_printf(&text, "%s%s", kind == NOTE_FACT ? "" : "! ", note);
    if (text.data)
        table_prose(context, kind == NOTE_FACT ? TABLE_DIM : TABLE_STRONG, text.data);
    buf_free(&text);
}

void notes_print(sqlite3 *db, const struct report_out *out)
{
    sqlite3_stmt *s = window_row(db);
    struct buf line = BUF(1 << 16);
    if (s) {
        say_window(s, &line);
        table_prose(out, TABLE_STRONG, buf_text(&line));
    }
    buf_free(&line);
    sqlite3_finalize(s);
    notes_each(db, print_note, (void *)(uintptr_t)out);
}

const char *notes_date(char text[32], int64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm tm;
    if (!unix_ns)
        return strcpy(text, "start not known");
    if (!localtime_r(&seconds, &tm) || !strftime(text, 32, "%Y-%m-%d %H:%M:%S", &tm))
        strcpy(text, "?");
    return text;
}

static void record_note(void *context, enum note_kind kind, const char *note)
{
    struct buf *list = context;
    if (kind == NOTE_LITTLE)
        return;
    buf_puts(list, list->length ? ", " : "");
    record_json_string(list, note);
}

static void member_meta(sqlite3 *db, struct record *record, const char *key)
{
    char *value = db_meta_text(db, key);
    record_member_text(record, key, value);
    free(value);
}

void notes_record(sqlite3 *db, const char *file, struct record *record)
{
    struct buf list = BUF(1 << 20);
    if (record->out->format != REPORT_JSON)
        return;
    record_member_text(record, "file", file);
    member_meta(db, record, "command");
    member_meta(db, record, "host");
    record_member_int(record, "start_unix_ns", db_meta_int(db, "start_unix_ns", 0));
    record_member_int(record, "duration_ns", db_meta_int(db, "duration_ns", 0));
    char ended[ENDING_TEXT];
    ending_text(db, ended);
    record_member_text(record, "ended", *ended ? ended : NULL);
    char *state = notes_state(db);
    record_member_text(record, "state", state);
    free(state);
    record_window(db, record);
    notes_each(db, record_note, &list);
    fprintf(record->out->file, ",\n\"notes\": [%s]", buf_text(&list));
    buf_free(&list);
}
