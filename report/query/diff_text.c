#include "diff_text.h"

#include "../../common/text.h"
#include "bare_code.h"
#include "named_caller.h"

#include <string.h>

const struct diff_item *diff_shown_item(const struct diff_row *row)
{
    return row->item[DIFF_NEW] ? row->item[DIFF_NEW] : row->item[DIFF_OLD];
}

static void add_address(struct buf *out, const struct diff_item *item)
{
    if (!item->module)
        buf_puts(out, "??");
    else if (item->offset < 0)
        buf_printf(out, "%s (no symbols)", text_basename(item->module));
    else
        bare_code_name(item->module, item->offset, out);
}

void diff_name_text(enum row_key by, const struct diff_item *item, const char *base, struct buf *out)
{
    static const char *const none[ROW_KEY_COUNT] = {[ROW_FILE] = "(no source position)", [ROW_MODULE] = "(no module)"};
    const char *path = by == ROW_FILE ? item->file : item->module;
    if (item->is_rest)
        buf_puts(out, by == ROW_OP ? "(no operator)" : "(in no row)");
    else if (by == ROW_LINE || by == ROW_FUNCTION)
        item->name ? buf_puts(out, item->function) : add_address(out, item);
    else if (by == ROW_OP)
        buf_puts(out, item->op ? item->op : "?");
    else if (by == ROW_FILE || by == ROW_MODULE)
        path ? text_path(out, path, base) : buf_puts(out, none[by]);
}

void diff_place_text(enum row_key by, const struct diff_item *item, const char *base, struct buf *out)
{
    if (by == ROW_OP && !item->is_rest)
        buf_printf(out, "%s%s%s", item->phase ? item->phase : "", item->phase && item->module ? " " : "",
                   item->module ? item->module : "");
    if (by != ROW_LINE && by != ROW_FUNCTION)
        return;
    if (item->file)
        text_path(out, item->file, base);
    if (item->file && item->line > 0)
        buf_printf(out, ":%lld", (long long)item->line);
    if (!item->file && item->name && item->module)
        buf_printf(out, "[%s]", text_basename(item->module));
    if (!item->file && item->caller)
        named_caller_text(item->caller, item->other_callers, out);
}

static void add_word(struct buf *out, const char *word)
{
    buf_printf(out, "%s%s", out->length ? ", " : "", word);
}

/* The last component of a path that is not another one's: "a.c", "v1/". */
static void add_component(struct buf *out, const char *path, const char *other)
{
    const char *p = path + strlen(path), *q = other + strlen(other);
    while (p > path && q > other && p[-1] == q[-1])
        p--, q--;
    while (p > path && p[-1] != '/')
        p--;
    const char *slash = strchr(p, '/');
    buf_add(out, p, slash ? (size_t)(slash + 1 - p) : strlen(p));
}

static void add_line(struct buf *out, int64_t line)
{
    if (line > 0)
        buf_printf(out, "%lld", (long long)line);
    else
        buf_puts(out, "unknown");
}

/* "moved 3 -> 6"; "line 56 -> unknown": whether it moved is not known where one side has no number. */
static void add_lines(struct buf *out, const struct diff_row *row)
{
    const struct diff_item *old = row->item[DIFF_OLD], *new = row->item[DIFF_NEW];
    if (!diff_line_differs(row))
        return;
    add_word(out, row->match == DIFF_MOVED ? diff_match_names[DIFF_MOVED] : "line");
    buf_putc(out, ' ');
    add_line(out, old->line);
    buf_puts(out, " -> ");
    add_line(out, new->line);
}

/* "renamed from a.c"; "by name" where one side alone has a source position, so that no path says anything. */
static void add_renamed(struct buf *out, const struct diff_item *old, const struct diff_item *new)
{
    const int has_file = old->file && new->file;
    const char *from = has_file ? old->file : old->module, *to = has_file ? new->file : new->module;
    if (!has_file && (old->file || new->file)) {
        add_word(out, "by name");
        return;
    }
    add_word(out, diff_match_names[DIFF_RENAMED]);
    if (from && to) {
        buf_puts(out, " from ");
        add_component(out, from, to);
    }
}

void diff_how_text(const struct diff_row *row, struct buf *out)
{
    const struct diff_item *old = row->item[DIFF_OLD], *new = row->item[DIFF_NEW];
    const enum diff_match match = row->match == DIFF_MOVED ? new->match : row->match;
    if (match == DIFF_RENAMED)
        add_renamed(out, old, new);
    else if (match != DIFF_SAME && match != DIFF_MOVED)
        add_word(out, diff_match_names[match]);
    add_lines(out, row);
    if (row->is_by_number)
        add_word(out, "by number");
    if (row->is_noise)
        add_word(out, "noise");
}
