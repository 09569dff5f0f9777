#include "frame.h"

#include "../../common/text.h"
#include "../../common/units.h"
#include "../print/listing.h"
#include "../query/device.h"
#include "../query/estimate.h"
#include "bars.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_LEAST = 3, BARS_HEIGHT = 16 };

static const char keys[] = "q quit  s sort  l line/function/op  d device  p pause  m mark  ? help";
static const char *const help[] = {
    "q          quit",
    "s          sort by active bytes, by growth in the last 10 s, by blocks",
    "l          rows by line, by function, by PyTorch's operator",
    "d          the next device, then all",
    "p, space   hold the display; the program and its recording go on",
    "m          set a mark in the recording: 'top 1', 'top 2', ...",
    "arrows, page up and down, home, end   other rows",
    "?          this help",
    " ",
    "A bar is of the device's memory, or where that is not known of the most",
};
static const char *const legends[] = {
    "that was seen: active (#), reserved beyond that (=), used beyond that (-).",
    "that was seen: active (█), reserved beyond that (▓), used beyond that (░).",
};

/* --- the rows as a table --- */

struct table_of_rows {
    struct column columns[10];
    struct listing *listing;
    int has_growth;
};

static void describe(struct column c[10], const struct running_view *view, int has_devices, int has_growth)
{
    const int is_op = view->by == SITE_NAMES_BY_OP;
    const struct column columns[10] = {
        COLUMN("device", has_devices ? "device" : NULL, TEXT),
        COLUMN("active_bytes", "active", BYTES),
        COLUMN("growth_bytes", has_growth ? "growth" : NULL, BYTES, .none = "-"),
        COLUMN("active_count", "blocks", COUNT, .flags = COLUMN_OPTIONAL),
        COLUMN("function", view->by == SITE_NAMES_BY_OP ? "op" : "function", TEXT, .cut = TEXT_CUT_NAME),
        COLUMN(is_op ? "phase" : NULL, is_op ? "phase" : NULL, TEXT, .flags = COLUMN_OPTIONAL),
        COLUMN(is_op ? "module" : "file", NULL, TEXT),
        COLUMN(is_op ? NULL : "line", NULL, NUMBER),
        COLUMN(NULL, is_op ? "modules" : "source", TEXT, .cut = TEXT_CUT_LEFT),
        COLUMN("is_named", NULL, NUMBER, .flags = COLUMN_JSON),
    };
    memcpy(c, columns, sizeof columns);
}

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

static void list_row(struct listing *l, const struct running_row *row, const struct running_view *view, int has_growth,
                     int64_t sample_bytes)
{
    const int is_estimate = sample_bytes && strcmp(row->device, "host") == 0;
    const struct site_name *n = row->name;
    const char *none = !row->is_named ? "(not looked up yet)" : view->by == SITE_NAMES_BY_OP ? "(no operator)" : "??";
    listing_text(l, row->device);
    listing_estimate(l, 1, row->bytes, is_estimate ? estimate_error((double)row->bytes * (double)sample_bytes) : 0);
    listing_int_if(l, has_growth, row->growth_bytes);
    listing_estimate(l, 1, row->count, -is_estimate);
    listing_text(l, *n->function ? n->function : none);
    listing_text(l, or_null(n->plain));
    listing_text(l, or_null(n->file));
    listing_int_if(l, n->line > 0, n->line);
    listing_text(l, or_null(n->source));
    listing_int(l, row->is_named);
}

static int has_devices(const struct running *live, const char *device)
{
    const struct glance *l = running_glance(live);
    int count = 0;
    for (size_t i = 0; i < l->device_count; i++)
        count += device_is(l->devices[i].name, device);
    return count > 1;
}

/* --- the lines above it --- */

/* All of it where there is no terminal. */
static void add_fitted(struct buf *line, const struct report_out *out, const char *style, const char *clean)
{
    if (out->color)
        buf_puts(line, style);
    if (out->width)
        text_fit(line, clean, out->width, TEXT_CUT_RIGHT, out->utf8);
    else
        buf_puts(line, clean);
    if (out->color)
        buf_puts(line, "\x1b[0m");
}

static void add_title(const struct running *live, const struct frame *f, struct buf *line)
{
    const struct glance *look = running_glance(live);
    char time[UNITS_TEXT];
    struct buf text = BUF(1 << 20), clean = BUF(1 << 20);
    buf_printf(&text, "%s %s%s  by %s, %s first",
               running_goes_on(live) ? (f->is_paused ? "HELD" : "recording") : "ended after",
               units_ns(time, running_time_ns(live)),
               look->partial        ? " (partial)"
               : look->sample_bytes ? " (sampled: estimates)"
                                    : "",
               site_names_by_texts[f->view.by], running_sort_texts[f->view.sort]);
    if (f->view.device)
        buf_printf(&text, " of %s", f->view.device);
    buf_printf(&text, "  %lld: %s", (long long)look->pid, look->command ? look->command : "");
    text_clean(&clean, buf_text(&text));
    add_fitted(line, &f->out, "\x1b[1m", buf_text(&clean));
    buf_free(&text);
    buf_free(&clean);
}

/* Lines of a frame, as many as there is room for. */
struct lines {
    struct buf *out;
    int count, room, width; /* width 0: any */
};

/* Bytes of a character, or of a sequence that changes colours, which has no width. */
static size_t step(const char *at, int *width)
{
    char text[8] = "";
    unsigned code;
    *width = 0;
    if (*at == '\x1b')
        return strcspn(at, "m") + (strchr(at, 'm') != NULL);
    size_t length = (size_t)buf_decode((const unsigned char *)at, &code);
    length = length ? length : 1;
    memcpy(text, at, length);
    *width = text_width(text);
    return length;
}

/* A table shortens names alone, and a terminal may be narrower than its numbers. Colours end in any case. */
static void add_cut(struct buf *out, const char *line, int width)
{
    int at = 0, own;
    for (size_t length; *line; line += length) {
        length = step(line, &own);
        at += own;
        if (!width || at <= width)
            buf_add(out, line, length);
    }
}

static void end_line(struct lines *l, struct buf *line)
{
    if (line->length && l->count < l->room) {
        if (l->count++)
            buf_putc(l->out, '\n');
        add_cut(l->out, line->data, l->width);
    }
    buf_reset(line);
}

static const struct running_device *most_active(const struct running_device *devices, size_t count, const char *wanted)
{
    const struct running_device *most = NULL;
    for (size_t i = 0; i < count; i++)
        if (device_is(devices[i].name, wanted) && (!most || devices[i].active_bytes > most->active_bytes))
            most = &devices[i];
    return most;
}

/* Devices take a third of the terminal at most; what they leave out is said. */
static void add_devices(const struct running *live, const struct frame *f, struct lines *lines)
{
    struct running_device *devices;
    struct buf line = BUF(1 << 16);
    size_t count = running_devices(live, &devices), shown = 0, wanted = 0;
    int lines_each = f->height >= BARS_HEIGHT ? 2 : 1;
    for (size_t i = 0; i < count; i++)
        wanted += (size_t)device_is(devices[i].name, f->view.device);
    if ((int)wanted * lines_each > f->height / 3)
        lines_each = 1;
    for (size_t i = 0; i < count; i++) {
        if (!device_is(devices[i].name, f->view.device))
            continue;
        if ((int)++shown * lines_each > f->height / 3 + 1) {
            buf_printf(&line, "%zu more devices (d)", wanted - shown + 1);
            end_line(lines, &line);
            break;
        }
        bars_figures(&devices[i], &f->out, &line);
        end_line(lines, &line);
        if (lines_each == 2) {
            bars_device(&devices[i], &f->out, &line);
            end_line(lines, &line);
        }
    }
    const struct running_device *most = most_active(devices, count, f->view.device);
    if (most && f->height >= BARS_HEIGHT)
        bars_spark(most, running_glance(live)->spark_ns, &f->out, &line);
    end_line(lines, &line);
    free(devices);
    buf_free(&line);
}

/* --- a frame --- */

static void add_text(struct lines *lines, const char *text, const struct report_out *out, const char *style)
{
    struct buf line = BUF(1 << 20), clean = BUF(1 << 20);
    text_clean(&clean, text);
    add_fitted(&line, out, style, buf_text(&clean));
    end_line(lines, &line);
    buf_free(&line);
    buf_free(&clean);
}

static void add_help(struct lines *lines, const struct report_out *out)
{
    for (size_t i = 0; i < sizeof help / sizeof *help; i++)
        add_text(lines, help[i], out, "");
    add_text(lines, legends[out->utf8 != 0], out, "");
}

static void add_table(const struct running *live, struct frame *f, const struct running_row *rows, size_t count,
                      struct lines *lines, int height)
{
    char *text = NULL;
    size_t length = 0;
    int64_t span_ns;
    struct column columns[10];
    struct report_out out = f->out;
    struct buf line = BUF(1 << 20);
    const int has_growth = running_has_growth(live, &span_ns);
    f->page = height > 1 ? (size_t)height - 1 : 0;
    if (f->first + f->page > count)
        f->first = count > f->page ? count - f->page : 0;
    out.file = open_memstream(&text, &length);
    if (!out.file)
        out_of_memory(0);
    describe(columns, &f->view, has_devices(live, f->view.device), has_growth);
    struct listing *l = listing_open(columns, 10, &out, running_glance(live)->cwd);
    for (size_t i = f->first; i < count && i < f->first + f->page; i++)
        list_row(l, &rows[i], &f->view, has_growth, running_glance(live)->sample_bytes);
    listing_print(l);
    listing_close(l);
    fclose(out.file);
    for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
        buf_add(&line, at, (size_t)(end - at));
        end_line(lines, &line);
    }
    free(text);
    buf_free(&line);
}

void frame_draw(const struct running *live, struct frame *f, struct buf *out)
{
    struct lines lines = {.out = out, .room = f->height - 1, .width = f->out.width}; /* the last one is for the keys */
    struct buf line = BUF(1 << 20);
    struct running_row *rows;
    char remark[160];
    size_t count = running_rows(live, &f->view, &rows);
    add_title(live, f, &line);
    end_line(&lines, &line);
    if (f->height >= 2 * ROWS_LEAST)
        add_devices(live, f, &lines);
    if (f->has_help)
        add_help(&lines, &f->out);
    else
        add_table(live, f, rows, count, &lines, lines.room - lines.count);
    lines.room = f->height;
    snprintf(remark, sizeof remark, "%s", f->has_help ? "any key goes back" : keys);
    if (!f->has_help && (f->first || count > f->page))
        snprintf(remark, sizeof remark, "rows %zu-%zu of %zu  %s", f->first + 1,
                 f->first + f->page < count ? f->first + f->page : count, count, keys);
    if (!f->has_help && count == 0)
        snprintf(remark, sizeof remark, "nothing is live  %s", keys);
    add_text(&lines, f->message ? f->message : remark, &f->out, "\x1b[2m");
    buf_free(&line);
    free(rows);
}

/* --- once --- */

static void members(struct record *document, const struct running *live, const struct running_view *view,
                    const char *file)
{
    const struct glance *look = running_glance(live);
    int64_t span_ns;
    record_member_text(document, "file", file);
    record_member_text(document, "command", look->command);
    record_member_int(document, "pid", look->pid);
    record_member_text(document, "state", running_goes_on(live) ? "recording" : "ended");
    record_member_text(document, "partial", look->partial);
    if (look->sample_bytes)
        record_member_int(document, "sample_bytes", look->sample_bytes);
    record_member_int(document, "time_ns", running_time_ns(live));
    record_member_text(document, "by", site_names_by_texts[view->by]);
    record_member_text(document, "sort", running_sort_texts[view->sort]);
    record_member_int(document, "growth_ns", running_has_growth(live, &span_ns) ? span_ns : 0);
}

static void list_devices(struct record *document, const struct running *live, const char *wanted)
{
    static const struct column columns[] = {
        COLUMN("device", NULL, TEXT),
        COLUMN("active_bytes", NULL, BYTES),
        COLUMN("active_count", NULL, COUNT),
        COLUMN("allocated_bytes", NULL, BYTES),
        COLUMN("reserved_bytes", NULL, BYTES),
        COLUMN("used_bytes", NULL, BYTES),
        COLUMN("total_bytes", NULL, BYTES),
        COLUMN("peak_active_bytes", NULL, BYTES),
        COLUMN("peak_reserved_bytes", NULL, BYTES),
    };
    struct running_device *devices;
    size_t count = running_devices(live, &devices);
    struct listing *l = listing_open_in(document, "devices", columns, COLUMN_COUNT_OF(columns), NULL);
    for (size_t i = 0; i < count; i++) {
        const struct running_device *d = &devices[i];
        const int64_t values[] = {d->active_bytes, d->active_count, d->allocated_bytes,   d->reserved_bytes,
                                  d->used_bytes,   d->total_bytes,  d->peak_active_bytes, d->peak_reserved_bytes};
        if (!device_is(d->name, wanted))
            continue;
        listing_text(l, d->name);
        for (size_t k = 0; k < sizeof values / sizeof *values; k++)
            listing_int_if(l, values[k] != GLANCE_UNKNOWN, values[k]);
    }
    listing_close(l);
    free(devices);
}

static void print_devices(const struct running *live, const struct frame *f)
{
    struct buf text = BUF(1 << 20);
    struct lines lines = {.out = &text, .room = 1 << 16};
    struct buf line = BUF(1 << 20);
    add_title(live, f, &line);
    end_line(&lines, &line);
    add_devices(live, f, &lines);
    fprintf(f->out.file, "%s\n\n", buf_text(&text));
    buf_free(&text);
    buf_free(&line);
}

void frame_once(const struct running *live, const struct running_view *view, const char *file, int64_t top,
                const struct report_out *out)
{
    int64_t span_ns;
    struct column columns[10];
    struct record document;
    struct running_row *rows;
    const int has_growth = running_has_growth(live, &span_ns), is_json = out->format == REPORT_JSON;
    size_t count = running_rows(live, view, &rows);
    describe(columns, view, has_devices(live, view->device), has_growth);
    record_open(&document, out);
    if (is_json) {
        record_document_begin(&document);
        members(&document, live, view, file);
        list_devices(&document, live, view->device);
    } else {
        struct frame f = {.out = *out, .height = 1 << 16, .view = *view};
        print_devices(live, &f);
    }
    struct listing *l = is_json ? listing_open_in(&document, "rows", columns, 10, NULL)
                                : listing_open(columns, 10, out, running_glance(live)->cwd);
    for (size_t i = 0; i < count && (top <= 0 || (int64_t)i < top); i++)
        list_row(l, &rows[i], view, has_growth, running_glance(live)->sample_bytes);
    if (!is_json)
        listing_print(l);
    listing_close(l);
    if (is_json)
        record_document_end(&document);
    record_close(&document);
    free(rows);
}
