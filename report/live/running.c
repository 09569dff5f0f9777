#include "running.h"

#include "../../common/array.h"
#include "../../common/buf.h"
#include "../../common/map.h"
#include "../../common/wrap.h"
#include "../../profiler/outside/outside.h"
#include "../../profiler/outside/request.h"
#include "../query/device.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define LOOK_SHARE   25 /* a look may take this part of the time between two of them, */
#define NAMING_SHARE 20 /* and looking up the names this */

const char *const running_sort_texts[RUNNING_SORTS] = {
#define LIVE_SORT(id, name) name,
#include "sorts.def"
};

struct mark { /* what tells that a file was written to */
    struct stat file, log;
};

struct running {
    const char *path;
    site_names_open *open;
    int is_quiet;
    struct outside *outside; /* NULL: it is over, or cannot be reached, */
    int is_elsewhere;        /* as it is another user's: then its file alone says whether it goes on */
    struct glance look;
    struct mark mark;
    int64_t look_at_ns; /* monotonic: no earlier */
    struct site_names names;
    struct naming *naming;
    int64_t naming_at_ns, naming_began_ns;
    int has_failed; /* the names could not be had */
    /* what grew: by site, the sum of changes from first on */
    int64_t *growth;
    size_t growth_room;
    struct glance_change *changes;
    size_t change_first, change_count, change_capacity;
    int64_t growth_since_ns; /* of the run */
    struct desk_device {
        char name[WIRE_NAME_BYTES + 1];
        struct wire_figures figures;
    } desk[WIRE_FIGURES];
    unsigned desk_count;
};

static int64_t clock_now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- the desk --- */

/* Types have rows of their own there, "all" too: no devices. */
static int is_device(const char *name)
{
    return strchr(name, ':') != NULL || !strcmp(name, "host");
}

static void read_desk(struct running *l)
{
    struct desk_device *d = l->desk;
    if (l->outside && !outside_is_recording(l->outside)) {
        outside_close(l->outside);
        l->outside = NULL;
    }
    for (unsigned i = 0; l->outside && i < WIRE_FIGURES && outside_row(l->outside, i, d->name, &d->figures); i++)
        d += is_device(d->name);
    l->desk_count = (unsigned)(d - l->desk);
}

static const struct desk_device *desk_of(const struct running *l, const char *name)
{
    for (unsigned i = 0; i < l->desk_count; i++)
        if (!strcmp(l->desk[i].name, name))
            return &l->desk[i];
    return NULL;
}

/* --- what grew --- */

static void room_for_sites(struct running *l, uint32_t site_end)
{
    ARRAY_ROOM_ZERO(l->growth, site_end, l->growth_room);
}

static void add_change(struct running *l, struct glance_change c)
{
    *ARRAY_ADD(l->changes, l->change_count, l->change_capacity) = c;
    wrap_change(&l->growth[c.site], (uint64_t)c.bytes);
}

static void forget_changes(struct running *l, int64_t before_ns)
{
    for (; l->change_first < l->change_count && l->changes[l->change_first].time_ns < before_ns; l->change_first++) {
        const struct glance_change *c = &l->changes[l->change_first];
        wrap_change(&l->growth[c->site], 0 - (uint64_t)c->bytes);
    }
    if (l->change_first <= l->change_count / 2)
        return;
    l->change_count -= l->change_first;
    memmove(l->changes, l->changes + l->change_first, l->change_count * sizeof *l->changes);
    l->change_first = 0;
}

static void compare(struct running *l, const struct glance *next)
{
    for (uint32_t i = 1; i < next->site_end; i++) {
        int64_t before = i < l->look.site_end ? l->look.bytes[i] : 0;
        if (next->bytes[i] != before)
            add_change(l, (struct glance_change){next->duration_ns, wrap_subtract(next->bytes[i], before), i});
    }
}

/* A program that ended let go of all: what is shown then is what was live before, so nothing of that is a change. */
static void take_changes(struct running *l, const struct glance *next, int is_first)
{
    room_for_sites(l, next->site_end);
    if (is_first) {
        for (size_t i = 0; i < next->change_count; i++)
            add_change(l, next->changes[i]);
        l->growth_since_ns = next->has_changes ? 0 : next->duration_ns;
    } else if (!next->is_same && next->is_recording == l->look.is_recording) {
        compare(l, next);
    }
    forget_changes(l, next->duration_ns - GLANCE_GROWTH_NS);
}

/* --- looks --- */

static struct mark mark_of(const char *path)
{
    struct mark m = {0};
    char log[4096];
    stat(path, &m.file);
    if (snprintf(log, sizeof log, "%s-wal", path) < (int)sizeof log)
        stat(log, &m.log);
    return m;
}

static int is_same_stat(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int look_again(struct running *l, int is_first, struct error *err)
{
    struct glance next;
    int64_t begin_ns = clock_now_ns(CLOCK_PROCESS_CPUTIME_ID);
    int rc = glance_take(l->path, is_first ? NULL : &l->look, &next, err);
    if (rc == 0) {
        take_changes(l, &next, is_first);
        glance_close(&l->look);
        l->look = next;
    } else {
        glance_close(&next);
    }
    int64_t cost_ns = clock_now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns;
    l->look_at_ns = clock_now_ns(CLOCK_MONOTONIC) + cost_ns * LOOK_SHARE;
    return rc;
}

static int look_if_new(struct running *l, struct error *err)
{
    if (clock_now_ns(CLOCK_MONOTONIC) < l->look_at_ns)
        return 0;
    struct mark now = mark_of(l->path);
    if (is_same_stat(&now.file, &l->mark.file) && is_same_stat(&now.log, &l->mark.log))
        return 0;
    int rc = look_again(l, 0, err);
    if (rc)
        return rc;
    l->mark = now;
    return 1;
}

/* --- names --- */

static int has_nameless(const struct running *l)
{
    for (uint32_t i = l->names.site_end ? l->names.site_end : 1; i < l->look.site_end; i++)
        if (l->look.bytes[i] || l->growth[i])
            return 1;
    return 0;
}

static int begin_naming(struct running *l, struct error *err)
{
    l->naming_began_ns = clock_now_ns(CLOCK_MONOTONIC);
    l->naming = naming_begin(l->path, l->open, l->is_quiet, err);
    return l->naming ? 0 : -EAGAIN;
}

static int take_names(struct running *l, struct error *err)
{
    struct site_names names;
    int64_t cpu_ns, now_ns;
    int rc = naming_end(l->naming, &names, &cpu_ns, err);
    l->naming = NULL;
    now_ns = clock_now_ns(CLOCK_MONOTONIC);
    l->naming_at_ns = now_ns + cpu_ns * NAMING_SHARE;
    l->has_failed = rc != 0;
    if (rc)
        return rc;
    site_names_close(&l->names);
    l->names = names;
    return 1;
}

/* A failure costs as much as what works, and is tried again as often. */
static int names_if_due(struct running *l, struct error *err)
{
    struct pollfd fd = {.fd = l->naming ? naming_fd(l->naming) : -1, .events = POLLIN};
    if (l->naming)
        return poll(&fd, 1, 0) > 0 ? take_names(l, err) : 0;
    if (clock_now_ns(CLOCK_MONOTONIC) < l->naming_at_ns || !has_nameless(l))
        return 0;
    return begin_naming(l, err);
}

int running_wait_names(struct running *l, struct error *err)
{
    int rc = l->naming ? 0 : begin_naming(l, err);
    rc = rc ? rc : take_names(l, err);
    return rc < 0 ? rc : 0;
}

int running_fd(const struct running *l)
{
    return l->naming ? naming_fd(l->naming) : -1;
}

/* --- all --- */

/* A path of digits alone would be a process. */
static void reach(struct running *l)
{
    struct buf path = BUF(1 << 16);
    struct error unused;
    buf_printf(&path, "%s%s", strchr(l->path, '/') ? "" : "./", l->path);
    l->is_elsewhere = outside_open(buf_text(&path), &l->outside, &unused) == -EACCES;
    buf_free(&path);
}

int running_open(const char *path, site_names_open *open, int is_quiet, struct running **live, struct error *err)
{
    struct running *l = xcalloc(1, sizeof *l);
    *l = (struct running){.path = path, .open = open, .is_quiet = is_quiet};
    *live = NULL;
    l->mark = mark_of(path);
    int rc = look_again(l, 1, err);
    if (rc) {
        running_close(l);
        return rc;
    }
    if (l->look.is_recording)
        reach(l);
    read_desk(l);
    *live = l;
    return 0;
}

void running_close(struct running *l)
{
    if (!l)
        return;
    naming_cancel(l->naming);
    site_names_close(&l->names);
    glance_close(&l->look);
    outside_close(l->outside);
    free(l->growth);
    free(l->changes);
    free(l);
}

int running_step(struct running *l, struct error *err)
{
    int was_running = running_goes_on(l);
    read_desk(l);
    if (was_running != running_goes_on(l))
        l->look_at_ns = l->naming_at_ns = 0;
    int looked = look_if_new(l, err);
    int named = looked < 0 ? looked : names_if_due(l, err);
    return named < 0 ? named : looked || named || l->desk_count;
}

const struct glance *running_glance(const struct running *l)
{
    return &l->look;
}

int running_goes_on(const struct running *l)
{
    return l->outside || (l->is_elsewhere && l->look.is_recording);
}

int running_mark(const struct running *l, const char *name, struct error *err)
{
    enum wire_reply reply;
    if (!l->outside)
        return error_set(err, ESRCH, "no mark: the recording is over, or cannot be reached");
    return request_ask(l->outside, "mark", WIRE_WISH_MARK, 0, name, &reply, err);
}

int64_t running_time_ns(const struct running *l)
{
    int64_t time_ns = l->look.duration_ns;
    for (unsigned i = 0; i < l->desk_count; i++)
        if ((int64_t)l->desk[i].figures.time_ns > time_ns)
            time_ns = (int64_t)l->desk[i].figures.time_ns;
    return time_ns;
}

int running_has_growth(const struct running *l, int64_t *span_ns)
{
    int64_t from_ns = l->look.duration_ns - GLANCE_GROWTH_NS;
    if (from_ns < l->growth_since_ns)
        from_ns = l->growth_since_ns;
    *span_ns = l->look.duration_ns - from_ns;
    return *span_ns > 0;
}

/* --- devices --- */

static void from_desk(struct running_device *d, const struct wire_figures *f)
{
    d->active_bytes = (int64_t)f->active_bytes;
    d->active_count = (int64_t)f->active_count;
    d->allocated_bytes = (int64_t)f->allocated_bytes;
    d->reserved_bytes = (int64_t)f->reserved_bytes;
    d->used_bytes = f->used_bytes ? (int64_t)f->used_bytes : d->used_bytes;
    d->total_bytes = f->total_bytes ? (int64_t)f->total_bytes : d->total_bytes;
}

static struct running_device from_file(const struct glance_device *f)
{
    return (struct running_device){.name = f->name,
                                   .active_bytes = f->active_bytes,
                                   .active_count = f->active_count,
                                   .allocated_bytes = GLANCE_UNKNOWN,
                                   .reserved_bytes = f->reserved_bytes,
                                   .used_bytes = f->used_bytes,
                                   .total_bytes = f->total_bytes,
                                   .peak_active_bytes = f->peak_active_bytes,
                                   .peak_reserved_bytes = f->peak_reserved_bytes,
                                   .spark_bytes = f->spark_bytes};
}

/* A peak of the file is up to the last commit; what the desk says now may be more. */
static int64_t at_least(int64_t peak, int64_t now)
{
    return now != GLANCE_UNKNOWN && now > peak ? now : peak;
}

size_t running_devices(const struct running *l, struct running_device **devices)
{
    size_t count = 0, capacity = 0;
    *devices = NULL;
    for (size_t i = 0; i < l->look.device_count; i++) {
        struct running_device *d = ARRAY_ADD(*devices, count, capacity);
        *d = from_file(&l->look.devices[i]);
        const struct desk_device *desk = desk_of(l, d->name);
        if (desk)
            from_desk(d, &desk->figures);
        d->peak_active_bytes = at_least(d->peak_active_bytes, d->active_bytes);
        d->peak_reserved_bytes = at_least(d->peak_reserved_bytes, d->reserved_bytes);
    }
    return count;
}

/* --- rows --- */

static int compare_rows(const void *a, const void *b, void *sort)
{
    const struct running_row *x = a, *y = b;
    const int64_t by[][2] = {[RUNNING_SORT_ACTIVE] = {x->bytes, y->bytes},
                             [RUNNING_SORT_GROWTH] = {x->growth_bytes, y->growth_bytes},
                             [RUNNING_SORT_COUNT] = {x->count, y->count}};
    const int64_t *value = by[*(const enum running_sort *)sort];
    if (value[0] != value[1])
        return value[0] > value[1] ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    int rc = strcmp(x->name->function, y->name->function);
    return rc ? rc : strcmp(x->name->source, y->name->source);
}

/* By device id: its name; NULL: not asked for. */
static void choose_devices(const struct running *l, const char *wanted, const char *chosen[256])
{
    memset(chosen, 0, 256 * sizeof *chosen);
    for (size_t i = 0; i < l->look.device_count; i++)
        if (device_is(l->look.devices[i].name, wanted))
            chosen[l->look.devices[i].id] = l->look.devices[i].name;
}

static size_t without_empty(struct running_row *rows, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (rows[i].bytes || rows[i].count || rows[i].growth_bytes)
            rows[kept++] = rows[i];
    return kept;
}

size_t running_rows(const struct running *l, const struct running_view *view, struct running_row **rows)
{
    const char *devices[256];
    struct map map = {0};
    size_t count = 0, capacity = 0;
    enum running_sort sort = view->sort;
    choose_devices(l, view->device, devices);
    *rows = NULL;
    for (uint32_t i = 1; i < l->look.site_end; i++) {
        const char *device = devices[l->look.device[i]];
        if (!device || (!l->look.bytes[i] && !l->look.count[i] && !l->growth[i]))
            continue;
        const struct site_name *name = site_names_of(&l->names, view->by, i);
        const int is_named = i < l->names.site_end;
        uint32_t row =
            map_number_or(&map, (uintptr_t)name, (uint64_t)is_named << 32 | l->look.device[i], (uint32_t)count);
        if (row == count)
            *ARRAY_ADD(*rows, count, capacity) =
                (struct running_row){.device = device, .name = name, .is_named = is_named};
        wrap_change(&(*rows)[row].bytes, (uint64_t)l->look.bytes[i]);
        wrap_change(&(*rows)[row].count, (uint64_t)l->look.count[i]);
        wrap_change(&(*rows)[row].growth_bytes, (uint64_t)l->growth[i]);
    }
    map_close(&map);
    count = without_empty(*rows, count);
    if (count)
        qsort_r(*rows, count, sizeof **rows, compare_rows, &sort);
    return count;
}
