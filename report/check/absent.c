/* Places that name no code of the recording: which were meant, where the name is a slip of another one. */
#include "check_private.h"

#include "../../common/match.h"
#include "../../common/near.h"
#include "../../common/text.h"
#include "../query/bare_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NEAREST = 3, WRONG_FILE = NEAR_NEVER };

struct near {
    char *name[NEAREST];
    int steps[NEAREST], count;
};

/* Nearest first, each name once. */
static void keep(struct near *n, const char *name, int steps)
{
    int at = n->count;
    for (int i = 0; i < n->count; i++)
        if (strcmp(n->name[i], name) == 0)
            return;
    while (at && n->steps[at - 1] > steps)
        at--;
    if (at == NEAREST)
        return;
    if (n->count == NEAREST)
        free(n->name[--n->count]);
    memmove(n->name + at + 1, n->name + at, (size_t)(n->count - at) * sizeof *n->name);
    memmove(n->steps + at + 1, n->steps + at, (size_t)(n->count - at) * sizeof *n->steps);
    n->name[at] = xstrdup(name);
    n->steps[at] = steps;
    n->count++;
}

/* How far a row is from what was asked for; -1: too far. Code of that name in another file is the nearest but slips. */
static int steps_to(const struct check_place *place, const struct row *row, const char *file, const char *function)
{
    int is_file = !place->file || (row->file && match_file(place->file, row->file)), file_steps = 0, steps = 0;
    if (!is_file) {
        const int away = file ? near_steps(text_filename(place->file), file) : NEAR_NEVER;
        file_steps = file && near_is_slip(away, file) ? away : WRONG_FILE;
    }
    if (place->line) {
        return is_file && row->line > 0 ? abs((int)(row->line - place->line)) : -1;
    }
    if (place->function)
        steps = function ? near_steps(place->function, function) : NEAR_NEVER;
    if (steps && !(function && near_is_slip(steps, function)))
        return -1;
    if (file_steps == WRONG_FILE && (steps || !place->function))
        return -1;
    return steps + file_steps;
}

static void look_at(const struct check_place *place, const struct row *row, struct near *near)
{
    const char *file = row->file ? text_filename(row->file) : NULL;
    const char *function = row->plain_name ? row->plain_name : row->function;
    struct buf name = BUF(1 << 12);
    int steps = steps_to(place, row, file, function);
    if (steps < 0)
        return;
    if (file && (place->file || place->line))
        buf_printf(&name, "%s:", file);
    if (place->line)
        buf_printf(&name, "%lld", (long long)row->line);
    else if (place->function)
        buf_puts(&name, function);
    if (!name.failed && name.length)
        keep(near, name.data, steps);
    buf_free(&name);
}

void check_absent_note(const struct check_place *place, const struct rows *rows, char *note, size_t size)
{
    struct near near = {.count = 0};
    struct buf text = BUF(1 << 14);
    for (int i = 0; i < rows->count; i++)
        look_at(place, &rows->row[i], &near);
    buf_puts(&text, "no code of that name is in the recording");
    for (int i = 0; i < near.count; i++) {
        buf_printf(&text, "%s'%s'", i ? ", " : "; did you mean ", near.name[i]);
        free(near.name[i]);
    }
    if (near.count)
        buf_putc(&text, '?');
    else if (place->function && bare_code_is_name(place->function))
        buf_puts(&text, "; " BARE_CODE_OF_ONE_BUILD);
    snprintf(note, size, "%.*s", (int)size - 1, buf_text(&text));
    buf_free(&text);
}
