#include "table.h"

#include "../../common/array.h"
#include "../../common/units.h"
#include "distinct.h"

#include <stdlib.h>
#include <string.h>

#define GAP           2  /* spaces between columns */
#define READABLE_CELL 26 /* names are cut down to this before columns are left out, and to SHORTEST_CELL after that */
#define SHORTEST_CELL 12
#define PIPE_CELL                                                                                                      \
    60 /* in a pipe nothing is cut, but one long name does not push those of all rows to the right; of                 \
        * functions that are wider, arguments and template arguments are left out */
#define LEFT_OUT (-GAP) /* width of a column that is not shown: it takes no gap either */

struct table {
    const struct column *columns[TABLE_COLUMNS_MAX];
    int column_count;
    char **cells;          /* owned strings, row after row; NULL: empty */
    unsigned char *styles; /* by row */
    int row_count;         /* the row after these is being filled */
    int row_capacity;
};

/* Makes room for the row being filled. */
static void grow(struct table *t)
{
    if (t->row_count < t->row_capacity)
        return;
    size_t old = (size_t)t->row_capacity, capacity = old ? old * 2 : 16, width = (size_t)t->column_count;
    t->cells = xrealloc(t->cells, capacity * width * sizeof *t->cells);
    memset(t->cells + old * width, 0, (capacity - old) * width * sizeof *t->cells);
    t->styles = xrealloc(t->styles, capacity);
    memset(t->styles + old, TABLE_PLAIN, capacity - old);
    t->row_capacity = (int)capacity;
}

struct table *table_open(const struct column *const columns[], int count)
{
    if (count < 1 || count > TABLE_COLUMNS_MAX)
        bug("a table of %d columns", count);
    struct table *t = xcalloc(1, sizeof *t);
    memcpy(t->columns, columns, (size_t)count * sizeof *columns);
    t->column_count = count;
    grow(t);
    return t;
}

void table_close(struct table *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->row_capacity * t->column_count; i++)
        free(t->cells[i]);
    free(t->cells);
    free(t->styles);
    free(t);
}

int table_rows(const struct table *t)
{
    return t->row_count;
}

void table_row_style(struct table *t, enum table_style style)
{
    t->styles[t->row_count] = (unsigned char)style;
}

static char **cell_at(const struct table *t, int row, int column)
{
    return &t->cells[row * t->column_count + column];
}

void table_cell(struct table *t, int column, const char *text)
{
    struct buf clean = BUF(1 << 20);
    char **cell = cell_at(t, t->row_count, column);
    if (text)
        text_clean(&clean, text);
    free(*cell);
    *cell = clean.data;
}

void table_row_end(struct table *t)
{
    t->row_count++;
    grow(t);
}

static const char *text_at(const struct table *t, int row, int column)
{
    const char *text = *cell_at(t, row, column);
    return text ? text : "";
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
        if (widths[c] != LEFT_OUT && strchr(t->columns[c]->title, '\n'))
            rows = 2;
    return rows;
}

static int has_titles(const struct table *t)
{
    for (int c = 0; c < t->column_count; c++)
        if (*t->columns[c]->title)
            return 1;
    return 0;
}

static void measure(const struct table *t, int widths[])
{
    const char *part;
    for (int c = 0; c < t->column_count; c++) {
        int second = title_part(t->columns[c]->title, 1, &part);
        widths[c] = title_part(t->columns[c]->title, 0, &part);
        widths[c] = second > widths[c] ? second : widths[c];
    }
    for (int row = 0; row < t->row_count; row++)
        for (int c = 0; c < t->column_count; c++) {
            int width = text_width(text_at(t, row, c));
            widths[c] = width > widths[c] ? width : widths[c];
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
            if (t->columns[c]->cut != TEXT_CUT_NONE && widths[c] > least && (widest < 0 || widths[c] > widths[widest]))
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
        if (!(t->columns[c]->flags & COLUMN_OPTIONAL))
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
        if (t->columns[c]->cut != TEXT_CUT_NAME || widths[c] >= natural[c] || widths[c] == LEFT_OUT)
            continue;
        int most = title_part(t->columns[c]->title, 0, &part);
        for (int row = 0; row < t->row_count; row++) {
            struct buf cell = BUF(1 << 20);
            text_fit(&cell, text_at(t, row, c), widths[c], TEXT_CUT_NAME, utf8);
            int shown = cell.data ? text_width(cell.data) : 0;
            most = shown > most ? shown : most;
            buf_free(&cell);
        }
        widths[c] = most;
    }
    for (int c = 0; c < t->column_count; c++) {
        int room = width - total_width(t, widths), wish = natural[c] - widths[c];
        if (t->columns[c]->cut != TEXT_CUT_NONE && t->columns[c]->cut != TEXT_CUT_NAME && widths[c] != LEFT_OUT &&
            room > 0)
            widths[c] += wish < room ? wish : room;
    }
}

/* is_free: longer text goes beyond the column. */
static void add_cell(struct buf *line, const struct column *column, int width, int is_free, const char *text, int utf8)
{
    struct buf cell = BUF(1 << 20);
    text_fit(&cell, text, width, is_free ? TEXT_CUT_NONE : column->cut, utf8);
    const char *shown = buf_text(&cell);
    int pad = width - text_width(shown);
    int is_right = column->unit >= COLUMN_NUMBER;
    if (is_right)
        buf_printf(line, "%*s", pad > 0 ? pad : 0, "");
    buf_puts(line, shown);
    if (!is_right)
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
        add_cell(&line, t->columns[c], widths[c], out->width <= 0, cells[c], out->utf8);
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
            int length = title_part(t->columns[c]->title, row, &part);
            snprintf(titles[c], sizeof titles[c], "%.*s", length, part);
            cells[c] = titles[c];
        }
        print_row(t, out, widths, cells, TABLE_STRONG);
    }
}

static int is_name(const struct table *t, int row, int c)
{
    return t->columns[c]->cut == TEXT_CUT_NAME || text_is_caller(text_at(t, row, c));
}

/* Shortens the names of a column to width, or in a pipe (0) as far as goes without a mark; those that look alike then
 * keep what tells them apart. */
static void shorten_names(struct table *t, int c, int width, int utf8)
{
    const char **texts = xcalloc((size_t)t->row_count + 1, sizeof *texts);
    char **shown = xcalloc((size_t)t->row_count + 1, sizeof *shown);
    size_t count = 0;
    for (int row = 0; row < t->row_count; row++) {
        struct buf name = BUF(1 << 20);
        if (!is_name(t, row, c))
            continue;
        if (width)
            text_fit(&name, text_at(t, row, c), width, TEXT_CUT_NAME, utf8);
        else
            text_bare_name(&name, text_at(t, row, c), PIPE_CELL);
        texts[count] = text_at(t, row, c);
        shown[count++] = name.data ? buf_take(&name) : xstrdup("");
    }
    distinct_names(texts, shown, count, width, utf8);
    for (int row = 0, at = 0; row < t->row_count; row++) {
        if (!is_name(t, row, c))
            continue;
        char **cell = cell_at(t, row, c);
        free(*cell);
        *cell = shown[at++];
    }
    free(texts);
    free(shown);
}

void table_print(struct table *t, const struct report_out *out, int with_titles)
{
    const char *cells[TABLE_COLUMNS_MAX];
    int widths[TABLE_COLUMNS_MAX] = {0};
    for (int c = 0; c < t->column_count && out->width <= 0; c++)
        shorten_names(t, c, 0, out->utf8);
    measure(t, widths);
    if (out->width > 0) {
        int natural[TABLE_COLUMNS_MAX];
        memcpy(natural, widths, sizeof natural);
        fit(t, widths, out->width);
        for (int c = 0; c < t->column_count; c++)
            if (t->columns[c]->cut == TEXT_CUT_NAME && widths[c] > 0 && widths[c] < natural[c])
                shorten_names(t, c, widths[c], out->utf8);
        tighten(t, widths, natural, out->width, out->utf8);
    }
    for (int c = 0; c < t->column_count && out->width <= 0; c++)
        if (t->columns[c]->cut != TEXT_CUT_NONE && widths[c] > PIPE_CELL)
            widths[c] = PIPE_CELL;
    if (with_titles && has_titles(t))
        print_titles(t, out, widths);
    for (int row = 0; row < t->row_count; row++) {
        for (int c = 0; c < t->column_count; c++)
            cells[c] = text_at(t, row, c);
        print_row(t, out, widths, cells, (enum table_style)t->styles[row]);
    }
}

void table_line(const struct report_out *out, enum table_style style, const char *text)
{
    struct buf line = BUF(1 << 20);
    text_clean(&line, text);
    write_line(out, style, &line);
    buf_free(&line);
}

/* As much of a text as fits, to a space: its length; at least one word. */
static size_t fitting(const char *text, int room)
{
    size_t end = 0, at = 0;
    while (text[at]) {
        size_t word = at + strspn(text + at, " ");
        word += strcspn(text + word, " ");
        struct buf part = BUF(1 << 20);
        buf_add(&part, text, word);
        int width = text_width(buf_text(&part));
        buf_free(&part);
        if (end && width > room)
            break;
        end = at = word;
    }
    return end;
}

void table_prose(const struct report_out *out, enum table_style style, const char *text)
{
    struct buf clean = BUF(1 << 20), line = BUF(1 << 20);
    text_clean(&clean, text);
    const char *at = buf_text(&clean);
    int indent = (*at == '!' || *at == '*') && at[1] == ' ' ? 2 : 0;
    if (out->width <= indent) {
        write_line(out, style, &clean);
        buf_free(&clean);
        return;
    }
    buf_add(&line, at, (size_t)indent);
    at += indent;
    do {
        size_t length = fitting(at, out->width - indent);
        buf_add(&line, at, length);
        write_line(out, style, &line);
        buf_printf(&line, "%*s", indent, "");
        at += length;
        at += strspn(at, " ");
    } while (*at);
    buf_free(&line);
    buf_free(&clean);
}

void table_heading(const struct report_out *out, const char *title, int64_t shown, int64_t all)
{
    struct buf line = BUF(4096);
    char count[2][UNITS_TEXT];
    buf_puts(&line, title);
    if (shown < all)
        buf_printf(&line, " (%s of %s)", units_count(count[0], shown), units_count(count[1], all));
    fputc('\n', out->file);
    table_prose(out, TABLE_STRONG, buf_text(&line));
    buf_free(&line);
}
