#include "check_private.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/match.h"
#include "../../common/sum.h"
#include "../../common/text.h"
#include "../../common/units.h"
#include "../query/bare_code.h"
#include "../query/device.h"
#include "../query/diff.h"
#include "../query/merged.h"
#include "../text/leaks.h"
#include "../text/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const check_verdict_names[] = {"kept", "broken", "unknown"};

static const char *kind_of(const struct check_measure *m)
{
    return m->options->kind ? m->options->kind : "all";
}

static void set(struct check_device *d, enum check_id id, int64_t value)
{
    d->value[id] = value;
    d->known |= 1u << id;
}

static struct check_device *find_device(struct check_measure *m, const char *name)
{
    for (int i = 0; i < m->device_count; i++)
        if (strcmp(m->device[i].name, name) == 0)
            return &m->device[i];
    return NULL;
}

/* --- devices --- */

int check_measure_devices(struct check_measure *m, struct error *err)
{
    static const struct {
        enum check_id id;
        int column;
    } of[] = {{CHECK_max_peak, 1},
              {CHECK_max_reserved, 2},
              {CHECK_max_allocs, 3},
              {CHECK_max_allocated, 4},
              {CHECK_max_temporary, 5}};
    sqlite3_stmt *s = NULL;
    if (m->has_totals)
        return 0;
    m->has_totals = 1;
    int rc = device_check(m->db, m->options->device, m->options->kind, err);
    if (rc == 0)
        rc = db_prepare(
            m->db,
            "SELECT d.name, t.peak_active_bytes, t.peak_reserved_bytes, t.alloc_count, t.alloc_bytes, "
            "t.temporary_count, t.peak_reserved_ns, t.device_id IS NOT NULL FROM device d LEFT JOIN total t"
            " ON t.device_id = d.device_id AND t.kind = ?2 WHERE " DEVICE_IS("d.name", "?1") " "
                                                                                             "ORDER BY d.device_id",
            &s, err);
    if (rc == 0) {
        sqlite3_bind_text(s, 1, m->options->device, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 2, kind_of(m), -1, SQLITE_STATIC);
    }
    while (rc == 0 && db_next(s, &rc, err)) {
        struct check_device *d = ARRAY_ADD(m->device, m->device_count, m->device_capacity);
        d->name = xstrdup(db_text(s, 0));
        d->reserved_ns = sqlite3_column_int64(s, 6);
        for (size_t i = 0; i < sizeof of / sizeof *of; i++)
            if (sqlite3_column_type(s, of[i].column) != SQLITE_NULL || !sqlite3_column_int(s, 7))
                set(d, of[i].id, sqlite3_column_int64(s, of[i].column));
    }
    sqlite3_finalize(s);
    return rc;
}

static int load_largest(struct check_measure *m, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(m->db,
                        "SELECT d.name, max(s.largest_bytes) FROM site s JOIN device d USING(device_id) "
                        "WHERE ?1 IN ('all', s.kind) GROUP BY d.name",
                        &s, err);
    if (rc == 0)
        sqlite3_bind_text(s, 1, kind_of(m), -1, SQLITE_STATIC);
    for (int i = 0; i < m->device_count; i++)
        set(&m->device[i], CHECK_max_largest, 0);
    while (rc == 0 && db_next(s, &rc, err)) {
        struct check_device *d = find_device(m, db_text(s, 0));
        if (d)
            set(d, CHECK_max_largest, sqlite3_column_int64(s, 1));
    }
    sqlite3_finalize(s);
    return rc;
}

static void take_leak(void *arg, const struct leaks_row *row)
{
    struct check_measure *m = arg;
    struct check_device *d = row->device ? find_device(m, row->device) : NULL;
    if (!d)
        return;
    sum_add(&d->value[CHECK_max_leak], row->kept_bytes);
    sum_add(&d->value[CHECK_max_leak_blocks], row->kept_blocks);
    sum_add(&d->value[CHECK_max_live_at_end], row->bytes);
    sum_add(&d->torn_bytes, row->bytes - row->kept_bytes);
    *ARRAY_ADD(d->culprit, d->culprit_count, d->culprit_capacity) =
        (struct check_culprit){.live_bytes = row->bytes,
                               .kept_bytes = row->kept_bytes,
                               .kept_blocks = row->kept_blocks,
                               .device = xstrdup_if(row->device),
                               .function = xstrdup_if(row->function ? row->function
                                                      : row->module ? text_basename(row->module)
                                                                    : NULL),
                               .file = xstrdup_if(row->file),
                               .line = row->line,
                               .stack_id = row->stack_id};
}

int check_is_of_leaks(enum check_id id)
{
    return id == CHECK_max_leak || id == CHECK_max_leak_blocks || id == CHECK_max_live_at_end;
}

static int load_leaks(struct check_measure *m, struct error *err)
{
    const struct report_options report = {.device = m->options->device,
                                          .kind = m->options->kind,
                                          .by = ROW_STACK,
                                          .sort = -1,
                                          .frames = m->options->frames,
                                          .lens = m->options->lens};
    const struct leaks_options leaks = {&report, m->options->suppressions, m->options->all};
    for (int i = 0; i < m->device_count; i++) {
        set(&m->device[i], CHECK_max_leak, 0);
        set(&m->device[i], CHECK_max_leak_blocks, 0);
        set(&m->device[i], CHECK_max_live_at_end, 0);
    }
    return leaks_each(m->db, &leaks, take_leak, m, err);
}

int check_value_of_device(struct check_measure *m, enum check_id id, const char *device, struct check_value *value,
                          struct error *err)
{
    char text[UNITS_TEXT];
    int rc = check_measure_devices(m, err);
    if (rc == 0 && check_is_of_leaks(id) && !m->has_leaks) {
        m->has_leaks = 1;
        rc = load_leaks(m, err);
    }
    if (rc == 0 && id == CHECK_max_largest && !m->has_largest) {
        m->has_largest = 1;
        rc = load_largest(m, err);
    }
    if (rc)
        return rc;
    const struct check_device *d = find_device(m, device);
    *value = (struct check_value){.is_known = 1, .most = -1};
    if (!d) {
        snprintf(value->note, sizeof value->note, "this recording has no device %.60s", device);
    } else if (!(d->known >> id & 1)) {
        value->is_known = 0;
        snprintf(value->note, sizeof value->note,
                 "%s are not known of one process alone, nor of what the recording was imported from",
                 check_infos[id].text);
    } else if (merged_count(m->db) > 1 && (id == CHECK_max_peak || id == CHECK_max_reserved)) {
        rc = check_value_of_merged(m, id, device, d->value[id], value, err);
    } else {
        value->value = d->value[id];
        if (d->torn_bytes && (id == CHECK_max_leak || id == CHECK_max_leak_blocks))
            snprintf(value->note, sizeof value->note, "without %s that Python freed as it ended (--max-live-at-end)",
                     units_bytes(text, d->torn_bytes));
    }
    return rc;
}

/* --- places --- */

int check_is_of_function(const char *pattern, const struct row *row)
{
    struct buf bare = BUF(1 << 20);
    if (!row->function)
        return row->module && (bare_code_matches(pattern, row->module, row->offset) ||
                               bare_code_is_label(pattern, row->module, row->offset));
    int is_match = match_function(pattern, row->function, row->plain_name ? row->plain_name : "");
    if (!is_match) { /* a compiler's clone of it */
        diff_bare_name(row->function, &bare);
        is_match = !bare.failed && strcmp(buf_text(&bare), pattern) == 0;
    }
    buf_free(&bare);
    return is_match;
}

int check_next_of_place(const struct check_place *place, const struct rows *rows, int from)
{
    for (int i = from; i < rows->count; i++) {
        const struct row *row = &rows->row[i];
        if ((!place->file || (row->file && match_file(place->file, row->file))) &&
            (!place->line || row->line == place->line) &&
            (!place->function || check_is_of_function(place->function, row)))
            return i;
    }
    return -1;
}

static enum row_key key_of(const struct check_place *place)
{
    return place->line ? ROW_LINE : place->function ? ROW_FUNCTION : ROW_FILE;
}

struct rows *check_rows_of_place(struct check_measure *m, enum check_id id, const struct check_place *place,
                                 struct error *err)
{
    struct rows_query query = {.by = key_of(place),
                               .inclusive = id == CHECK_max_line_total,
                               .device = m->options->device,
                               .kind = m->options->kind,
                               .sort = STAT_own_peak_bytes};
    struct check_rows *rows = &m->rows[query.by][query.inclusive];
    if (!rows->is_loaded && rows_load(m->db, &query, &rows->rows, err))
        return NULL;
    rows->is_loaded = 1;
    return &rows->rows;
}

/* What the sites of a row held at most, each for itself: the row never held more. -1: nobody knows. */
static int sum_of_sites(struct check_measure *m, enum check_id id, const struct row *row,
                        const struct check_place *place, int64_t *sum, struct error *err)
{
    sqlite3_stmt *s = NULL;
    *sum = -1;
    if (id == CHECK_max_line_total || !row->device) /* the sites of what it calls are in no table */
        return 0;
    int rc = db_prepare(m->db,
                        "SELECT sum(s.own_peak_bytes), count(*) - count(s.own_peak_bytes) FROM site s JOIN device d "
                        "USING(device_id) LEFT JOIN site_line sl USING(site_id) LEFT JOIN line l USING(line_id) WHERE "
                        "d.name = ?1 AND ?2 IN ('all', s.kind) AND ?3 = CASE ?4 WHEN 0 THEN l.line_id WHEN 1 THEN "
                        "coalesce(l.function_id, -l.line_id) ELSE coalesce(l.file_id, 0) END",
                        &s, err);
    if (rc)
        return rc;
    sqlite3_bind_text(s, 1, row->device, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, kind_of(m), -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 3, row->key_id);
    sqlite3_bind_int(s, 4, place->line ? 0 : place->function ? 1 : 2);
    if (db_next(s, &rc, err) && sqlite3_column_int64(s, 1) == 0 && sqlite3_column_type(s, 0) == SQLITE_INTEGER)
        *sum = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return rc;
}

static void own_peak_note(const struct check_measure *m, struct check_value *value)
{
    const struct lens_options *lens = m->options->lens;
    const int is_lens = lens && (lens->skip_count || lens->pid || lens->language != TREE_BOTH);
    char *why = is_lens || value->is_sum ? NULL : db_meta_text(m->db, "own_peak_incomplete");
    char text[UNITS_TEXT];
    int length = snprintf(value->note, sizeof value->note, "own peak not known: %.150s",
                          value->is_sum ? "several recordings had it at different times"
                          : is_lens     ? "--skip, --process, --native or --python-only made its row"
                          : why         ? why
                                        : "not all events were kept");
    if (value->most >= 0)
        snprintf(value->note + length, sizeof value->note - (size_t)length, "; at most %s",
                 units_bytes(text, value->most));
    free(why);
}

/* Code of that name which allocated nothing itself, or nothing on this device, is in the stacks of what it called. */
static int find_absent(struct check_measure *m, const struct check_place *place, struct check_value *value,
                       struct error *err)
{
    struct rows_query query = {.by = key_of(place), .inclusive = 1, .sort = STAT_own_peak_bytes};
    struct check_rows *all = &m->all_rows[query.by];
    int rc = all->is_loaded ? 0 : rows_load(m->db, &query, &all->rows, err);
    if (rc)
        return rc;
    all->is_loaded = 1;
    value->is_absent = check_next_of_place(place, &all->rows, 0) < 0;
    if (value->is_absent)
        check_absent_note(place, &all->rows, value->note, sizeof value->note);
    else
        snprintf(value->note, sizeof value->note, "it allocated nothing%s", m->options->device ? " there" : " itself");
    return 0;
}

int check_value_of_place(struct check_measure *m, enum check_id id, const char *subject, struct check_value *value,
                         struct error *err)
{
    struct check_place place;
    *value = (struct check_value){.is_known = 1, .most = 0};
    if (check_place_parse(subject, &place))
        return error_set(err, EINVAL, "'%.200s' names no place", subject);
    int rc = check_measure_devices(m, err);
    const struct rows *rows = rc ? NULL : check_rows_of_place(m, id, &place, err);
    const int is_merged = merged_count(m->db) > 1;
    int count = 0;
    for (int i = -1; rc == 0 && rows && (i = check_next_of_place(&place, rows, i + 1)) >= 0; count++) {
        int known, at_peak_known;
        int64_t least = stat_value(&rows->row[i].stats, STAT_own_peak_bytes, &known), most = least;
        if (!known) {
            least = stat_value(&rows->row[i].stats, STAT_at_peak_bytes, &at_peak_known);
            value->is_known = 0;
            rc = sum_of_sites(m, id, &rows->row[i], &place, &most, err);
        }
        if (is_merged) { /* a sum of what each recording had */
            least = 0;
            value->is_known = 0;
            value->is_sum = 1;
        }
        value->value = least > value->value ? least : value->value;
        value->most = most < 0 || value->most < 0 ? -1 : most > value->most ? most : value->most;
    }
    if (!value->is_known)
        own_peak_note(m, value);
    else if (rc == 0 && rows && !count)
        rc = find_absent(m, &place, value, err);
    check_place_free(&place);
    return rc ? rc : rows ? 0 : -EIO;
}

/* --- rules --- */

static struct check_result *add_result(struct check_results *results, enum check_id id, const char *subject,
                                       const char *origin)
{
    struct check_result *r = ARRAY_ADD(results->result, results->count, results->capacity);
    r->id = id;
    r->subject = xstrdup_if(subject);
    r->origin = xstrdup_if(origin);
    return r;
}

/* A place of the baseline whose file has another name now is measured under that one. */
static int follow_renamed(struct check_measure *m, struct check_result *r, struct check_value *value, struct error *err)
{
    int rc = 0;
    char *now = check_renamed(m, r->subject, &m->all_rows[ROW_FUNCTION].rows, &rc, err);
    if (!now)
        return rc;
    rc = check_value_of_place(m, r->id, now, value, err);
    if (rc == 0 && !*value->note)
        snprintf(value->note, sizeof value->note, "renamed from %.200s", r->subject);
    free(r->subject);
    r->subject = now;
    return rc;
}

static int measure(struct check_measure *m, struct check_result *r, struct error *err)
{
    struct check_value value = {0};
    if (check_infos[r->id].of == CHECK_OF_range)
        return check_growth(m, r, err);
    int rc = check_infos[r->id].of == CHECK_OF_place ? check_value_of_place(m, r->id, r->subject, &value, err)
                                                     : check_value_of_device(m, r->id, r->subject, &value, err);
    if (rc == 0 && value.is_absent && r->is_growth)
        rc = follow_renamed(m, r, &value, err);
    r->measured = value.value;
    r->is_known = value.is_known && !value.is_absent;
    memcpy(r->note, value.note, sizeof r->note);
    int is_below = r->is_known || (value.most >= 0 && value.most <= r->limit);
    if (value.is_absent) /* of a baseline it is gone, and so what it held */
        is_below = r->is_known = r->is_optional || r->is_growth;
    r->most = value.most;
    r->verdict = r->measured > r->limit ? CHECK_BROKEN : is_below ? CHECK_KEPT : CHECK_UNKNOWN;
    return rc;
}

static int check_one(struct check_measure *m, struct check_results *results, const struct check_rule *rule,
                     const char *subject, struct error *err)
{
    struct check_result *r = add_result(results, rule->id, subject, rule->origin);
    r->limit = rule->limit;
    r->is_optional = rule->is_optional;
    int rc = measure(m, r, err);
    return rc || r->verdict != CHECK_BROKEN ? rc : check_find_culprits(m, r, err);
}

static int is_named(const struct check_rules *rules, enum check_id id, const char *device)
{
    for (int i = 0; i < rules->count; i++)
        if (rules->rule[i].id == id && rules->rule[i].subject && strcmp(rules->rule[i].subject, device) == 0)
            return 1;
    return 0;
}

static int is_left_out(const struct check_measure *m, const struct check_rule *rule)
{
    const char *only = m->options->device;
    return only && check_infos[rule->id].of == CHECK_OF_device && strcmp(only, rule->subject) != 0;
}

/* A rule without a device is one of each that no other rule of its kind names. */
static int check_rule(struct check_measure *m, struct check_results *results, const struct check_rules *rules,
                      const struct check_rule *rule, struct error *err)
{
    int rc = check_measure_devices(m, err);
    if (check_infos[rule->id].of != CHECK_OF_device)
        return rc ? rc : check_one(m, results, rule, rule->subject, err);
    if (rule->subject) /* --device: another one is none of this check */
        return rc || is_left_out(m, rule) ? rc : check_one(m, results, rule, rule->subject, err);
    for (int i = 0; rc == 0 && i < m->device_count; i++)
        if (!is_named(rules, rule->id, m->device[i].name))
            rc = check_one(m, results, rule, m->device[i].name, err);
    return rc;
}

/* --- growth from a baseline --- */

int64_t check_percent_of(double percent, int64_t baseline)
{
    long double more = (long double)baseline * (long double)percent / 100;
    return more > 9e18L ? INT64_MAX : (int64_t)more;
}

/* What there may be: the least that a bound allows. Bytes do not bound counts. -1: nothing bounds it. */
static int64_t limit_from(const struct check_rules *rules, enum check_unit unit, int64_t baseline)
{
    int64_t most = INT64_MAX;
    int has_percent = rules->has_percent || !rules->has_growth_bytes; /* neither: it must not grow */
    if (has_percent) {
        int64_t allowed = check_percent_of(rules->percent, baseline);
        if (unit == CHECK_UNIT_bytes && rules->floor_bytes > allowed)
            allowed = rules->floor_bytes;
        most = sum_of(baseline, allowed);
    }
    if (rules->has_growth_bytes && unit == CHECK_UNIT_bytes) {
        int64_t allowed = sum_of(baseline, rules->growth_bytes);
        most = allowed < most ? allowed : most;
    }
    return !has_percent && unit != CHECK_UNIT_bytes ? -1 : most;
}

static int check_growth_from(struct check_measure *m, struct check_results *results, const struct check_rule *rule,
                             struct error *err)
{
    const enum check_of of = check_infos[rule->id].of;
    int64_t limit = limit_from(m->options->rules, check_infos[rule->id].unit, rule->limit);
    if (of == CHECK_OF_range)
        return check_one(m, results, rule, rule->subject, err);
    if (limit < 0 || !rule->subject || is_left_out(m, rule))
        return 0;
    struct check_result *r = add_result(results, rule->id, rule->subject, rule->origin);
    r->is_growth = 1;
    r->baseline = rule->limit;
    r->limit = limit;
    int rc = measure(m, r, err);
    return rc || r->verdict != CHECK_BROKEN ? rc : check_find_culprits(m, r, err);
}

int check_measure(sqlite3 *db, const struct check_options *options, struct check_results *results, struct error *err)
{
    struct check_measure m = {.db = db, .options = options};
    int rc = check_measure_devices(&m, err);
    *results = (struct check_results){0};
    for (int i = 0; rc == 0 && i < options->rules->count; i++)
        rc = check_rule(&m, results, options->rules, &options->rules->rule[i], err);
    for (int i = 0; rc == 0 && options->baseline && i < options->baseline->values.count; i++)
        rc = check_growth_from(&m, results, &options->baseline->values.rule[i], err);
    results->db[0] = db;
    results->run_count = 1;
    for (int i = 0; i < results->count; i++) {
        struct check_result *r = &results->result[i];
        const double value = check_infos[r->id].of == CHECK_OF_range ? r->slope : (double)r->measured;
        results->counts[r->verdict]++;
        r->spread = (struct check_spread){value, value, r->is_known, r->verdict == CHECK_BROKEN};
    }
    check_shorten_subjects(results);
    check_measure_close(&m);
    return rc;
}

void check_free_result(struct check_result *r)
{
    for (int k = 0; k < r->culprit_count; k++)
        check_free_culprit(&r->culprits[k]);
    free(r->culprits);
    free(r->subject);
    free(r->short_subject);
    free(r->origin);
}

void check_results_free(struct check_results *results)
{
    for (int i = 0; i < results->count; i++)
        check_free_result(&results->result[i]);
    free(results->result);
    *results = (struct check_results){0};
}

void check_measure_close(struct check_measure *m)
{
    for (int i = 0; i < m->device_count; i++) {
        struct check_device *d = &m->device[i];
        for (int k = 0; k < d->culprit_count; k++)
            check_free_culprit(&d->culprit[k]);
        free(d->culprit);
        free(d->name);
    }
    free(m->device);
    if (m->diff)
        diff_close(m->diff);
    free(m->diff);
    for (int by = 0; by < ROW_KEY_COUNT; by++)
        for (int inclusive = 0; inclusive < 2; inclusive++)
            if (m->rows[by][inclusive].is_loaded)
                rows_free(&m->rows[by][inclusive].rows);
    for (int by = 0; by < ROW_KEY_COUNT; by++)
        if (m->all_rows[by].is_loaded)
            rows_free(&m->all_rows[by].rows);
}
