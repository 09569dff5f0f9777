#include "stack.h"

#include "../print/listing.h"

void stack_print(const struct walk_stack *stack, const struct report_out *out, const char *base, int64_t limit,
                 const char *indent)
{
    static const struct column columns[] = {
        COLUMN(NULL, "", TEXT),
        COLUMN(NULL, "", TEXT, .cut = TEXT_CUT_NAME, .none = "??"),
        COLUMN(NULL, "", TEXT, .cut = TEXT_CUT_LEFT),
    };
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), out, NULL);
    int first, last;
    walk_shown(stack, &first, &last);
    struct buf text = BUF(1 << 20);
    for (int i = first; i < last && (limit <= 0 || i - first < limit); i++) {
        buf_reset(&text);
        buf_printf(&text, "%s#%d", indent, i - first);
        listing_text(l, text.data);
        listing_text(l, stack->frames[i]->function);
        buf_reset(&text);
        walk_place(stack->frames[i], base, &text);
        listing_text(l, text.data);
    }
    listing_print(l);
    buf_reset(&text);
    if (stack->count == 0)
        buf_printf(&text, stack->is_hidden ? "%s(no frame of this language)" : "%s(no stack)", indent);
    else if (limit > 0 && last - first > limit)
        buf_printf(&text, "%s... %lld more frame%s (--frames 0 shows all)", indent, (long long)(last - first - limit),
                   last - first - limit == 1 ? "" : "s");
    else if (stack->is_cut)
        buf_printf(&text, "%s... deeper frames were not recorded (memprof run --depth)", indent);
    else if (stack->is_unknown)
        buf_printf(&text, "%s... the callers are unknown: no unwind information", indent);
    if (text.length)
        table_line(out, TABLE_DIM, text.data);
    buf_free(&text);
    listing_close(l);
}

void stack_json(const struct walk_stack *stack, struct buf *json)
{
    struct record r;
    record_open_in(&r, json);
    for (int i = 0; i < stack->count; i++) {
        const struct walk_frame *f = stack->frames[i];
        record_begin(&r);
        record_text(&r, "function", f->function);
        record_text(&r, "file", f->file);
        record_int_if(&r, "line", f->line > 0, f->line);
        record_text(&r, "module", f->module);
        record_int(&r, "offset", f->offset);
        record_int(&r, "is_inline", f->is_inline);
        record_int(&r, "is_allocator", f->is_allocator);
        record_int(&r, "is_python", f->is_python);
        record_end(&r);
    }
    record_close(&r);
}
