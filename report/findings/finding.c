#include "finding.h"

#include "../../common/units.h"
#include "../print/command.h"
#include "../print/table.h"
#include "../query/short_name.h"
#include "../query/wrapper.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define PRINTED 3

/* --- the page ---------------------------------------------------------------------------------------------------- */

/* <a href="#device=NAME: the page's script selects it; the caller adds what of it, and what the link says. */
static void device_link(struct buf *html, const char *class, const char *device)
{
    buf_printf(html, "<a%s href=\"#device=", class);
    for (const char *p = device; *p; p++)
        if (isalnum((unsigned char)*p) || strchr(":-_.", *p))
            buf_putc(html, *p);
        else
            buf_printf(html, "%%%02X", (unsigned char)*p);
}

/* A function as the page's tables have it. */
static void html_name(struct buf *html, const char *text)
{
    char *name = xstrdup(text);
    short_name_unbuilt(name);
    buf_html(html, name);
    free(name);
}

static void html_code(struct buf *html, const char *text)
{
    buf_puts(html, "<code>");
    html_name(html, text);
    buf_puts(html, "</code>");
}

/* A line as a link: the page's script shows its stacks and source. */
static void html_line(struct buf *html, const struct finding *f, const struct finding_part *part, int64_t line)
{
    if (line < 0) {
        html_code(html, part->text);
        return;
    }
    device_link(html, " class=\"fn\"", f->device);
    buf_printf(html, "&amp;at=%s&amp;line=%lld\">", part->anchor, (long long)line);
    html_name(html, part->text);
    buf_puts(html, "</a>");
}

/* What a runtime has to offer is a part of a sentence elsewhere. */
static const char *next_end(const struct finding *f)
{
    size_t length = strlen(f->next);
    return length && strchr(".:?", f->next[length - 1]) ? "" : ".";
}

static void html_look(struct buf *html, const struct finding *f, const struct finding_part *part)
{
    buf_putc(html, ' ');
    if (part->kind == FINDING_SECTION)
        buf_printf(html, "<a href=\"#%s\">", part->anchor);
    else
        device_link(html, "", f->device);
    if (part->kind == FINDING_MOMENT)
        buf_printf(html, "&amp;time=%lld\">", (long long)part->number);
    else if (part->kind == FINDING_PEAK)
        buf_puts(html, "&amp;at=peak\">");
    buf_html(html, part->text);
    buf_puts(html, "</a>.");
}

static void html_saving(const struct finding *f, struct buf *html)
{
    struct buf saving = BUF(1024);
    finding_saving(f, &saving);
    if (saving.length) {
        buf_printf(html, "<p class=\"saves\">%s", *finding_mark(f) == '?' ? "If it is not meant so, it " : "It ");
        buf_html(html, buf_text(&saving));
        buf_puts(html, ".</p>");
    }
    buf_free(&saving);
}

/* A number by the end of its name. */
static const char *number_text(char text[UNITS_TEXT], const struct finding_number *number)
{
    const size_t length = strlen(number->name);
    if (length > 3 && strcmp(number->name + length - 3, "_ns") == 0)
        return units_ns(text, number->value);
    return strstr(number->name, "bytes") ? units_bytes(text, number->value) : units_count(text, number->value);
}

/* What it was told from. */
static void html_evidence(const struct finding *f, struct buf *html)
{
    char text[UNITS_TEXT];
    if (!f->number_count)
        return;
    buf_puts(html, "<details class=\"evidence\"><summary>Evidence</summary><dl>");
    for (int i = 0; i < f->number_count; i++)
        buf_printf(html, "<dt>%s</dt><dd>%s</dd>", f->numbers[i].name, number_text(text, &f->numbers[i]));
    buf_puts(html, "</dl></details>");
}

/* For a finding with skips. */
static void add_command(const struct findings *all, const struct finding *f, struct buf *text)
{
    buf_puts(text, "memprof report");
    command_add_file(text, all->file);
    buf_puts(text, buf_text(&f->skips));
}

void findings_html(const struct findings *all, struct buf *html, finding_page_line *line, void *context)
{
    static const char *const classes[] = {"bad", "warn", "info"};
    for (size_t i = 0; i < all->count; i++) {
        const struct finding *f = &all->item[i];
        buf_printf(html, "<li class=\"finding %s\" data-rule=\"%s\"><h3>%s", classes[f->severity], f->rule, f->title);
        if (all->device_count > 1) {
            buf_puts(html, " <span class=\"device\">");
            buf_html(html, f->device);
            buf_puts(html, "</span>");
        }
        buf_puts(html, "</h3><p>");
        for (const struct finding_part *part = f->parts; part < f->parts + f->part_count; part++)
            if (part->kind == FINDING_TEXT)
                buf_html(html, part->text);
            else if (part->kind == FINDING_CODE)
                html_code(html, part->text);
            else if (part->kind == FINDING_LINE)
                html_line(html, f, part, line(context, part->number));
            else
                html_look(html, f, part);
        buf_puts(html, "</p>");
        if (f->next) {
            buf_puts(html, "<p class=\"next\">");
            buf_html(html, f->next);
            buf_puts(html, next_end(f));
            if (f->skips.length) {
                struct buf command = BUF(1 << 16);
                add_command(all, f, &command);
                buf_puts(html, " <code>");
                buf_html(html, buf_text(&command));
                buf_puts(html, "</code>");
                buf_free(&command);
            }
            buf_puts(html, "</p>");
        }
        html_saving(f, html);
        html_evidence(f, html);
        buf_puts(html, "</li>\n");
    }
    if (all->leaves_events)
        buf_puts(
            html,
            "<li class=\"finding info note\"><p>This recording is so large that the page does not "
            "read all of its events: what is saved is a bound. <code>memprof advise</code> reads them.</p></li>\n");
}

/* --- the terminal and JSON --------------------------------------------------------------------------------------- */

void finding_plain(const struct finding *f, struct buf *text)
{
    for (const struct finding_part *part = f->parts; part < f->parts + f->part_count; part++)
        if (part->kind <= FINDING_LINE)
            buf_puts(text, part->text);
}

void finding_next(const struct findings *all, const struct finding *f, struct buf *text)
{
    if (!f->next)
        return;
    buf_printf(text, "%s%s%s", f->next, next_end(f), f->skips.length ? " " : "");
    if (f->skips.length)
        add_command(all, f, text);
}

const char *finding_mark(const struct finding *f)
{
    if (f->severity < FINDING_INFO)
        return "* ";
    return finding_saves_much(f) ? "? " : "";
}

void finding_saving(const struct finding *f, struct buf *text)
{
    static const char *const claims[] = {NULL, "", "at most ", "at least "};
    static const char *const bases[] = {"of a peak of", "of a reserved peak of", "that come on top of a peak of"};
    char saved[UNITS_TEXT], peak[UNITS_TEXT];
    if (f->claim == FINDING_UNCLAIMED)
        return;
    if (f->saved_bytes == 0)
        buf_puts(text, "saves nothing at the peak");
    else
        buf_printf(text, "saves %s%s %s %s", claims[f->claim], units_bytes(saved, f->saved_bytes), bases[f->base],
                   units_bytes(peak, f->peak_bytes));
}

static void print(const struct finding *f, const char *mark, enum table_style style, const struct report_out *out)
{
    struct buf line = BUF(1 << 16);
    buf_printf(&line, "%s%s: ", mark, f->title);
    finding_plain(f, &line);
    table_prose(out, style, buf_text(&line));
    buf_free(&line);
}

static int is_for_terminals(const struct finding *f)
{
    return !f->is_minor && !(f->is_listed && f->severity == FINDING_INFO);
}

/* How many have no line. */
static void print_rest(const struct findings *all, int printed, const struct report_out *out)
{
    char line[128];
    int count = -printed;
    for (size_t i = 0; i < all->count; i++)
        count += is_for_terminals(&all->item[i]);
    if (count <= 0)
        return;
    snprintf(line, sizeof line, "(%d more like %s: --html and --json have all)", count, count == 1 ? "this" : "these");
    table_prose(out, TABLE_DIM, line);
}

/* Those of a severity; the first of each rule and device before the second ones. */
static void print_some(const struct findings *all, enum finding_severity severity, int is_fact, int *printed,
                       const struct report_out *out)
{
    for (int nth = 0; nth < PRINTED; nth++)
        for (size_t i = 0; i < all->count && *printed < PRINTED; i++) {
            const struct finding *f = &all->item[i];
            if (f->severity != severity || f->nth != nth || !is_for_terminals(f) || f->is_fact != is_fact)
                continue;
            print(f, severity < FINDING_INFO ? "* " : "", severity < FINDING_INFO ? TABLE_STRONG : TABLE_DIM, out);
            ++*printed;
        }
}

void findings_print(const struct findings *all, const struct report_out *out)
{
    int printed = 0;
    print_some(all, FINDING_BAD, 0, &printed, out);
    print_some(all, FINDING_WARN, 0, &printed, out);
    print_some(all, FINDING_INFO, 1, &printed, out);
    print_some(all, FINDING_INFO, 0, &printed, out);
    print_rest(all, printed, out);
}

void findings_skips(const struct findings *all, struct buf *options)
{
    for (size_t i = 0; i < all->count; i++)
        if (is_for_terminals(&all->item[i]))
            wrapper_add_options(buf_text(&all->item[i].skips), options);
}

/* What advise says beside the sentences. */
static void record_saving(const struct finding *f, struct record *record)
{
    static const char *const claims[] = {NULL, "exact", "at most", "at least"};
    static const char *const bases[] = {"active", "reserved", "beside"};
    struct buf numbers = BUF(4096);
    const int is_known = f->claim != FINDING_UNCLAIMED;
    buf_putc(&numbers, '{');
    for (int i = 0; i < f->number_count; i++)
        buf_printf(&numbers, "%s\"%s\": %lld", i ? ", " : "", f->numbers[i].name, (long long)f->numbers[i].value);
    buf_putc(&numbers, '}');
    record_int_if(record, "saved_bytes", is_known, f->saved_bytes);
    record_text(record, "saved", claims[f->claim]);
    record_text(record, "saved_of", is_known ? bases[f->base] : NULL);
    record_int_if(record, "peak_bytes", is_known, f->peak_bytes);
    record_raw(record, "evidence", buf_text(&numbers));
    buf_free(&numbers);
}

void findings_record(const struct findings *all, struct record *record)
{
    static const char *const names[] = {"bad", "warning", "info"};
    if (record->out->format != REPORT_JSON)
        return;
    record_array_begin(record, "findings");
    for (size_t i = 0; i < all->count; i++) {
        const struct finding *f = &all->item[i];
        struct buf text = BUF(1 << 16), next = BUF(1 << 16);
        finding_plain(f, &text);
        finding_next(all, f, &next);
        record_begin(record);
        record_text(record, "rule", f->rule);
        record_text(record, "severity", names[f->severity]);
        record_raw(record, "minor", is_for_terminals(f) ? "false" : "true");
        record_text(record, "title", f->title);
        record_text(record, "text", buf_text(&text));
        record_text(record, "next", next.data);
        record_text(record, "device", f->device);
        record_int_if(record, "bytes", f->bytes > 0, f->bytes);
        record_int_if(record, "time_ns", f->time_ns >= 0, f->time_ns);
        record_text(record, "function", f->function);
        record_text(record, "file", f->file);
        record_int_if(record, "line", f->line > 0, f->line);
        record_saving(f, record);
        record_end(record);
        buf_free(&text);
        buf_free(&next);
    }
    record_array_end(record);
}
