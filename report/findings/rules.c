/* The rules, and who asks them: a row of findings.def each. */
#include "rules.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../query/device.h"
#include "../query/ending.h"
#include "../query/estimate.h"
#include "../query/unseen.h"

#include <stdlib.h>
#include <string.h>

enum { OF_DEVICE, OF_RUN };
enum {                /* bits: enum findings_for */
       IS_LISTED = 4, /* its information has no line on a terminal */
       FOR_EVERYWHERE = FINDINGS_REPORT | FINDINGS_ADVISE,
       FOR_REPORTS = FINDINGS_REPORT,
       FOR_LISTS = FINDINGS_REPORT | FINDINGS_ADVISE | IS_LISTED,
       FOR_LISTED = FINDINGS_REPORT | IS_LISTED
};
enum {
    NEEDS_NOTHING,
    NEEDS_INSTANTS,
    NEEDS_TIMELINE,
    NEEDS_MOMENT,
    NEEDS_FAILURES,
    NEEDS_BLOCKS,
    NEEDS_RESIDENT,
    NEEDS_NAMES,
    NEEDS_EVENTS,
    NEEDS
};

struct rule {
    const char *name, *title;
    enum finding_severity severity;
    int of, needs, where;
    void (*find)(struct rules *r);
};

#define EVENTS_READ    1000000 /* of more, only memprof advise says what a finding saves at the peak, */
#define SITES_WALKED   50000   /* and for whom a line keeps it */
#define LITTLE_SHARE   8       /* of what the largest finding is about */
#define REPLACED_SHARE 8       /* of the blocks that are live at the end */

static const struct rule rules[] = {
#define FINDING(name, title, severity, of, needs, where)                                                               \
    {#name, title, FINDING_##severity, OF_##of, NEEDS_##needs, FOR_##where, find_##name},
#include "findings.def"
#undef FINDING
};
#define RULES (sizeof rules / sizeof *rules)

/* 1 where the file has it. */
static const char *const needs_sql[NEEDS] = {
    [NEEDS_INSTANTS] = RULE_HAS_INSTANTS,
    [NEEDS_TIMELINE] = "SELECT EXISTS (SELECT 1 FROM timeline) AND NOT EXISTS (SELECT 1 FROM recording)",
    /* peaks that were at an instant: those of a merged file are sums */
    [NEEDS_MOMENT] = "SELECT NOT EXISTS (SELECT 1 FROM recording)",
    [NEEDS_FAILURES] = "SELECT EXISTS (SELECT 1 FROM oom)",
    [NEEDS_RESIDENT] = "SELECT EXISTS (SELECT 1 FROM resident_scan WHERE is_peak) AND NOT EXISTS (SELECT 1 FROM "
                       "recording)",
    [NEEDS_NAMES] = "SELECT EXISTS (SELECT 1 FROM block_name)",
    [NEEDS_EVENTS] = "SELECT value = 'all' FROM meta WHERE key = 'events_kept'",
    /* every block of the run, one by one */
    [NEEDS_BLOCKS] = "SELECT (SELECT count(*) FROM block) >= (SELECT sum(alloc_count) FROM total WHERE kind = 'all')",
};

sqlite3_stmt *rule_query(struct rules *r, const char *sql)
{
    sqlite3_stmt *s = NULL;
    return db_prepare(r->db, sql, &s, r->err) ? NULL : s;
}

int64_t rule_amount(sqlite3_stmt *s, int column)
{
    return rule_sane(sqlite3_column_int64(s, column));
}

int rule_has_unseen(struct rules *r)
{
    return unseen_blocks(r->db, NULL);
}

int rule_frees_unseen(struct rules *r)
{
    return r->device->device_id == 0 && unseen_freed_bytes(r->db) > r->device->end_bytes / REPLACED_SHARE;
}

int rule_replaces_unseen(struct rules *r)
{
    return rule_frees_unseen(r) || (r->device->device_id == 0 && rule_has_unseen(r) &&
                                    unseen_frees(r->db) >= r->device->end_count / REPLACED_SHARE);
}

int64_t rule_query_amount(struct rules *r, const char *sql, const int64_t *values, int count, int64_t unknown)
{
    sqlite3_stmt *s = rule_query(r, sql);
    int64_t amount = unknown;
    for (int i = 0; s && i < count; i++)
        sqlite3_bind_int64(s, i + 1, values[i]);
    if (s && sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL)
        amount = rule_amount(s, 0);
    sqlite3_finalize(s);
    return amount;
}

int rule_percent(int64_t part, int64_t whole)
{
    return whole > 0 ? (int)(100.0 * (double)part / (double)whole + 0.5) : 0;
}

struct finding *rule_finding(struct rules *r, const char *device)
{
    struct findings *all = r->findings;
    int nth = 0;
    for (size_t i = 0; i < all->count; i++)
        nth += strcmp(all->item[i].rule, r->rule->name) == 0 && strcmp(all->item[i].device, device) == 0;
    struct finding *f = ARRAY_ADD(all->item, all->count, all->capacity);
    *f = (struct finding){.rule = r->rule->name,
                          .title = r->rule->title,
                          .severity = r->rule->severity,
                          .device = xstrdup(device),
                          .is_told = !(r->rule->where & FINDINGS_ADVISE),
                          .is_listed = (r->rule->where & IS_LISTED) != 0,
                          .nth = nth,
                          .active = r->device ? r->device->peak_active : 0,
                          .time_ns = -1};
    return f;
}

static void ask(struct rules *r, int of, enum findings_for asked_for)
{
    for (size_t i = 0; i < RULES; i++) {
        const struct rule *rule = &rules[i];
        if (rule->of != of || !(rule->where & (int)asked_for) ||
            (needs_sql[rule->needs] && !db_int(r->db, needs_sql[rule->needs], 0)))
            continue;
        r->rule = rule;
        rule->find(r);
    }
}

/* What nothing is to be done about. */
int finding_is_fact(const struct finding *f)
{
    return f->is_told || f->is_minor || f->is_fact;
}

/* What is at stake: of what an allocator mapped no more than was in use at once, as the rest takes addresses only. */
static int64_t stake(const struct finding *f)
{
    return f->active > 0 && f->bytes > f->active ? f->active : f->bytes;
}

static int is_little(const struct findings *all, const struct finding *f)
{
    int64_t most = 0;
    for (size_t i = 0; i < all->count; i++) {
        const struct finding *other = &all->item[i];
        if (other->severity == f->severity && stake(other) > most && strcmp(other->device, f->device) == 0)
            most = stake(other);
    }
    return f->bytes > 0 && stake(f) < most / LITTLE_SHARE;
}

/* The worst first; for advise what is to be done first, of that what saves most; then what is about most, and the order
 * of the rules. */
static int comes_before(const struct findings *all, const struct finding *a, const struct finding *b)
{
    if (a->severity != b->severity)
        return a->severity < b->severity;
    if (all->is_advise && finding_is_fact(a) != finding_is_fact(b))
        return finding_is_fact(b);
    if (a->is_minor != b->is_minor)
        return b->is_minor;
    if (all->is_advise && a->saved_bytes != b->saved_bytes)
        return a->saved_bytes > b->saved_bytes;
    return a->is_little < b->is_little;
}

static void sort(struct findings *all)
{
    for (size_t i = 0; i < all->count; i++)
        all->item[i].is_little = is_little(all, &all->item[i]);
    for (size_t i = 1; i < all->count; i++)
        for (size_t k = i; k > 0 && comes_before(all, &all->item[k], &all->item[k - 1]); k--) {
            struct finding swapped = all->item[k];
            all->item[k] = all->item[k - 1];
            all->item[k - 1] = swapped;
        }
}

static void free_finding(struct finding *f)
{
    for (size_t i = 0; i < f->part_count; i++)
        free(f->parts[i].text);
    free(f->parts);
    buf_free(&f->skips);
    free(f->device);
    free(f->function);
    free(f->caller);
    free(f->file);
}

static void keep_device(struct findings *all, const char *device)
{
    size_t kept = 0;
    for (size_t i = 0; i < all->count; i++)
        if (device_is(all->item[i].device, device))
            all->item[kept++] = all->item[i];
        else
            free_finding(&all->item[i]);
    all->count = kept;
}

static void add_kept(struct findings *all, const struct rule_line *l, int64_t line_id)
{
    for (int noise = NOISE_NONE + 1; noise < NOISE_KINDS; noise++)
        if (l->sums[LINE_END_KEPT(noise) + 1] > 0)
            *ARRAY_ADD(all->kept, all->kept_count, all->kept_capacity) =
                (struct finding_kept){line_id, l->sums[LINE_END_KEPT(noise)], l->sums[LINE_END_KEPT(noise) + 1], noise};
}

static void keep_kept(struct rules *r)
{
    sqlite3_stmt *s = r->has_ends ? rule_query(r, "SELECT line_id FROM site_line WHERE site_id = ?") : NULL;
    for (uint32_t i = 0; s && i < r->line_count; i++) {
        if (r->lines[i].device_id != 0)
            continue;
        sqlite3_bind_int64(s, 1, r->lines[i].site_id);
        if (sqlite3_step(s) == SQLITE_ROW)
            add_kept(r->findings, &r->lines[i], sqlite3_column_int64(s, 0));
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
}

static void close_all(struct rules *r)
{
    watches_close(r);
    map_close(&r->line_of);
    free(r->growth);
    free(r->recorded_growth);
    free(r->recorded);
    free(r->even);
    free(r->lines);
    free(r->sites);
}

int findings_load(sqlite3 *db, const struct findings_options *o, struct findings *findings, struct error *err)
{
    struct rules r = {.db = db,
                      .err = err,
                      .findings = findings,
                      .heap_end = o->heap_end,
                      .is_advise = o->asked_for == FINDINGS_ADVISE};
    struct pass pass = {.db = NULL};
    sqlite3_stmt *s = NULL;
    int rc = 0, step;
    *findings = (struct findings){.device_count = (int)db_int(db, "SELECT count(*) FROM device", 0), .file = o->file};
    if (estimate_mean_bytes(db)) /* they are of exact numbers */
        return 0;
    r.duration_ns = ending_duration_ns(db, 1);
    rc = rule_lines(&r);
    findings->leaves_events =
        !r.is_advise && (db_meta_int(db, "event_count", 0) > EVENTS_READ || r.site_count > SITES_WALKED);
    if (rc == 0 && !findings->leaves_events)
        rc = watches_load(&r, &pass, o->progress, o->progress_arg);
    findings->is_advise = r.is_advise;
    findings->has_events = r.pass != NULL;
    if (rc == 0)
        rc = db_prepare(db,
                        "SELECT d.device_id, d.name, alloc_count, temporary_count, peak_active_bytes, peak_active_ns, "
                        "peak_active_count, peak_reserved_bytes, peak_reserved_ns, end_active_bytes, end_count "
                        "FROM total t JOIN device d ON d.device_id = t.device_id WHERE kind = 'all' AND " DEVICE_IS(
                            "d.name", "?2") " ORDER BY d.device_id <> ?1, d.device_id LIMIT 16",
                        &s, err);
    if (rc) {
        close_all(&r);
        pass_close(&pass);
        return rc;
    }
    sqlite3_bind_int64(s, 1, o->first_device);
    sqlite3_bind_text(s, 2, o->device, -1, SQLITE_STATIC);
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        char *name = xstrdup(db_text(s, 1));
        struct rule_device d = {.device_id = sqlite3_column_int64(s, 0), .name = name};
        int64_t *values[] = {&d.alloc_count,   &d.temporary_count,  &d.peak_active, &d.peak_ns,  &d.peak_count,
                             &d.peak_reserved, &d.peak_reserved_ns, &d.end_bytes,   &d.end_count};
        for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
            *values[i] = rule_amount(s, (int)i + 2);
        r.device = &d;
        ask(&r, OF_DEVICE, o->asked_for);
        r.device = NULL;
        free(name);
    }
    rc = step == SQLITE_DONE ? 0 : db_error(db, err);
    sqlite3_finalize(s);
    ask(&r, OF_RUN, o->asked_for);
    if (o->device)
        keep_device(findings, o->device);
    if (r.is_advise)
        findings_lessen_same(findings);
    sort(findings);
    keep_kept(&r);
    close_all(&r);
    pass_close(&pass);
    return rc;
}

void findings_free(struct findings *all)
{
    for (size_t i = 0; i < all->count; i++)
        free_finding(&all->item[i]);
    free(all->item);
    free(all->kept);
    *all = (struct findings){0};
}
