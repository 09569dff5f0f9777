#include "live_at_end.h"

#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/sum.h"
#include "../query/look_rows.h"
#include "../query/noise.h"
#include "../query/site_rows.h"
#include "../query/torn_sites.h"
#include "own_ends.h"

#include <stdlib.h>

#define ADDRESS_SITES 16 /* that have an address of their own among them, at least */

enum { STACK, KIND, PROCESS, BYTES, COUNT, COLUMNS };
static const enum packed_column columns[COLUMNS] = {PACKED_site_stack_id, PACKED_site_kind, PACKED_site_process_id,
                                                    PACKED_site_end_bytes, PACKED_site_end_count};

static void add_site(struct rules *r, const struct site_rows *rows, const struct own_ends *own, struct ends ends,
                     int64_t untouched)
{
    const int64_t id = rows->site_id;
    ends.torn_bytes = ends.torn_bytes < ends.bytes ? ends.torn_bytes : ends.bytes;
    ends.torn_count = ends.torn_count < ends.count ? ends.torn_count : ends.count;
    struct ends replaced;
    const struct ends others = own_ends_split(own, id, site_rows_value(rows, PROCESS), &ends, &replaced);
    const int64_t bytes = ends.bytes - ends.torn_bytes, count = ends.count - ends.torn_count;
    rule_add(r, id, LINE_END_OTHER_BYTES, others.bytes);
    rule_add(r, id, LINE_END_OTHER_COUNT, others.count);
    rule_add(r, id, LINE_END_REPLACED_BYTES, replaced.bytes);
    rule_add(r, id, LINE_END_REPLACED_COUNT, replaced.count);
    rule_add(r, id, LINE_END_TORN_BYTES, ends.torn_bytes);
    rule_add(r, id, LINE_END_TORN_COUNT, ends.torn_count);
    rule_add(r, id, LINE_END_BYTES, bytes);
    rule_add(r, id, LINE_END_COUNT, count);
    rule_add(r, id, LINE_END_KILLED_BYTES, ends.killed_bytes);
    /* no more than is live at the end: a site may have held more at the look */
    rule_add(r, id, LINE_END_UNTOUCHED_BYTES, untouched < bytes ? untouched : bytes);
    const struct rule_site *site = rule_site_of(r, id);
    if (site) {
        sum_add(&r->recorded[site->recorded].end_bytes, bytes);
        r->sites[site - r->sites].has_ends = 1;
    }
    if (!ends.torn_count && rule_is_even(r, id)) {
        rule_add(r, id, LINE_END_EVEN_BYTES, bytes);
        rule_add(r, id, LINE_END_EVEN_COUNT, count);
    }
}

/* Of each of r->sites what the last looks saw on no page; NULL: nothing, or -errno in rc. */
static int64_t *untouched_of(struct rules *r, int *rc)
{
    static const enum packed_column column = PACKED_resident_site_untouched_bytes;
    int64_t *untouched = NULL;
    struct look_rows rows;
    *rc = look_rows_open(r->db, LOOKS_LAST, &column, 1, &rows, r->err);
    while (*rc == 0 && (*rc = look_rows_next(&rows, r->err)) == 1) {
        const int64_t bytes = rule_sane(look_rows_value(&rows, 0));
        const struct rule_site *site = bytes ? rule_site_of(r, rows.site_id) : NULL;
        if (site && !untouched)
            untouched = xcalloc(r->site_count, sizeof *untouched);
        if (site)
            sum_add(&untouched[site - r->sites], bytes);
        *rc = 0;
    }
    look_rows_close(&rows);
    return untouched;
}

/* Adds to lines what is live at the end, but what `memprof leaks` counts apart. */
static int add_live(struct rules *r, struct noise *noise, const struct own_ends *own, const int64_t *untouched)
{
    struct site_rows rows;
    struct torn_sites torn;
    int rc = site_rows_open(r->db, columns, COLUMNS, &rows, r->err), torn_rc = torn_sites_open(r->db, &torn, r->err);
    rc = rc ? rc : torn_rc;
    while (rc == 0 && (rc = site_rows_next(&rows, r->err)) == 1) {
        rc = 0;
        if (site_rows_value(&rows, COUNT) <= 0)
            continue;
        rc = noise_of(noise, site_rows_value(&rows, STACK), site_rows_value(&rows, KIND) == KIND_map, r->err);
        if (rc > 0) {
            rule_add(r, rows.site_id, LINE_END_KEPT(rc), rule_sane(site_rows_value(&rows, BYTES)));
            rule_add(r, rows.site_id, LINE_END_KEPT(rc) + 1, rule_sane(site_rows_value(&rows, COUNT)));
            rc = 0;
            continue;
        }
        if (rc)
            break;
        const struct torn freed = torn_sites_of(&torn, rows.site_id);
        struct ends ends = {rule_sane(site_rows_value(&rows, BYTES)), rule_sane(site_rows_value(&rows, COUNT)),
                            rule_sane(freed.bytes), rule_sane(freed.count), 0};
        const struct rule_site *site = untouched ? rule_site_of(r, rows.site_id) : NULL;
        add_site(r, &rows, own, ends, site ? rule_sane(untouched[site - r->sites]) : 0);
    }
    torn_rc = torn_sites_close(&torn, r->err);
    site_rows_close(&rows);
    return rc ? rc : torn_rc;
}

int live_at_end_load(struct rules *r)
{
    struct walk *walk = NULL;
    struct noise *noise = NULL;
    struct own_ends own;
    if (r->has_ends)
        return 0;
    r->has_ends = 1;
    rule_growth(r);
    int rc = rule_lines(r);
    if (rc == 0)
        rc = walk_open(r->db, TREE_BOTH, &walk, r->err);
    if (rc == 0) {
        walk_foresee(walk, r->site_count / ADDRESS_SITES);
        noise = noise_open(walk);
        rc = own_ends_open(r->db, &own, r->err);
        int64_t *untouched = rc ? NULL : untouched_of(r, &rc);
        rc = rc ? rc : add_live(r, noise, &own, untouched);
        free(untouched);
        own_ends_close(&own);
    }
    noise_close(noise);
    walk_close(walk);
    return rc;
}
