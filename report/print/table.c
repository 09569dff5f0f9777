#include "table.h"

#include "../../common/array.h"
#include "../../common/units.h"

#include <stdlib.h>
#include <string.h>

#define GAP           2  /* spaces between columns */
#define READABLE_CELL 26 /* names are cut down to this before columns are left out, and to SHORTEST_CELL after that */
#define SHORTEST_CELL 12
#define PIPE_CELL     60 /* in a pipe nothing is cut, but one long name does not push those of all rows to the right */
#define LEFT_OUT      (-GAP) /* width of a column that is not shown: it takes no gap either */

struct table {
    const struct table_column *columns;
    int column_count;
    char **cells; /* owned strings, row after row */
    int cell_count;
    int cell_capacity;
    unsigned char *styles; /* by row */
    int style_capacity;
};

struct table *table_open(const struct table_column *columns, int count)
{
    if (count < 1 || count > TABLE_COLUMNS_MAX)
        bug("a table of %d columns", count);
    struct table *t = xcalloc(1, sizeof *t);
    t->columns = columns;
    t->column_count = count;
    return t;
}

void table_close(struct table *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->cell_count; i++)
        free(t->cells[i]);
    free(t->cells);
    free(t->styles);
    free(t);
}

int table_rows(const struct table *t)
{
    return t->cell_count / t->column_count;
}

void table_row_style(struct table *t, enum table_style style)
{
    int row = table_rows(t);
    ARRAY_ROOM_ZERO(t->styles, row + 1, t->style_capacity);
    t->styles[row] = (unsigned char)style;
}

void table_text(struct table *t, const char *text)
{
    struct buf clean = BUF(1 << 20);
    text_clean(&clean, text);
    *ARRAY_ADD(t->cells, t->cell_count, t->cell_capacity) = buf_take(&clean);
}

void table_bytes(struct table *t, int64_t size_bytes)
{
    char text[UNITS_TEXT];
    table_text(t, units_bytes(text, size_bytes));
}

void table_bytes_short(struct table *t, int64_t size_bytes)
{
    char text[UNITS_TEXT];
    table_text(t, units_bytes_short(text, size_bytes));
}

void table_count(struct table *t, int64_t count)
{
    char text[UNITS_TEXT];
    table_text(t, units_count(text, count));
}

void table_ns(struct table *t, int64_t time_ns)
{
    char text[UNITS_TEXT];
    table_text(t, units_ns(text, time_ns));
}

void table_share(struct table *t, int64_t part, int64_t whole)
{
    char text[UNITS_TEXT] = "";
    if (whole > 0)
        snprintf(text, sizeof text, "%.1f %%", 100 * (double)part / (double)whole);
    table_text(t, text);
}

/* Width of one row of a title: its parts are separated by newlines. Returns the part's bytes. */
static int title_part(const char *title, int row, const char **part)
{
    while (row-- > 0) {
        const char *end = strchr(title, '\n');
        title = end ? end + 1 : title + strlen(title);
    }
    *part = title;
    return (int)strcspn(title, "\n");
}

static int title_rows(const struct table *t, const int widths[])
{
    int rows = 1;
    for (int c = 0; c < t->column_count; c++)
        if (widths[c] != LEFT_OUT && strchr(t->columns[c].title, '\n'))
            rows = 2;
    return rows;
}

static void measure(const struct table *t, int widths[])
{
    const char *part;
    for (int c = 0; c < t->column_count; c++) {
        int second = title_part(t->columns[c].title, 1, &part);
        widths[c] = title_part(t->columns[c].title, 0, &part);
        widths[c] = second > widths[c] ? second : widths[c];
    }
    for (int i = 0; i < t->cell_count; i++) {
        int width = text_width(t->cells[i]);
        if (width > widths[i % t->column_count])
            widths[i % t->column_count] = width;
    }
}

static int total_width(const struct table *t, const int widths[])
{
    int total = -GAP;
    for (int c = 0; c < t->column_count; c++)
        total += widths[c] + GAP;
    return total;
}

/* Takes columns of the terminal from the widest names until the table fits or they are as short as least. */
static void cut_names(const struct table *t, int widths[], int width, int least)
{
    for (int excess = total_width(t, widths) - width; excess > 0; excess--) {
        int widest = -1;
        for (int c = 0; c < t->column_count; c++)
            if (t->columns[c].cut != TEXT_CUT_NONE && widths[c] > least && (widest < 0 || widths[c] > widths[widest]))
                widest = c;
        if (widest < 0)
            break;
        widths[widest]--;
    }
}

static void fit(const struct table *t, int widths[], int width)
{
    int natural[TABLE_COLUMNS_MAX];
    memcpy(natural, widths, sizeof natural);
    cut_names(t, widths, width, READABLE_CELL);
    for (int c = t->column_count - 1; c >= 0 && total_width(t, widths) > width; c--) {
        if (!t->columns[c].is_optional)
            continue;
        natural[c] = LEFT_OUT;
        memcpy(widths, natural, sizeof natural);
        cut_names(t, widths, width, READABLE_CELL);
    }
    cut_names(t, widths, width, SHORTEST_CELL);
}

/* Names may have become shorter than their column: what that leaves goes to others that were cut. */
static void tighten(const struct table *t, int widths[], const int natural[], int width, int utf8)
{
    const char *part;
    for (int c = 0; c < t->column_count; c++) {
        if (t->columns[c].cut != TEXT_CUT_NAME || widths[c] >= natural[c] || widths[c] == LEFT_OUT)
            continue;
        int most = title_part(t->columns[c].title, 0, &part);
        for (int i = c; i < t->cell_count; i += t->column_count) {
            struct buf cell = BUF(1 << 20);
            text_fit(&cell, t->cells[i], widths[c], TEXT_CUT_NAME, utf8);
            int shown = cell.data ? text_width(cell.data) : 0;
            most = shown > most ? shown : most;
            buf_free(&cell);
        }
        widths[c] = most;
    }
    for (int c = 0; c < t->column_count; c++) {
        int room = width - total_width(t, widths), wish = natural[c] - widths[c];
        if (t->columns[c].cut != TEXT_CUT_NONE && t->columns[c].cut != TEXT_CUT_NAME && widths[c] != LEFT_OUT &&
            room > 0)
            widths[c] += wish < room ? wish : room;
    }
}

/* is_free: longer text goes beyond the column. */
static void add_cell(struct buf *line, const struct table_column *column, int width, int is_free, const char *text,
                     int utf8)
{
    struct buf cell = BUF(1 << 20);
    text_fit(&cell, text, width, is_free ? TEXT_CUT_NONE : column->cut, utf8);
    const char *shown = buf_text(&cell);
    int pad = width - text_width(shown);
    if (column->align == TABLE_RIGHT)
        buf_printf(line, "%*s", pad > 0 ? pad : 0, "");
    buf_puts(line, shown);
    if (column->align == TABLE_LEFT)
        buf_printf(line, "%*s", pad > 0 ? pad : 0, "");
    buf_free(&cell);
}

static void write_line(const struct report_out *out, enum table_style style, struct buf *line)
{
    static const char *const codes[] = {[TABLE_PLAIN] = "", [TABLE_DIM] = "\033[2m", [TABLE_STRONG] = "\033[1m"};
    while (line->length && line->data[line->length - 1] == ' ')
        line->data[--line->length] = 0;
    const char *code = out->color ? codes[style] : "";
    fprintf(out->file, "%s%s%s\n", code, buf_text(line), *code ? "\033[0m" : "");
    buf_reset(line);
}

/* One row of the table, or of its title. */
static void print_row(const struct table *t, const struct report_out *out, const int widths[],
                      const char *const cells[], enum table_style style)
{
    struct buf line = BUF(1 << 24);
    int shown = 0;
    for (int c = 0; c < t->column_count; c++) {
        if (widths[c] == LEFT_OUT)
            continue;
        buf_printf(&line, "%*s", shown++ ? GAP : 0, "");
        add_cell(&line, &t->columns[c], widths[c], out->width <= 0, cells[c], out->utf8);
    }
    write_line(out, style, &line);
    buf_free(&line);
}

static void print_titles(const struct table *t, const struct report_out *out, const int widths[])
{
    char titles[TABLE_COLUMNS_MAX][64];
    const char *cells[TABLE_COLUMNS_MAX];
    for (int row = 0; row < title_rows(t, widths); row++) {
        for (int c = 0; c < t->column_count; c++) {
            const char *part;
            int length = title_part(t->columns[c].title, row, &part);
            snprintf(titles[c], sizeof titles[c], "%.*s", length, part);
            cells[c] = titles[c];
        }
        print_row(t, out, widths, cells, TABLE_STRONG);
    }
}

static void print(const struct table *t, const struct report_out *out, int with_titles)
{
    int widths[TABLE_COLUMNS_MAX] = {0};
    measure(t, widths);
    if (out->width > 0) {
        int natural[TABLE_COLUMNS_MAX];
        memcpy(natural, widths, sizeof natural);
        fit(t, widths, out->width);
        tighten(t, widths, natural, out->width, out->utf8);
    }
    for (int c = 0; c < t->column_count && out->width <= 0; c++)
        if (t->columns[c].cut != TEXT_CUT_NONE && widths[c] > PIPE_CELL)
            widths[c] = PIPE_CELL;
    if (with_titles)
        print_titles(t, out, widths);
    for (int row = 0; row < table_rows(t); row++)
        print_row(t, out, widths, (const char *const *)t->cells + row * t->column_count,
                  row < t->style_capacity ? (enum table_style)t->styles[row] : TABLE_PLAIN);
}

void table_print(const struct table *t, const struct report_out *out)
{
    print(t, out, 1);
}

void table_print_rows(const struct table *t, const struct report_out *out)
{
    print(t, out, 0);
}

void table_line(const struct report_out *out, enum table_style style, const char *text)
{
    struct buf line = BUF(1 << 20);
    text_clean(&line, text);
    write_line(out, style, &line);
    buf_free(&line);
}
