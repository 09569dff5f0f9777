/*
 * What each line, function, file and module allocated itself, of a recording with many sites that goes on: column by
 * column over numbers that sites with the same keys share, so that no site's statistics are ever put side by side.
 */
#include "finish_account.h"

#include "../../common/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct shared {           /* the sites of one self frame, or address, and group */
    uint32_t site, count; /* one of them; how many there are */
    int64_t stat[VALUE_COUNT];
};

struct selves {
    struct account_pass *p;
    struct map map;
    uint32_t *number; /* by site id: place in shared */
    struct shared *shared;
    size_t count, capacity;
};

static uint32_t number_of(struct selves *l, uint32_t site)
{
    const struct model_site *s = &l->p->m->sites[site];
    uint64_t key = (uint64_t)s->self_frame << 32 | s->self_address;
    uint32_t number = map_number_or(&l->map, key, s->group, (uint32_t)l->count);
    if (number == l->count)
        *ARRAY_ADD(l->shared, l->count, l->capacity) = (struct shared){.site = site};
    return number;
}

/* Most sites have the keys of the one before. */
static void number_sites(struct selves *l)
{
    const struct model *m = l->p->m;
    const struct model_site *before = NULL;
    uint32_t number = 0;
    l->number = xcalloc(m->site_count + 1, sizeof *l->number);
    for (uint32_t i = 0; i < m->site_count; i++) {
        const struct model_site *s = &m->sites[i];
        if (!before || s->self_frame != before->self_frame || s->self_address != before->self_address ||
            s->group != before->group)
            number = number_of(l, i);
        before = s;
        l->number[s->id] = number;
        l->shared[number].count++;
    }
}

static int is_most(int stat)
{
    static const uint8_t most[] = {
#define sum                                     0
#define exact                                   0
#define max                                     1
#define STAT(column, name, unit, combine, text) combine,
#include "../../common/stat.def"
#undef STAT
#undef sum
#undef exact
#undef max
    };
    return most[stat];
}

static void add_column(struct selves *l, int stat, const struct packed_values *values)
{
    uint32_t rows = (uint32_t)l->p->m->site_count;
    if (!values->narrow && !values->wide) /* all are 0 */
        return;
    if (is_most(stat))
        for (uint32_t i = 1; i <= rows; i++) {
            int64_t *into = &l->shared[l->number[i]].stat[stat];
            *into = account_max(*into, (int64_t)packed_at(values, i));
        }
    else
        for (uint32_t i = 1; i <= rows; i++)
            wrap_change(&l->shared[l->number[i]].stat[stat], packed_at(values, i));
    for (uint32_t i = 1; i <= rows && stat == STAT_own_peak_bytes; i++) {
        int64_t *into = &l->shared[l->number[i]].stat[STAT_own_largest];
        *into = account_max(*into, (int64_t)packed_at(values, i));
    }
}

static int add_columns(struct selves *l, struct error *err)
{
    struct model *m = l->p->m;
    for (int k = 0; k < STAT_COUNT; k++) {
        const struct packed_values *values;
        int rc = packed_read(m->packed, PACKED_STATS + (enum packed_column)k, &values);
        if (rc)
            return error_set(err, -rc, "%s: %s", sqlite3_db_filename(m->db, "main"), packed_error(rc));
        add_column(l, k, values);
    }
    return 0;
}

static void add_scanned(void *arg, int64_t site_id, enum model_stat stat, uint64_t value)
{
    struct selves *l = arg;
    if (site_id >= 1 && (uint64_t)site_id <= l->p->m->site_count)
        wrap_change(&l->shared[l->number[site_id]].stat[stat], value);
}

static void add_rows(struct selves *l)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct shared *s = &l->shared[i];
        const struct model_site *site = &l->p->m->sites[s->site];
        uint32_t keys[SCOPE_COUNT];
        account_self_keys(l->p, site, keys);
        for (int k = 0; k < SCOPE_COUNT; k++) {
            struct row *r = account_row_of(l->p, 0, keys[k], site->group);
            account_combine(r->stat, s->stat);
            r->site_count += s->count;
        }
    }
}

int account_sum_selves(struct account_pass *p, struct error *err)
{
    struct selves l = {.p = p};
    number_sites(&l);
    int rc = add_columns(&l, err);
    if (rc == 0)
        rc = model_scans(p->m, add_scanned, &l, err);
    if (rc == 0)
        add_rows(&l);
    map_close(&l.map);
    free(l.number);
    free(l.shared);
    return rc;
}
