/*
 * Folded stacks, as flamegraph.pl, inferno and speedscope read them: a line a site, its frames from the outermost
 * inwards with ';' between them, a space, a number. Equal stacks may come several times, and are added by all readers.
 */
#include "sites.h"

#include "../../common/text.h"
#include "../../common/units.h"

#include <string.h>

enum { FRAME_LIMIT = 64 << 20 };

/* ';' would be two frames, and what looks like a number behind a space a value. */
static char safe(const char *c)
{
    if (*c == ' ')
        return !c[1] || c[1] == '.' || (c[1] >= '0' && c[1] <= '9') ? '_' : ' ';
    return *c == ';' ? ',' : *c;
}

/* A line break would be two stacks, and no control character may stand in a picture that is XML. */
static void put_frame(struct buf *line, const struct walk_frame *frame, struct buf *name)
{
    size_t start = line->length;
    buf_reset(name);
    export_frame_label(frame, name);
    text_plain(line, buf_text(name));
    for (size_t i = start; i < line->length; i++)
        line->data[i] = safe(&line->data[i]);
}

struct folding {
    struct buf line, name;
    int64_t written, negative;
    int has_devices;
};

static void put_site(struct folding *f, const struct export_site *site, int64_t value, FILE *out)
{
    buf_reset(&f->line);
    if (f->has_devices)
        buf_printf(&f->line, "%s;", site->device);
    for (int i = site->count; i-- > 0;) {
        put_frame(&f->line, site->frames[i], &f->name);
        buf_putc(&f->line, i ? ';' : ' ');
    }
    buf_printf(&f->line, "%lld\n", (long long)value);
    fwrite(f->line.data, 1, f->line.length, out);
    f->written++;
}

/* Several devices are told apart by an outermost frame. */
static int has_devices(struct export_sites *sites, int *has, struct error *err)
{
    int64_t id = -1;
    const char *name;
    int count = 0, rc;
    while (count < 2 && (rc = export_sites_device(sites, id, &id, &name, err)) == 1)
        count++;
    *has = count > 1;
    return rc < 0 ? rc : 0;
}

static void tell(const struct folding *f, const struct export_options *o, int stat, struct export_result *result)
{
    char text[UNITS_TEXT];
    struct buf note = BUF(sizeof result->note - 1);
    result->item_count = f->written;
    result->item = "stacks";
    buf_puts(&note, "their number is ");
    export_stat_text(o, stat, &note);
    buf_putc(&note, '\n');
    if (f->negative)
        buf_printf(&note, "%s stack%s with less than nothing: a flame graph cannot show that, so they are not in it\n",
                   units_count(text, f->negative), f->negative == 1 ? "" : "s");
    snprintf(result->note, sizeof result->note, "%s", buf_text(&note));
    buf_free(&note);
}

int export_folded(sqlite3 *db, const struct export_options *options, FILE *out, struct export_result *result,
                  struct error *err)
{
    struct folding f = {.line = BUF(FRAME_LIMIT), .name = BUF(FRAME_LIMIT)};
    const int stat = export_stat(options);
    struct export_sites *sites;
    struct export_site site;
    int rc = export_sites_open(db, options, &sites, err);
    if (rc == 0)
        rc = has_devices(sites, &f.has_devices, err);
    export_sites_only(sites, stat);
    while (rc == 0 && !ferror(out) && (rc = export_sites_next(sites, &site, err)) == 1) {
        int64_t value = export_value(sites, &site, stat);
        f.negative += value < 0;
        if (value > 0)
            put_site(&f, &site, value, out);
        rc = 0;
    }
    if (rc == 0)
        rc = export_check_known(sites, stat, err);
    tell(&f, options, stat, result);
    export_sites_close(sites);
    buf_free(&f.line);
    buf_free(&f.name);
    return rc;
}
