#include "marks.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/map.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_SHOWN = 8, NAME_LIMIT = 1 << 16 };

struct mark {
    const char *name; /* with its domain; of names */
    int64_t start_ns, end_ns, process_id, thread_id;
    uint32_t name_number, number; /* number: in the order of the file */
    uint8_t is_range, is_ended, is_meant;
};

struct marks {
    struct mark *mark;
    uint32_t count, capacity;
    struct text_map names; /* to a number from 1 on */
};

static void free_marks(struct marks *m)
{
    text_map_close(&m->names);
    free(m->mark);
}

static int by_start(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static void add_mark(struct marks *m, sqlite3_stmt *s, struct buf *name)
{
    struct mark *mark = ARRAY_ADD(m->mark, m->count, m->capacity);
    buf_reset(name);
    if (sqlite3_column_type(s, 1) != SQLITE_NULL)
        buf_printf(name, "%s:", db_text(s, 1));
    buf_puts(name, db_text(s, 0));
    const char *text = buf_text(name);
    uint32_t *slot = text_map_slot(&m->names, text, strlen(text) + 1);
    if (!*slot)
        *slot = (uint32_t)text_map_count(&m->names);
    *mark = (struct mark){.name = text_map_key(slot),
                          .name_number = *slot,
                          .number = m->count,
                          .start_ns = sqlite3_column_int64(s, 2),
                          .end_ns = sqlite3_column_int64(s, 3),
                          .process_id = sqlite3_column_int64(s, 6),
                          .thread_id = sqlite3_column_int64(s, 7),
                          .is_ended = sqlite3_column_int(s, 5) != 0,
                          .is_range = sqlite3_column_int(s, 4) != 0};
    if (mark->start_ns < 0)
        mark->start_ns = 0;
    if (mark->end_ns < mark->start_ns)
        mark->end_ns = mark->start_ns;
}

/* In the order of their beginnings, as they mostly are in the file. The last allocation of one of PyTorch's phases is
 * where it ends. */
static int load_marks(sqlite3 *db, struct marks *m, struct error *err)
{
    struct buf name = BUF(1 << 24);
    sqlite3_stmt *s = NULL;
    int is_sorted = 1;
    int rc = db_prepare(db,
                        "SELECT m.name, m.domain, m.start_ns, coalesce(m.end_ns + (m.domain IS 'pytorch'), p.end_ns, "
                        "9223372036854775807), m.is_range, m.end_ns IS NOT NULL, m.process_id, m.thread_id FROM mark m "
                        "LEFT JOIN main.process p USING(process_id) ORDER BY m.mark_id",
                        &s, err);
    while (db_next(s, &rc, err)) {
        add_mark(m, s, &name);
        is_sorted &= m->count < 2 || m->mark[m->count - 1].start_ns >= m->mark[m->count - 2].start_ns;
    }
    sqlite3_finalize(s);
    if (!is_sorted)
        qsort(m->mark, m->count, sizeof *m->mark, by_start);
    buf_free(&name);
    return rc;
}

/* "step" means the domain's "torch:step", too, where nothing says otherwise. */
static const char *without_domain(const char *name)
{
    const char *colon = strchr(name, ':');
    return colon ? colon + 1 : name;
}

/* Each name is compared once. */
static uint32_t mean(struct marks *m, const char *pattern, int is_pattern, int ranges_only)
{
    enum { NOT_YET, NO, YES };
    uint8_t *is_meant = xcalloc(text_map_count(&m->names) + 1, 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        struct mark *k = &m->mark[i];
        uint8_t *known = &is_meant[k->name_number];
        const char *names[] = {k->name, without_domain(k->name)};
        for (int n = 0; n < 2 && *known != YES && (n || *known == NOT_YET); n++)
            *known = (is_pattern ? fnmatch(pattern, names[n], 0) : strcmp(pattern, names[n])) == 0 ? YES : NOT_YET;
        *known = *known == YES ? YES : NO;
        k->is_meant = *known == YES && (k->is_range || !ranges_only);
        count += k->is_meant;
    }
    free(is_meant);
    return count;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct mark *)a)->name, ((const struct mark *)b)->name);
}

/* "step (10), pytorch:backward (3) and 2 more": leaves the marks sorted by name. */
static void list_names(struct marks *m, int ranges_only, struct buf *list)
{
    uint32_t shown = 0, more = 0, same = 0;
    if (m->count)
        qsort(m->mark, m->count, sizeof *m->mark, by_name);
    for (uint32_t i = 0; i < m->count; i++) {
        const struct mark *k = &m->mark[i];
        if (ranges_only && !k->is_range)
            continue;
        same++;
        uint32_t next = i + 1;
        while (next < m->count && ranges_only && !m->mark[next].is_range)
            next++;
        if (next < m->count && strcmp(m->mark[next].name, k->name) == 0)
            continue;
        if (shown == NAMES_SHOWN)
            more++;
        else
            buf_printf(list, "%s%.100s", shown++ ? ", " : "", k->name);
        if (!more && same > 1)
            buf_printf(list, " (%u)", same);
        same = 0;
    }
    if (more)
        buf_printf(list, " and %u more", more);
}

static int none(struct marks *m, const char *option, const char *text, int ranges_only, struct error *err)
{
    struct buf list = BUF(NAME_LIMIT);
    const char *what = ranges_only ? "range" : "mark";
    int is_instant = ranges_only && mean(m, text, 1, 0);
    list_names(m, ranges_only, &list);
    int rc = list.length
                 ? error_set(err, EINVAL, "%s%.200s: %s; this recording has: %s", option, text,
                             is_instant    ? "is an instant, no range"
                             : ranges_only ? "no range of that name"
                                           : "no mark of that name",
                             list.data)
                 : error_set(err, EINVAL, "%s%.200s: this recording has no %ss; memprof.h, NVTX and PyTorch make them",
                             option, text, what);
    buf_free(&list);
    return rc;
}

/* Marks what is meant; *nth: 0 for all. */
static int choose(struct marks *m, const char *option, const char *text, int ranges_only, int64_t *nth, uint32_t *of,
                  struct error *err)
{
    const char *hash = strrchr(text, '#');
    *nth = 1;
    *of = mean(m, text, 0, ranges_only);
    if (!*of)
        *of = mean(m, text, 1, ranges_only);
    if (!*of && hash) {
        char *name = xstrdup(text), *end;
        name[hash - text] = 0;
        *nth = strcmp(hash, "#all") == 0 ? 0 : strtoll(hash + 1, &end, 10);
        int is_bad = *nth && (end == hash + 1 || *end || *nth < 0);
        *of = mean(m, name, 0, ranges_only);
        if (!*of)
            *of = mean(m, name, 1, ranges_only);
        free(name);
        if (is_bad || (*nth == 0 && (!ranges_only || hash[1] != 'a')))
            return error_set(err, EINVAL, "%s%.200s: expected NAME, NAME#1%s", option, text,
                             ranges_only ? " or NAME#all" : "");
        if (*of && *nth > *of)
            return error_set(err, EINVAL, "%s%.200s: there %s %u of that name", option, text, *of == 1 ? "is" : "are",
                             *of);
    }
    return *of ? 0 : none(m, option, text, ranges_only, err);
}

int marks_find_ranges(sqlite3 *db, const char *text, struct marks_found *found, struct error *err)
{
    struct marks m = {0};
    uint32_t of = 0;
    int64_t seen = 0;
    *found = (struct marks_found){0};
    int rc = load_marks(db, &m, err);
    if (rc == 0)
        rc = choose(&m, "--during ", text, 1, &found->nth, &of, err);
    found->of = of;
    if (rc == 0)
        found->ranges = xcalloc(of + 1ul, sizeof *found->ranges);
    for (uint32_t i = 0; rc == 0 && i < m.count; i++) {
        const struct mark *k = &m.mark[i];
        if (!k->is_meant || (++seen != found->nth && found->nth))
            continue;
        found->ranges[found->count++] = (struct window_range){k->start_ns, k->end_ns};
        if (!found->name && found->nth)
            found->name = xstrdup(k->name);
    }
    if (rc == 0 && !found->name) {
        found->name = xstrdup(text);
        char *hash = strrchr(found->name, '#');
        if (hash && strcmp(hash, "#all") == 0)
            *hash = 0;
    }
    found->count = window_unite(found->ranges, found->count);
    free_marks(&m);
    return rc;
}

int marks_find_executions(sqlite3 *db, const char *option, const char *name, struct executions *e, struct error *err)
{
    struct marks m = {0};
    char asked[64];
    const int is_all = strcmp(name, "*") == 0; /* of the program's doing: a pause is of the recording's */
    *e = (struct executions){.count = 0};
    snprintf(asked, sizeof asked, "%s ", option);
    int rc = load_marks(db, &m, err);
    struct name {
        uint32_t place, count; /* place + 1, in e->names; executions so far */
    } *names = xcalloc(text_map_count(&m.names) + 1, sizeof *names);
    if (rc == 0 && !mean(&m, name, 0, 1) && !mean(&m, name, 1, 1))
        rc = none(&m, asked, name, 1, err);
    for (uint32_t i = 0; rc == 0 && i < m.count; i++) {
        const struct mark *k = &m.mark[i];
        if (!k->is_meant || (is_all && !strncmp(k->name, "pause:", 6)))
            continue;
        if (e->count == EXECUTIONS_MAX) {
            rc = error_set(err, EFBIG, "%s%.200s: more than %d executions", asked, name, EXECUTIONS_MAX);
            break;
        }
        struct name *n = &names[k->name_number];
        if (!n->place) {
            *ARRAY_ADD(e->names, e->name_count, e->name_capacity) = xstrdup(k->name);
            n->place = e->name_count;
        }
        *ARRAY_ADD(e->execution, e->count, e->capacity) = (struct execution){.start_ns = k->start_ns,
                                                                             .end_ns = k->end_ns,
                                                                             .process_id = k->process_id,
                                                                             .thread_id = k->thread_id,
                                                                             .name = n->place - 1,
                                                                             .nth_of_name = ++n->count,
                                                                             .is_ended = k->is_ended};
    }
    free(names);
    free_marks(&m);
    return rc;
}

int marks_find_instant(sqlite3 *db, const char *option, const char *text, int64_t *time_ns, struct error *err)
{
    struct marks m = {0};
    char asked[32];
    int64_t nth, seen = 0;
    uint32_t of;
    int rc = load_marks(db, &m, err);
    snprintf(asked, sizeof asked, "%s mark:", option);
    if (rc == 0)
        rc = choose(&m, asked, text, 0, &nth, &of, err);
    for (uint32_t i = 0; rc == 0 && i < m.count; i++)
        if (m.mark[i].is_meant && ++seen == nth)
            *time_ns = m.mark[i].start_ns;
    free_marks(&m);
    return rc;
}
