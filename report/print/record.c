#include "record.h"

#include "../../common/text.h"

#include <math.h>
#include <string.h>

void record_open(struct record *r, const struct report_out *out)
{
    *r = (struct record){.out = out, .line = BUF(64 << 20), .heading = BUF(1 << 20)};
}

void record_open_in(struct record *r, struct buf *json)
{
    static const struct report_out out = {.format = REPORT_JSON};
    record_open(r, &out);
    r->array = json;
    buf_putc(json, '[');
}

void record_close(struct record *r)
{
    if (r->array)
        buf_putc(r->array, ']');
    buf_free(&r->line);
    buf_free(&r->heading);
}

void record_json_string(struct buf *out, const char *text)
{
    if (!text) {
        buf_puts(out, "null");
        return;
    }
    buf_putc(out, '"');
    buf_json(out, text);
    buf_putc(out, '"');
}

static int is_json(const struct record *r)
{
    return r->out->format == REPORT_JSON;
}

void record_document_begin(struct record *r)
{
    if (is_json(r))
        fputs("{", r->out->file);
    r->fields = 0;
}

void record_document_end(struct record *r)
{
    if (is_json(r))
        fputs("\n}\n", r->out->file);
}

static void member(struct record *r, const char *key)
{
    fprintf(r->out->file, "%s\n\"%s\": ", r->fields++ ? "," : "", key);
}

void record_member_text(struct record *r, const char *key, const char *value)
{
    if (!is_json(r))
        return;
    struct buf text = BUF(64 << 20);
    record_json_string(&text, value);
    member(r, key);
    fputs(text.data, r->out->file);
    buf_free(&text);
}

void record_member_int(struct record *r, const char *key, int64_t value)
{
    if (!is_json(r))
        return;
    member(r, key);
    fprintf(r->out->file, "%lld", (long long)value);
}

void record_array_begin(struct record *r, const char *key)
{
    r->rows = 0;
    r->is_heading = 0;
    if (is_json(r) && key)
        member(r, key);
    if (is_json(r))
        fputs("[", r->out->file);
    r->depth = key != NULL;
}

void record_array_end(struct record *r)
{
    if (is_json(r))
        fputs(r->depth ? "]" : "\n]\n", r->out->file);
    r->fields = 1; /* the document goes on after this member */
}

void record_begin(struct record *r)
{
    buf_reset(&r->line);
    buf_reset(&r->heading);
    r->fields = 0;
}

/* On a terminal nothing in it may be a command to that. */
static void csv_text(const struct record *r, struct buf *out, const char *value)
{
    struct buf valid = BUF(64 << 20);
    if (r->out->width > 0)
        text_clean(&valid, value);
    else
        text_valid(&valid, value);
    buf_csv(out, valid.data);
    buf_free(&valid);
}

static struct buf *field(struct record *r, const char *key)
{
    if (is_json(r)) {
        buf_puts(&r->line, r->fields ? ", " : "");
        record_json_string(&r->line, key);
        buf_puts(&r->line, ": ");
    } else {
        if (r->fields)
            buf_putc(&r->line, ',');
        if (r->rows == 0) {
            if (r->fields)
                buf_putc(&r->heading, ',');
            csv_text(r, &r->heading, key);
        }
    }
    r->fields++;
    return &r->line;
}

void record_text(struct record *r, const char *key, const char *value)
{
    struct buf *out = field(r, key);
    if (is_json(r))
        record_json_string(out, value);
    else if (value)
        csv_text(r, out, value);
}

void record_int(struct record *r, const char *key, int64_t value)
{
    buf_printf(field(r, key), "%lld", (long long)value);
}

void record_int_if(struct record *r, const char *key, int is_known, int64_t value)
{
    if (is_known)
        record_int(r, key, value);
    else
        record_null(r, key);
}

void record_real(struct record *r, const char *key, double value)
{
    if (isfinite(value))
        buf_printf(field(r, key), "%.17g", value);
    else
        record_null(r, key);
}

void record_null(struct record *r, const char *key)
{
    record_text(r, key, NULL);
}

void record_raw(struct record *r, const char *key, const char *json)
{
    if (is_json(r))
        buf_puts(field(r, key), json);
    else
        record_text(r, key, json);
}

void record_end(struct record *r)
{
    FILE *file = r->out->file;
    const char *line = buf_text(&r->line);
    if (r->array) {
        buf_puts(r->array, r->rows ? ", {" : "{");
        buf_puts(r->array, line);
        buf_putc(r->array, '}');
    } else if (is_json(r)) {
        fprintf(file, "%s\n%s{%s}", r->rows ? "," : "", r->depth ? "  " : "", line);
    } else {
        if (r->rows == 0)
            fprintf(file, "%s\n", buf_text(&r->heading));
        if (!r->is_heading)
            fprintf(file, "%s\n", line);
    }
    r->rows++;
}
