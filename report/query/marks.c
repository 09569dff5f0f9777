#include "marks.h"

#include "../../common/array.h"
#include "../../common/db.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_SHOWN = 8, NAME_LIMIT = 1 << 16 };

struct mark {
    char *name; /* with its domain */
    int64_t start_ns, end_ns;
    int is_range, is_meant;
};

struct marks {
    struct mark *mark;
    uint32_t count, capacity;
};

static void free_marks(struct marks *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        free(m->mark[i].name);
    free(m->mark);
}

/* In the order of their beginnings. The last allocation of one of PyTorch's phases is where it ends. */
static int load_marks(sqlite3 *db, struct marks *m, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db,
                        "SELECT m.name, m.domain, m.start_ns, coalesce(m.end_ns + (m.domain IS 'pytorch'), p.end_ns, "
                        "9223372036854775807), m.is_range FROM mark m LEFT JOIN main.process p USING(process_id) ORDER "
                        "BY m.start_ns, m.mark_id",
                        &s, err);
    while (db_next(s, &rc, err)) {
        struct buf name = BUF(1 << 24);
        struct mark *mark = ARRAY_ADD(m->mark, m->count, m->capacity);
        if (sqlite3_column_type(s, 1) != SQLITE_NULL)
            buf_printf(&name, "%s:", db_text(s, 1));
        buf_puts(&name, db_text(s, 0));
        *mark = (struct mark){.name = xstrdup(buf_text(&name)),
                              .start_ns = sqlite3_column_int64(s, 2),
                              .end_ns = sqlite3_column_int64(s, 3),
                              .is_range = sqlite3_column_int(s, 4) != 0};
        buf_free(&name);
        if (mark->start_ns < 0)
            mark->start_ns = 0;
        if (mark->end_ns < mark->start_ns)
            mark->end_ns = mark->start_ns;
    }
    sqlite3_finalize(s);
    return rc;
}

/* "step" means the domain's "torch:step", too, where nothing says otherwise. */
static const char *without_domain(const char *name)
{
    const char *colon = strchr(name, ':');
    return colon ? colon + 1 : name;
}

static uint32_t mean(struct marks *m, const char *pattern, int is_pattern, int ranges_only)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        struct mark *k = &m->mark[i];
        const char *names[] = {k->name, without_domain(k->name)};
        k->is_meant = 0;
        for (int n = 0; n < 2 && (k->is_range || !ranges_only); n++)
            k->is_meant |= is_pattern ? fnmatch(pattern, names[n], 0) == 0 : strcmp(pattern, names[n]) == 0;
        count += (uint32_t)k->is_meant;
    }
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
