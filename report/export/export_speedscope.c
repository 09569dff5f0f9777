/*
 * speedscope's own format: a profile for each device and statistic. A frame is a function, so that its callers are one
 * block each; where a site allocates it is a line. The list of frames comes last, when it is known which ones the
 * profiles have.
 */
#include "sites.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/map.h"
#include "../../common/sum.h"

#include <stdlib.h>
#include <string.h>

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"
enum { NAME_LIMIT = 64 << 20 };

struct scope_frame {
    const struct walk_frame *frame; /* the walk's */
    int is_own;                     /* it allocates, so its line is meant */
};

struct scope {
    FILE *out;
    struct export_sites *sites;
    struct map frame_of;        /* (function, file, line), or a frame without a symbol -> its number */
    struct scope_frame *frames; /* by number */
    size_t frame_count, frame_capacity;
    int64_t *weights; /* of the profile that is being written */
    size_t weight_count, weight_capacity;
    int64_t profile_count, sample_count, negative;
    struct buf text, name;
};

/* --- JSON --- */

static void put_json(struct scope *s, const char *text)
{
    buf_reset(&s->text);
    buf_putc(&s->text, '"');
    buf_json(&s->text, text);
    buf_putc(&s->text, '"');
    fwrite(s->text.data, 1, s->text.length, s->out);
}

/* --- frames --- */

#define CALLER UINT64_MAX /* in place of a line: the whole function */

static uint32_t number_of(struct scope *s, const struct walk_frame *f, int is_own)
{
    const uint64_t line = is_own ? (uint64_t)f->line & UINT32_MAX : UINT32_MAX;
    uint64_t *slot = f->function ? map_slot(&s->frame_of, (uint64_t)f->function_id, (uint64_t)f->file_id << 32 | line)
                                 : map_slot(&s->frame_of, (uintptr_t)f, CALLER);
    if (!*slot) {
        struct scope_frame *frame = ARRAY_ADD(s->frames, s->frame_count, s->frame_capacity);
        *frame = (struct scope_frame){f, is_own};
        *slot = s->frame_count;
    }
    return (uint32_t)(*slot - 1);
}

/* A caller is at the line that its function is declared at, an allocating frame at its own. */
static int line_of(struct scope *s, const struct scope_frame *frame, int64_t *line, struct error *err)
{
    struct export_function function = {.line = 0};
    const struct walk_frame *f = frame->frame;
    int rc = !frame->is_own && f->function_id ? export_sites_function(s->sites, f, &function, err) : 0;
    *line = !f->file ? 0 : frame->is_own ? f->line : function.line;
    return rc;
}

static int put_frames(struct scope *s, struct error *err)
{
    int64_t line;
    int rc = 0;
    fputs("\"shared\": {\"frames\": [", s->out);
    for (size_t i = 0; rc == 0 && i < s->frame_count; i++) {
        const struct walk_frame *f = s->frames[i].frame;
        buf_reset(&s->name);
        export_frame_label(f, &s->name);
        fprintf(s->out, "%s\n  {\"name\": ", i ? "," : "");
        put_json(s, buf_text(&s->name));
        if (f->file || f->module) {
            fputs(", \"file\": ", s->out);
            put_json(s, f->file ? f->file : f->module);
        }
        rc = line_of(s, &s->frames[i], &line, err);
        if (line > 0)
            fprintf(s->out, ", \"line\": %lld", (long long)line);
        putc('}', s->out);
    }
    fputs("]}", s->out);
    return rc;
}

/* --- profiles --- */

struct statistic {
    int stat;
    const char *name;
};

static void put_sample(struct scope *s, const struct export_site *site, int64_t weight)
{
    buf_reset(&s->text);
    buf_puts(&s->text, s->weight_count ? ",\n   [" : "\n   [");
    for (int i = site->count; i-- > 0;)
        buf_printf(&s->text, "%u%s", number_of(s, site->frames[i], i == 0), i ? "," : "]");
    fwrite(s->text.data, 1, s->text.length, s->out);
    *ARRAY_ADD(s->weights, s->weight_count, s->weight_capacity) = weight;
    s->sample_count++;
}

static void begin_profile(struct scope *s, const char *device, const struct statistic *of)
{
    buf_reset(&s->name);
    buf_printf(&s->name, "%s: %s", device, of->name);
    fprintf(s->out, "%s\n {\"type\": \"sampled\", \"name\": ", s->profile_count++ ? "," : "");
    put_json(s, buf_text(&s->name));
    fprintf(s->out, ", \"unit\": \"%s\",\n  \"samples\": [",
            stat_infos[of->stat].unit == STAT_UNIT_bytes ? "bytes"
            : stat_infos[of->stat].unit == STAT_UNIT_ns  ? "nanoseconds"
                                                         : "none");
    s->weight_count = 0;
}

static void end_profile(struct scope *s)
{
    int64_t sum = 0;
    fputs("],\n  \"weights\": [", s->out);
    for (size_t i = 0; i < s->weight_count; i++) {
        fprintf(s->out, "%s%lld", i ? "," : "", (long long)s->weights[i]);
        sum_add(&sum, s->weights[i]);
    }
    fprintf(s->out, "], \"startValue\": 0, \"endValue\": %lld}", (long long)sum);
}

/* One without any weight is left out, but for a file that would have none else (is_last_chance). */
static int put_profile(struct scope *s, int64_t device_id, const char *device, const struct statistic *of,
                       int is_last_chance, struct error *err)
{
    struct export_site site;
    int is_begun = 0, rc = export_sites_begin(s->sites, device_id, err);
    export_sites_only(s->sites, of->stat);
    while (rc == 0 && !ferror(s->out) && (rc = export_sites_next(s->sites, &site, err)) == 1) {
        int64_t weight = export_value(s->sites, &site, of->stat);
        s->negative += weight < 0;
        if (weight > 0 && !is_begun++)
            begin_profile(s, device, of);
        if (weight > 0)
            put_sample(s, &site, weight);
        rc = 0;
    }
    if (rc == 0)
        rc = export_check_known(s->sites, of->stat, err);
    if (rc == 0 && !is_begun && is_last_chance && !s->profile_count) {
        begin_profile(s, device, of);
        is_begun = 1;
    }
    if (is_begun)
        end_profile(s);
    return rc;
}

/* What the options ask for; else what was live at the peak and at the end, and what was allocated. */
static int choose(const struct export_options *o, struct statistic *of, struct buf *name)
{
    const int is_counted = !o->lens->window || o->lens->window->result.is_counted;
    if (o->at != EXPORT_AT_ALL || o->stat >= 0) {
        export_stat_text(o, export_stat(o), name);
        of[0] = (struct statistic){export_stat(o), buf_text(name)};
        return 1;
    }
    of[0] = (struct statistic){STAT_end_bytes, "live at the end"};
    if (!is_counted)
        return 1;
    of[1] = of[0];
    of[0] = (struct statistic){export_peak_stat(o), "live at the peak"};
    of[2] = (struct statistic){STAT_alloc_bytes, "allocated"};
    of[3] = (struct statistic){STAT_alloc_count, "allocations"};
    return 4;
}

static int put_profiles(struct scope *s, const struct export_options *options, struct error *err)
{
    struct statistic of[4];
    struct buf name = BUF(1 << 12), device = BUF(1 << 20);
    const char *text;
    const int count = choose(options, of, &name);
    int64_t id = -1;
    int rc;
    while ((rc = export_sites_device(s->sites, id, &id, &text, err)) == 1) {
        buf_reset(&device);
        buf_puts(&device, text);
        for (int i = 0; rc >= 0 && i < count; i++)
            rc = put_profile(s, id, buf_text(&device), &of[i], 0, err);
        if (rc < 0)
            break;
    }
    if (rc == 0 && !s->profile_count)
        rc = put_profile(s, -1, "nothing", &of[0], 1, err);
    buf_free(&name);
    buf_free(&device);
    return rc;
}

static int put_all(struct scope *s, sqlite3 *db, const struct export_options *options, struct error *err)
{
    char *command = db_meta_text(db, "command");
    fputs("{\"$schema\": \"" SCHEMA "\", \"exporter\": \"memprof\", \"name\": ", s->out);
    put_json(s, command ? command : "");
    fputs(",\n\"activeProfileIndex\": 0, \"profiles\": [", s->out);
    int rc = put_profiles(s, options, err);
    fputs("],\n", s->out);
    rc = rc ? rc : put_frames(s, err);
    fputs("}\n", s->out);
    free(command);
    return rc;
}

int export_speedscope(sqlite3 *db, const struct export_options *options, FILE *out, struct export_result *result,
                      struct error *err)
{
    struct scope s = {.out = out, .text = BUF(NAME_LIMIT), .name = BUF(NAME_LIMIT)};
    int rc = export_sites_open(db, options, &s.sites, err);
    if (rc == 0)
        rc = put_all(&s, db, options, err);
    result->item_count = s.profile_count;
    result->item = "profiles";
    if (s.negative)
        snprintf(result->note, sizeof result->note, "%lld stacks with less than nothing are not in it\n",
                 (long long)s.negative);
    export_sites_close(s.sites);
    map_close(&s.frame_of);
    free(s.frames);
    free(s.weights);
    buf_free(&s.text);
    buf_free(&s.name);
    return rc;
}
