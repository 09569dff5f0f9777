/* Which lines of a source file show a function: its end is told from the text, by how far in a line begins. */
#include "lines_private.h"

#include <ctype.h>
#include <string.h>

#define AFTER_LINES 3 /* shown after the last line with data, as far as the function goes */

/* Columns before the first character; -1: there is none. */
static int64_t indent_of(const struct lines *l, int64_t line, char *start)
{
    size_t length = 0;
    int64_t column = 0;
    const char *text = source_line(&l->source, line, &length);
    for (size_t i = 0; text && i < length; i++) {
        if (text[i] != ' ' && text[i] != '\t') {
            *start = text[i];
            return text[i] == '\r' || text[i] == '\n' ? -1 : column;
        }
        column += text[i] == '\t' ? (int64_t)(LINES_TAB - (size_t)column % LINES_TAB) : 1;
    }
    return -1;
}

/* "out:", which stands left of the code */
static int is_label(const struct lines *l, int64_t line)
{
    size_t length = 0, i = 0;
    const char *text = source_line(&l->source, line, &length);
    while (i < length && (isalnum((unsigned char)text[i]) || text[i] == '_'))
        i++;
    return i && i < length && text[i] == ':' && !(i + 1 < length && text[i + 1] == ':');
}

enum { INSIDE, ITS_END, OUTSIDE };

/* Where a line behind the last one with data is: what follows a function is no deeper than its beginning. */
static int place_of(const struct lines *l, int64_t line, int64_t function_indent)
{
    char start = 0;
    int64_t indent = indent_of(l, line, &start);
    if (start == '}' && indent >= 0 && indent <= function_indent)
        return ITS_END;
    if (indent < 0 || indent > function_indent || strchr("#)]{", start) || is_label(l, line))
        return INSIDE;
    return OUTSIDE;
}

void lines_range(const struct lines *l, const struct lines_group *g, int64_t *first, int64_t *last)
{
    int64_t low = g->lines[0].line, high = g->lines[g->line_count - 1].line;
    *first = low;
    *last = high;
    if (g->declared_file_id == g->file_id && g->declared_line > 0 && g->declared_line < low)
        *first = g->declared_line;
    if (!l->source.text)
        return;
    int64_t next = lines_next_function(l->db, g), function_indent = -1;
    char start;
    if (*first < low && *g->name != '<') /* a module, and what has no declaration, has no end to look for */
        function_indent = indent_of(l, *first, &start);
    for (int64_t line = high + 1; line <= l->source.line_count && line - high <= AFTER_LINES && line < next; line++) {
        int place = place_of(l, line, function_indent);
        if (place == OUTSIDE && function_indent >= 0)
            break;
        start = 0;
        int64_t indent = indent_of(l, line, &start);
        if (indent >= 0)
            *last = line;
        /* a brace in the first column ends a function in every common style */
        if (place == ITS_END || (start == '}' && indent == 0))
            break;
    }
}
