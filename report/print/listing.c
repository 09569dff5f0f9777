#include "listing.h"

#include "../../common/db.h"
#include "../../common/error.h"
#include "../../common/units.h"

#include <stdlib.h>

struct listing {
    const struct column *columns;
    const struct report_out *out;
    const char *base;
    struct table *table;   /* people; NULL: programs */
    struct record *record; /* programs */
    struct record own;
    int *cells; /* by column: where its values stand in the table, or -1 */
    int count, at, is_printed;
    struct buf source; /* the path of a COLUMN_SOURCE, whose line comes next */
    int source_cell;   /* where it stands; -1: none waits */
};

/* Titles stand in the order of their places, those of one place in the order of the columns. */
static void open_table(struct listing *l)
{
    const struct column *shown[TABLE_COLUMNS_MAX];
    int count = 0;
    for (int i = 0; i < l->count; i++) {
        if (!l->columns[i].title)
            continue;
        if (count == TABLE_COLUMNS_MAX)
            bug("a table of more than %d columns", count);
        int k = count++;
        for (; k > 0 && shown[k - 1]->place > l->columns[i].place; k--) {
            shown[k] = shown[k - 1];
            l->cells[shown[k] - l->columns] = k;
        }
        shown[k] = &l->columns[i];
        l->cells[i] = k;
    }
    l->table = table_open(shown, count);
}

static struct listing *open(struct record *record, const char *key, const struct column *columns, size_t count,
                            const struct report_out *out, const char *base)
{
    struct listing *l = xcalloc(1, sizeof *l);
    *l = (struct listing){.columns = columns,
                          .out = out,
                          .base = base,
                          .cells = xcalloc(count + 1, sizeof *l->cells),
                          .count = (int)count,
                          .source = BUF(1 << 20),
                          .source_cell = -1};
    for (size_t i = 0; i < count; i++)
        l->cells[i] = -1;
    if (out->format == REPORT_TEXT) {
        open_table(l);
        return l;
    }
    l->record = record;
    if (!record) {
        l->record = &l->own;
        record_open(l->record, out);
    }
    record_array_begin(l->record, key);
    return l;
}

struct listing *listing_open(const struct column *columns, size_t count, const struct report_out *out, const char *base)
{
    return open(NULL, NULL, columns, count, out, base);
}

struct listing *listing_open_in(struct record *document, const char *key, const struct column *columns, size_t count,
                                const char *base)
{
    return open(document, key, columns, count, document->out, base);
}

void listing_close(struct listing *l)
{
    if (!l)
        return;
    if (l->record == &l->own)
        listing_heading(l);
    if (l->record)
        record_array_end(l->record);
    record_close(&l->own);
    table_close(l->table);
    buf_free(&l->source);
    free(l->cells);
    free(l);
}

int listing_rows(const struct listing *l)
{
    return l->table ? table_rows(l->table) : l->record->rows;
}

static int is_recorded(const struct listing *l, const struct column *c)
{
    return c->key && (l->out->format == REPORT_JSON || !(c->flags & COLUMN_JSON)) &&
           (l->out->has_window || !(c->flags & COLUMN_WINDOW));
}

int listing_shows(const struct listing *l, int column)
{
    return l->table ? l->cells[column] >= 0 : is_recorded(l, &l->columns[column]);
}

/* The column that the next value is for. *is_shown: whether this format has it. */
static const struct column *begin(struct listing *l, int *is_shown)
{
    if (l->record && l->at == 0)
        record_begin(l->record);
    *is_shown = listing_shows(l, l->at);
    return &l->columns[l->at];
}

static void end(struct listing *l)
{
    if (++l->at < l->count)
        return;
    l->at = 0;
    if (l->record)
        record_end(l->record);
    else
        table_row_end(l->table);
}

static void cell(struct listing *l, const char *text)
{
    table_cell(l->table, l->cells[l->at], text);
}

static void text_cell(struct listing *l, const struct column *c, const char *text)
{
    if (text && (c->unit == COLUMN_PATH || c->unit == COLUMN_SOURCE)) {
        buf_reset(&l->source);
        text_path(&l->source, text, l->base);
        l->source_cell = c->unit == COLUMN_SOURCE ? l->cells[l->at] : -1;
        text = l->source.data;
    }
    cell(l, text ? text : c->none);
}

static void number_text(char text[UNITS_TEXT], const struct column *c, int64_t value)
{
    static const char *(*const forms[])(char *, int64_t) = {[COLUMN_COUNT] = units_count,
                                                            [COLUMN_BYTES] = units_bytes,
                                                            [COLUMN_BYTES_SHORT] = units_bytes_short,
                                                            [COLUMN_NS] = units_ns,
                                                            [COLUMN_PERCENT] = NULL};
    snprintf(text, UNITS_TEXT, "%lld", (long long)value);
    if (forms[c->unit])
        forms[c->unit](text, value);
}

static void int_cell(struct listing *l, const struct column *c, int64_t value)
{
    char text[UNITS_TEXT];
    number_text(text, c, value);
    cell(l, text);
}

void listing_style(struct listing *l, enum table_style style)
{
    if (l->table)
        table_row_style(l->table, style);
}

void listing_text(struct listing *l, const char *text)
{
    int is_shown;
    const struct column *c = begin(l, &is_shown);
    l->source_cell = -1;
    if (is_shown && l->record)
        record_text(l->record, c->key, text);
    else if (is_shown)
        text_cell(l, c, text);
    end(l);
}

void listing_null(struct listing *l)
{
    listing_text(l, NULL);
}

void listing_int(struct listing *l, int64_t value)
{
    int is_shown;
    const struct column *c = begin(l, &is_shown);
    if (is_shown && l->record)
        record_int(l->record, c->key, value);
    else if (is_shown)
        int_cell(l, c, value);
    if (l->source_cell >= 0 && value > 0) {
        buf_printf(&l->source, ":%lld", (long long)value);
        table_cell(l->table, l->source_cell, l->source.data);
    }
    l->source_cell = -1;
    end(l);
}

const char *listing_mark(char text[LISTING_MARK], const struct report_out *out, int64_t value, double error)
{
    const double percent = value > 0 ? 100 * error / (double)value : 0;
    const char *sign = out->utf8 ? "\xc2\xb1" : "+-";
    *text = 0;
    if (error < 0 && value > 0)
        snprintf(text, LISTING_MARK, " %s?", sign);
    else if (error > 0 && value > 0)
        snprintf(text, LISTING_MARK, " %s%.*f%%", sign, percent < 10, percent);
    return text;
}

void listing_estimate(struct listing *l, int is_known, int64_t value, double error)
{
    char text[UNITS_TEXT], mark[LISTING_MARK], marked[UNITS_TEXT + LISTING_MARK];
    if (!is_known || error == 0 || value <= 0 || l->record) {
        listing_int_if(l, is_known, value);
        return;
    }
    number_text(text, &l->columns[l->at], value);
    snprintf(marked, sizeof marked, "%s%s", text, listing_mark(mark, l->out, value, error));
    listing_text(l, marked);
}

void listing_int_if(struct listing *l, int is_known, int64_t value)
{
    if (is_known)
        listing_int(l, value);
    else
        listing_null(l);
}

static void real(struct listing *l, double value, const char *text)
{
    char percent[64];
    int is_shown;
    const struct column *c = begin(l, &is_shown);
    if (c->unit == COLUMN_PERCENT) {
        snprintf(percent, sizeof percent, "%.1f %%", value);
        text = percent;
    }
    if (is_shown && l->record)
        record_real(l->record, c->key, value);
    else if (is_shown)
        cell(l, text);
    end(l);
}

void listing_share(struct listing *l, int64_t part, int64_t whole)
{
    if (whole > 0)
        real(l, 100 * (double)part / (double)whole, NULL);
    else
        listing_null(l);
}

void listing_raw(struct listing *l, const char *json)
{
    int is_shown;
    const struct column *c = begin(l, &is_shown);
    if (is_shown && l->record)
        json ? record_raw(l->record, c->key, json) : record_null(l->record, c->key);
    end(l);
}

static void blob(struct listing *l, sqlite3_stmt *s, int column)
{
    struct buf text = BUF(256 << 20);
    const unsigned char *data = sqlite3_column_blob(s, column);
    int length = sqlite3_column_bytes(s, column);
    if (l->table)
        buf_printf(&text, "(%d bytes)", length);
    for (int i = 0; l->record && i < length; i++)
        buf_printf(&text, "%02x", data[i]);
    listing_text(l, text.data ? text.data : "");
    buf_free(&text);
}

static void value(struct listing *l, sqlite3_stmt *s, int column)
{
    switch (sqlite3_column_type(s, column)) {
    case SQLITE_INTEGER:
        listing_int(l, sqlite3_column_int64(s, column));
        break;
    case SQLITE_FLOAT:
        real(l, sqlite3_column_double(s, column), l->table ? db_text(s, column) : NULL);
        break;
    case SQLITE_BLOB:
        blob(l, s, column);
        break;
    default:
        listing_text(l, (const char *)sqlite3_column_text(s, column));
    }
}

void listing_columns(struct listing *l, sqlite3_stmt *s, int first, int count)
{
    for (int i = first, end = count < 0 ? first + l->count - l->at : first + count; i < end; i++)
        value(l, s, i);
}

void listing_row(struct listing *l, sqlite3_stmt *s)
{
    listing_columns(l, s, 0, -1);
}

int listing_query(struct listing *l, sqlite3 *db, const char *sql, const char *device, int64_t limit, int64_t *all,
                  struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, sql, &s, err);
    if (rc)
        return rc;
    sqlite3_bind_text(s, 1, device, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, limit > 0 ? limit : -1);
    rc = listing_statement(l, s, all, err);
    sqlite3_finalize(s);
    return rc;
}

int listing_statement(struct listing *l, sqlite3_stmt *s, int64_t *all, struct error *err)
{
    int rc = 0;
    *all = 0;
    while (db_next(s, &rc, err)) {
        *all = sqlite3_column_count(s) > l->count ? sqlite3_column_int64(s, l->count) : *all + 1;
        listing_row(l, s);
    }
    return rc;
}

void listing_heading(struct listing *l)
{
    if (!l->record || l->out->format != REPORT_CSV || l->record->rows)
        return;
    l->record->is_heading = 1;
    for (int i = 0; i < l->count; i++)
        listing_null(l);
}

void listing_print(struct listing *l)
{
    if (!l->table)
        return;
    table_print(l->table, l->out, !l->is_printed++);
    table_close(l->table);
    open_table(l);
}

int listing_print_under(struct listing *l, const char *title, int64_t all)
{
    if (!l->table || !table_rows(l->table))
        return 0;
    table_heading(l->out, title, table_rows(l->table), all);
    listing_print(l);
    return 1;
}
