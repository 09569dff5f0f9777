/*
 * Rows for a database of many recordings: one for each line that allocated itself, on each device and of each kind, so
 * that sums are the recording's totals. Every row names its recording. As CSV (nothing between commas: NULL; "": an
 * empty text) and as JSON lines. docs/rows-schema.sql is the table.
 */
#include "export.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/text.h"
#include "../query/device.h"
#include "../query/stat.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* TEXT_MOST: of bytes of a text, because the command is in every row, and readers have limits of a line. */
enum { TEXT_MOST = 4000, LINE_LIMIT = 1 << 20 };

/* What all rows of a recording begin with. */
struct facts {
    char *command, *host, *rank, *start;
};

/* Columns of the statement, before the statistics. */
enum { DEVICE, KIND, FUNCTION, FILE_PATH, LINE, MODULE, STATS };

struct rows {
    FILE *out;
    int is_json, fields;
    struct buf line, text;
};

/* --- a field --- */

static void begin_field(struct rows *r, const char *name)
{
    if (r->fields++ || r->is_json)
        buf_putc(&r->line, r->fields > 1 ? ',' : '{');
    if (r->is_json)
        buf_printf(&r->line, "\"%s\":", name);
}

/* Whole letters of UTF-8 alone, none of them NUL, which no database takes; at most TEXT_MOST bytes. */
static void make_text(struct buf *out, const char *text)
{
    buf_reset(out);
    text_valid(out, text);
    if (out->length <= TEXT_MOST)
        return;
    size_t end = TEXT_MOST;
    while (end && ((unsigned char)out->data[end] & 0xc0) == 0x80)
        end--;
    out->data[out->length = end] = 0;
}

static void put_text(struct rows *r, const char *name, const char *text)
{
    begin_field(r, name);
    if (!text) {
        buf_puts(&r->line, r->is_json ? "null" : "");
        return;
    }
    make_text(&r->text, text);
    if (r->is_json || !*buf_text(&r->text))
        buf_putc(&r->line, '"');
    if (r->is_json)
        buf_json(&r->line, buf_text(&r->text));
    else
        buf_csv(&r->line, buf_text(&r->text));
    if (r->is_json || !*buf_text(&r->text))
        buf_putc(&r->line, '"');
}

static void put_int(struct rows *r, const char *name, int is_known, int64_t value)
{
    begin_field(r, name);
    if (is_known)
        buf_printf(&r->line, "%lld", (long long)value);
    else if (r->is_json)
        buf_puts(&r->line, "null");
}

static void end_line(struct rows *r)
{
    buf_puts(&r->line, r->is_json ? "}\n" : "\n");
    fwrite(r->line.data, 1, r->line.length, r->out);
    buf_reset(&r->line);
    r->fields = 0;
}

/* --- all of them --- */

static void facts_free(struct facts *f)
{
    free(f->command);
    free(f->host);
    free(f->rank);
    free(f->start);
}

/* "2026-11-24 17:02:58", of UTC, as all databases read it; NULL: unknown. */
static char *start_text(sqlite3 *db)
{
    const time_t start = db_meta_int(db, "start_unix_ns", 0) / 1000000000;
    struct tm tm;
    char text[64];
    if (start <= 0 || !gmtime_r(&start, &tm) || tm.tm_year + 1900 > 9999 ||
        !strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm))
        return NULL;
    return xstrdup(text);
}

static void put_row(struct rows *r, sqlite3_stmt *s, const struct export_options *o, const struct facts *f)
{
    struct stat_row stats;
    stat_read(&stats, s, STATS);
    put_text(r, "recording", o->file);
    put_text(r, "command", f->command);
    put_text(r, "host", f->host);
    put_int(r, "rank", f->rank != NULL, f->rank ? strtoll(f->rank, NULL, 10) : 0);
    put_text(r, "commit", o->commit);
    put_text(r, "start", f->start);
    put_text(r, "device", (const char *)sqlite3_column_text(s, DEVICE));
    put_text(r, "kind", (const char *)sqlite3_column_text(s, KIND));
    put_text(r, "function", (const char *)sqlite3_column_text(s, FUNCTION));
    put_text(r, "file", (const char *)sqlite3_column_text(s, FILE_PATH));
    put_int(r, "line", sqlite3_column_int64(s, LINE) > 0, sqlite3_column_int64(s, LINE));
    put_text(r, "module", (const char *)sqlite3_column_text(s, MODULE));
    for (int i = 0; i < STAT_SHOWN_COUNT; i++) {
        int known;
        const int64_t value = stat_value(&stats, i, &known);
        put_int(r, stat_infos[i].column, known, value);
    }
    end_line(r);
}

static void put_heading(struct rows *r)
{
    fputs("recording,command,host,rank,commit,start,device,kind,function,file,line,module", r->out);
    for (int i = 0; i < STAT_SHOWN_COUNT; i++)
        fprintf(r->out, ",%s", stat_infos[i].column);
    putc('\n', r->out);
}

/* A function that is in several modules is said to be in the last one by name. */
static int prepare(sqlite3 *db, const struct export_options *o, sqlite3_stmt **s, struct error *err)
{
    const char *kind = o->kind && strcmp(o->kind, "all") == 0 ? NULL : o->kind;
    struct buf sql = BUF(1 << 14);
    buf_puts(&sql, "SELECT d.name, a.kind, coalesce(fn.name, mk.path || printf('+0x%x', l.offset)), f.path, l.line, "
                   "coalesce(mk.path, fm.path), ");
    stat_columns(&sql, "a.");
    buf_puts(&sql,
             " FROM account_stat a JOIN device d ON d.device_id = a.device_id LEFT JOIN line l ON l.line_id = "
             "a.key_id LEFT JOIN function fn ON fn.function_id = l.function_id LEFT JOIN file f ON f.file_id = "
             "l.file_id LEFT JOIN module_key mk ON mk.key_id = l.module_key_id LEFT JOIN (SELECT "
             "x.function_id, max(m.path) AS path FROM main.frame x JOIN main.address n ON n.address_id = "
             "x.address_id JOIN main.module m ON m.module_id = n.module_id WHERE x.function_id IS NOT NULL GROUP "
             "BY 1) fm ON fm.function_id = l.function_id WHERE a.scope = 'line' AND a.inclusive = 0 AND a.kind <> "
             "'all' AND (?1 IS NULL OR a.kind = ?1) AND " DEVICE_IS("d.name", "?2") " ORDER BY 1, 2, a.key_id");
    int rc = db_prepare(db, buf_text(&sql), s, err);
    buf_free(&sql);
    if (rc == 0 && (sqlite3_bind_text(*s, 1, kind, -1, SQLITE_STATIC) != SQLITE_OK ||
                    sqlite3_bind_text(*s, 2, o->device, -1, SQLITE_STATIC) != SQLITE_OK))
        rc = db_error(db, err);
    return rc;
}

static int write_rows(sqlite3 *db, const struct export_options *o, struct rows *r, struct export_result *result,
                      struct error *err)
{
    struct facts f = {db_meta_text(db, "command"), db_meta_text(db, "host"), db_meta_text(db, "rank"), start_text(db)};
    sqlite3_stmt *s = NULL;
    o->lens->min_size_bytes = o->min_size_bytes;
    int rc = device_check(db, o->device, o->kind, err);
    rc = rc ? rc : lens_apply(db, o->lens, err);
    rc = rc ? rc : prepare(db, o, &s, err);
    if (rc == 0 && !r->is_json)
        put_heading(r);
    while (rc == 0 && !ferror(r->out) && db_next(s, &rc, err)) {
        put_row(r, s, o, &f);
        result->item_count++;
    }
    result->item = "rows";
    sqlite3_finalize(s);
    facts_free(&f);
    return rc;
}

static int export_rows(sqlite3 *db, const struct export_options *o, FILE *out, struct export_result *result,
                       struct error *err, int is_json)
{
    struct rows r = {.out = out, .is_json = is_json, .line = BUF(LINE_LIMIT), .text = BUF(64 << 20)};
    int rc = write_rows(db, o, &r, result, err);
    buf_free(&r.line);
    buf_free(&r.text);
    return rc;
}

int export_rows_csv(sqlite3 *db, const struct export_options *options, FILE *out, struct export_result *result,
                    struct error *err)
{
    return export_rows(db, options, out, result, err, 0);
}

int export_rows_jsonl(sqlite3 *db, const struct export_options *options, FILE *out, struct export_result *result,
                      struct error *err)
{
    return export_rows(db, options, out, result, err, 1);
}
