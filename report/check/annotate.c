/* GitHub's workflow commands, a line a rule that is not kept. */
#include "check_private.h"

#include "../../common/text.h"

/* As GitHub's runner reads it back; in a property ':' and ',' are escaped, too. Other control characters end a line. */
static void add_data(struct buf *out, const char *text, int is_property)
{
    struct buf clean = BUF(1 << 20);
    text_clean(&clean, text);
    for (const char *p = buf_text(&clean); *p; p++)
        if (*p == '%' || *p == '\r' || *p == '\n' || (is_property && (*p == ':' || *p == ',')))
            buf_printf(out, "%%%02X", (unsigned char)*p);
        else
            buf_putc(out, *p);
    buf_free(&clean);
}

static void add_place(const struct check_culprit *c, const char *base, struct buf *out)
{
    struct buf path = BUF(1 << 16);
    text_path(&path, c->file, base);
    buf_puts(out, "file=");
    add_data(out, buf_text(&path), 1);
    if (c->line > 0)
        buf_printf(out, ",line=%lld", (long long)c->line);
    buf_puts(out, ",");
    buf_free(&path);
}

/* What no rule says, and no line of a file: the program did not end as it should. */
static void annotate_program(const char *failed, FILE *file)
{
    struct buf line = BUF(1 << 16);
    buf_puts(&line, "::error title=");
    add_data(&line, "memprof: program", 1);
    buf_puts(&line, "::");
    add_data(&line, failed, 0);
    fprintf(file, "%s\n", buf_text(&line));
    buf_free(&line);
}

void check_annotate(const struct check_options *o, const struct check_results *results, const char *base, FILE *file)
{
    if (o->failed)
        annotate_program(o->failed, file);
    for (int i = 0; i < results->count; i++) {
        const struct check_result *r = &results->result[i];
        const struct check_culprit *c = r->culprit_count ? &r->culprits[0] : NULL;
        struct buf line = BUF(1 << 20), text = BUF(1 << 20);
        if (r->verdict == CHECK_KEPT)
            continue;
        buf_puts(&line, "::error ");
        if (c && c->file)
            add_place(c, base, &line);
        buf_puts(&line, "title=");
        buf_puts(&text, "memprof: ");
        check_name_text(r, CHECK_NAMES_SHORT, &text);
        add_data(&line, buf_text(&text), 1);
        buf_puts(&line, "::");
        buf_reset(&text);
        check_measured_text(r, &text);
        buf_puts(&text, ", ");
        check_limit_text(o, results, r, &text);
        if (c) {
            buf_puts(&text, "; ");
            check_culprit_text(r, c, CHECK_NAMES_SHORT, base, &text);
        }
        add_data(&line, buf_text(&text), 0);
        fprintf(file, "%s\n", buf_text(&line));
        buf_free(&line);
        buf_free(&text);
    }
}
