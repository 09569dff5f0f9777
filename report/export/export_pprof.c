/*
 * A profile for pprof: what was allocated, what is in use at the end, and what was live at the peak, in blocks and in
 * bytes. Locations, functions and modules are written where a sample first needs them.
 */
#include "../../formats/pprof/pprof_write.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/map.h"
#include "modules.h"
#include "sites.h"

#include <stdlib.h>
#include <string.h>

enum { TYPES_MOST = 8, LABELS_MOST = 8, NAME_LIMIT = 64 << 20 };

/* What samples would have without --all-frames dropped already: for readers that merge this with other profiles. */
#define DROP_FRAMES                                                                                                    \
    "malloc|calloc|realloc|reallocarray|memalign|posix_memalign|aligned_alloc|valloc|pvalloc|operator new(\\[\\])?.*"

struct type {
    const char *name;
    int stat;
};

struct profile {
    struct pprof_writer writer;
    struct export_sites *sites;
    struct type types[TYPES_MOST];
    int type_count;
    const char *shown;                     /* the type that readers begin with */
    struct map locations, functions, maps; /* (first frame, how many), (function, file), module -> id */
    uint64_t location_count, function_count;
    struct buf name;
    struct pprof_line *lines;
    size_t line_capacity;
    uint64_t ids[WALK_FRAMES_MAX + 1];
    int64_t written;
};

/* --- types --- */

static void add_type(struct profile *p, const char *name, int stat)
{
    p->types[p->type_count++] = (struct type){name, stat};
}

/* Names that Pyroscope, Parca and Go's tools know, and two for the peak. An instant has what was in use then. */
static void choose_types(struct profile *p, const struct export_options *o)
{
    const int has_counts = export_peak_stat(o) == STAT_at_peak_bytes; /* at the peak of a kind there are none */
    const int is_live = o->at != EXPORT_AT_ALL || (o->lens->window && !o->lens->window->result.is_counted);
    const int stat = export_stat(o);
    if (!is_live) {
        add_type(p, "alloc_objects", STAT_alloc_count);
        add_type(p, "alloc_space", STAT_alloc_bytes);
    }
    if (o->at != EXPORT_AT_PEAK || has_counts)
        add_type(p, "inuse_objects", STAT_end_count);
    add_type(p, "inuse_space", STAT_end_bytes);
    if (!is_live && has_counts)
        add_type(p, "peak_objects", STAT_at_peak_count);
    if (!is_live)
        add_type(p, "peak_space", export_peak_stat(o));
    p->shown = is_live ? "inuse_space" : NULL;
    for (int i = 0; i < p->type_count && !p->shown; i++)
        if (p->types[i].stat == stat)
            p->shown = p->types[i].name;
    if (!p->shown)
        add_type(p, p->shown = stat_infos[stat].name, stat);
}

static const char *unit_of(int stat)
{
    static const char *const units[] = {
        [STAT_UNIT_bytes] = "bytes", [STAT_UNIT_count] = "count", [STAT_UNIT_ns] = "nanoseconds"};
    return units[stat_infos[stat].unit];
}

/* --- what samples name --- */

static uint64_t mapping_of(struct profile *p, const struct export_module *m)
{
    if (!m->path || map_get(&p->maps, m->number, 0))
        return m->path ? m->number : 0;
    *map_slot(&p->maps, m->number, 0) = 1;
    pprof_write_mapping(&p->writer, &(struct pprof_module){m->number, m->start, m->end, m->path, m->build_id});
    return m->number;
}

/* Of code without a symbol: a function for each address, called as the reports call it. */
static int function_of(struct profile *p, const struct walk_frame *f, uint64_t *id, struct error *err)
{
    struct export_function about = {.raw_name = NULL};
    uint64_t *slot = f->function ? map_slot(&p->functions, (uint64_t)f->function_id, (uint64_t)f->file_id)
                                 : map_slot(&p->functions, (uintptr_t)f, UINT64_MAX);
    *id = *slot;
    if (*id)
        return 0;
    *id = *slot = ++p->function_count;
    int rc = f->function && f->function_id ? export_sites_function(p->sites, f, &about, err) : 0;
    buf_reset(&p->name);
    export_frame_name(f, &p->name);
    pprof_write_function(&p->writer, *id, buf_text(&p->name), about.raw_name ? about.raw_name : buf_text(&p->name),
                         f->file, about.line);
    return rc;
}

static int location_of(struct profile *p, const struct walk_frame *const *frames, int count, uint64_t *id,
                       struct error *err)
{
    uint64_t *slot = map_slot(&p->locations, (uintptr_t)frames[0], (uint64_t)count);
    struct export_module module;
    int rc = 0;
    *id = *slot;
    if (*id)
        return 0;
    *id = *slot = ++p->location_count;
    ARRAY_ROOM(p->lines, (size_t)count, p->line_capacity);
    for (int i = 0; rc == 0 && i < count; i++) {
        rc = function_of(p, frames[i], &p->lines[i].function_id, err);
        p->lines[i].line = frames[i]->file ? frames[i]->line : 0;
    }
    if (rc == 0)
        rc = export_sites_module(p->sites, frames[0], &module, err);
    if (rc == 0)
        pprof_write_location(&p->writer, *id, mapping_of(p, &module),
                             module.path ? (uint64_t)frames[0]->offset + module.bias_bytes : 0, p->lines, count);
    return rc;
}

/* How many frames from the first on are of one address: functions that were inlined into one another. */
static int run_of(const struct walk_frame *const *frames, int count)
{
    int n = 1;
    while (n < count && frames[n] == frames[n - 1] + 1 && frames[n - 1]->is_inline &&
           frames[n]->address_id == frames[0]->address_id)
        n++;
    return n;
}

/* --- samples --- */

static int read_values(struct profile *p, const struct export_site *site, int64_t *values)
{
    int has = 0;
    for (int i = 0; i < p->type_count; i++) {
        values[i] = export_value(p->sites, site, p->types[i].stat);
        has |= values[i] != 0;
    }
    return has;
}

static int put_site(struct profile *p, const struct export_site *site, struct error *err)
{
    const struct pprof_label all[] = {{"device", site->device},
                                      {"kind", site->kind},
                                      {"op", site->op},
                                      {"phase", site->phase},
                                      {"module", site->module}};
    struct pprof_label labels[LABELS_MOST];
    int64_t values[TYPES_MOST];
    int count = 0, label_count = 0, rc = 0;
    if (!read_values(p, site, values))
        return 0;
    for (int i = 0, n; rc == 0 && i < site->count; i += n) {
        n = run_of(site->frames + i, site->count - i);
        rc = location_of(p, site->frames + i, n, &p->ids[count++], err);
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].text)
            labels[label_count++] = all[i];
    pprof_write_sample(&p->writer, p->ids, count, values, p->type_count, labels, label_count);
    p->written++;
    return rc;
}

/* --- all --- */

static int put_head(struct profile *p, sqlite3 *db, const struct export_options *o, struct error *err)
{
    struct pprof_writer *w = &p->writer;
    struct export_module program;
    char *command = db_meta_text(db, "command");
    for (int i = 0; i < p->type_count; i++)
        pprof_write_type(w, PPROF_PROFILE_sample_type, p->types[i].name, unit_of(p->types[i].stat));
    int rc = export_sites_program(p->sites, &program, err);
    mapping_of(p, &program);
    if (!o->all_frames)
        pprof_write_text(w, PPROF_PROFILE_drop_frames, DROP_FRAMES);
    pprof_write_number(w, PPROF_PROFILE_time_nanos, db_meta_int(db, "start_unix_ns", 0));
    pprof_write_number(w, PPROF_PROFILE_duration_nanos, db_meta_int(db, "duration_ns", 0));
    pprof_write_type(w, PPROF_PROFILE_period_type, "space", "bytes");
    pprof_write_number(w, PPROF_PROFILE_period, 1); /* nothing is sampled */
    pprof_write_text(w, PPROF_PROFILE_comment, command ? command : "");
    pprof_write_text(w, PPROF_PROFILE_default_sample_type, p->shown);
    free(command);
    return rc;
}

static int put_all(struct profile *p, sqlite3 *db, const struct export_options *options, FILE *out, struct error *err)
{
    struct export_site site;
    int rc = put_head(p, db, options, err);
    while (rc == 0 && !ferror(out) && (rc = export_sites_next(p->sites, &site, err)) == 1)
        rc = put_site(p, &site, err);
    return rc;
}

int export_pprof(sqlite3 *db, const struct export_options *options, FILE *out, struct export_result *result,
                 struct error *err)
{
    struct profile *p = xcalloc(1, sizeof *p);
    struct error writing;
    p->name = (struct buf)BUF(NAME_LIMIT);
    int rc = export_sites_open(db, options, &p->sites, err);
    if (rc == 0) {
        choose_types(p, options);
        pprof_write_open(&p->writer, out);
        rc = put_all(p, db, options, out, err);
        int closed = pprof_write_close(&p->writer, rc == 0 ? err : &writing);
        rc = rc ? rc : closed;
    }
    result->item_count = p->written;
    result->item = "samples";
    export_sites_close(p->sites);
    map_close(&p->locations);
    map_close(&p->functions);
    map_close(&p->maps);
    buf_free(&p->name);
    free(p->lines);
    free(p);
    return rc;
}
