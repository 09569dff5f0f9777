#include "bars.h"

#include "../../common/text.h"
#include "../../common/units.h"

#include <string.h>

enum { BAR_LEAST = 10, BAR_MOST = 100, SPARK_LEAST = 8 };

static const char *const style_on[] = {"\x1b[32m", "\x1b[36m", "\x1b[33m"}; /* active, reserved, used */
static const char style_off[] = "\x1b[0m";

/* --- figures --- */

static int add_figure(struct buf *line, const struct report_out *out, const char *name, int64_t bytes)
{
    char text[UNITS_TEXT];
    struct buf figure = BUF(256);
    if (bytes == GLANCE_UNKNOWN)
        return 1;
    buf_printf(&figure, "  %s %s", name, units_bytes(text, bytes));
    int fits = !out->width || text_width(buf_text(line)) + text_width(buf_text(&figure)) <= out->width;
    if (fits)
        buf_puts(line, buf_text(&figure));
    buf_free(&figure);
    return fits;
}

void bars_figures(const struct running_device *d, const struct report_out *out, struct buf *line)
{
    const int is_host = !strcmp(d->name, "host");
    struct buf name = BUF(1 << 16);
    text_clean(&name, d->name);
    text_fit(line, buf_text(&name), 12, TEXT_CUT_MIDDLE, out->utf8);
    while (text_width(buf_text(line)) < 6)
        buf_putc(line, ' ');
    buf_free(&name);
    if (!add_figure(line, out, "active", d->active_bytes) ||
        !add_figure(line, out, is_host ? "RSS" : "used", d->used_bytes) ||
        !add_figure(line, out, "reserved", d->reserved_bytes) || !add_figure(line, out, "total", d->total_bytes))
        return;
    add_figure(line, out, "peak", d->peak_active_bytes);
}

/* --- the bar --- */

static int64_t or_zero(int64_t bytes)
{
    return bytes > 0 ? bytes : 0; /* unknown is below, too */
}

static int64_t scale_of(const struct running_device *d)
{
    const int64_t seen[] = {d->active_bytes, d->reserved_bytes, d->used_bytes, d->peak_active_bytes,
                            d->peak_reserved_bytes};
    int64_t most = 1;
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
        most = seen[i] > most ? seen[i] : most;
    return d->total_bytes > most ? d->total_bytes : most;
}

void bars_device(const struct running_device *d, const struct report_out *out, struct buf *line)
{
    static const char *const fine[] = {"█", "▓", "░"}, *const plain[] = {"#", "=", "-"};
    const int64_t ends[] = {or_zero(d->active_bytes), or_zero(d->reserved_bytes), or_zero(d->used_bytes)};
    int width = out->width - 2 > BAR_MOST ? BAR_MOST : out->width - 2, at = 0;
    double scale = (double)scale_of(d);
    if (width < BAR_LEAST)
        return;
    buf_putc(line, '[');
    for (int i = 0; i < 3; i++) {
        int end = (int)((double)ends[i] / scale * width + 0.5);
        end = end > width ? width : end == 0 && ends[i] > 0 ? 1 : end; /* what is there is seen */
        if (at < end && out->color)
            buf_puts(line, style_on[i]);
        for (int k = at; k < end; k++)
            buf_puts(line, out->utf8 ? fine[i] : plain[i]);
        if (at < end && out->color)
            buf_puts(line, style_off);
        at = end > at ? end : at;
    }
    buf_printf(line, "%*s]", width - at, "");
}

/* --- over time --- */

void bars_spark(const struct running_device *d, int64_t span_ns, const struct report_out *out, struct buf *line)
{
    static const char *const fine[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, *const plain[] = {"_", ".", "-", ":",
                                                                                                  "=", "+", "*", "#"};
    char span[UNITS_TEXT], bytes[UNITS_TEXT];
    struct buf label = BUF(1 << 16), clean = BUF(1 << 16);
    int64_t most = 0;
    for (int i = 0; d->spark_bytes && i < GLANCE_SPARKS; i++)
        most = d->spark_bytes[i] > most ? d->spark_bytes[i] : most;
    buf_printf(&label, " %s, %s, most %s", d->name, units_ns(span, span_ns), units_bytes(bytes, most));
    text_clean(&clean, buf_text(&label));
    int width = out->width - text_width(buf_text(&clean));
    width = width > GLANCE_SPARKS ? GLANCE_SPARKS : width;
    if (d->spark_bytes && most > 0 && width >= SPARK_LEAST) {
        for (int i = 0; i < width; i++) {
            int64_t highest = 0;
            for (int k = i * GLANCE_SPARKS / width; k < (i + 1) * GLANCE_SPARKS / width; k++)
                highest = d->spark_bytes[k] > highest ? d->spark_bytes[k] : highest;
            int level = (int)((double)highest / (double)most * 7 + 0.5);
            buf_puts(line, (out->utf8 ? fine : plain)[level]);
        }
        buf_puts(line, buf_text(&clean));
    }
    buf_free(&label);
    buf_free(&clean);
}
