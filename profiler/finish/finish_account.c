/*
 * Accounts by line, function, file and module: the rows of the table, their own peaks, and when what is done.
 */
#include "finish_account.h"

#include "../../common/array.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define RANGE_STEPS_MAX 400000000  /* ranges of all sets times chunks: about a second */
#define MEMBERS_MAX     (4u << 20) /* sites of all sets, a site counted in each set that holds it */
#define THREAD_NODES    4096       /* fewer are summed sooner than a thread is there */

/* --- own peaks --------------------------------------------------------------------------------------------------- */

static void make_salt(struct account_pass *p)
{
    size_t n = p->m->site_count;
    p->salt = xcalloc(n + 1, sizeof *p->salt);
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
        seed = 0x2545f4914f6cdd1dull;
    for (size_t i = 0; i < n; i++) { /* splitmix64 */
        uint64_t x = seed += 0x9e3779b97f4a7c15ull;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ x >> 27) * 0x94d049bb133111ebull;
        p->salt[i + 1] = p->salt[i] + (x ^ x >> 31);
    }
}

/* The set of the sites of rows, one a group in ascending order: index + 1. Equal sets, frequent along a chain of calls,
 * are one. */
static uint32_t set_of(struct account_pass *p, const uint32_t *rows, size_t count, int64_t low, int64_t high,
                       int is_self)
{
    uint64_t salt = 0, site_count = 0;
    uint32_t range_count = 0;
    for (size_t i = 0; i < count; i++) {
        salt += p->rows[rows[i]].salt;
        site_count += p->rows[rows[i]].site_count;
        range_count += p->rows[rows[i]].link_count;
    }
    uint32_t set = map_number_or(&p->set_map, salt, site_count, (uint32_t)p->set_count);
    if (set < p->set_count) {
        p->set_rows[set].is_self |= is_self;
        return set + 1;
    }
    ARRAY_ROOM(p->set_rows, set + 1ul, p->set_rows_capacity);
    p->set_rows[set] =
        (struct set_rows){(uint32_t)p->row_list_count, (uint32_t)count, range_count, is_self, site_count};
    *ARRAY_ADD(p->sets, p->set_count, p->set_capacity) =
        (struct ownpeak_set){.low_bytes = low, .high_bytes = high, .peak_bytes = -1};
    for (size_t i = 0; i < count; i++)
        *ARRAY_ADD(p->row_lists, p->row_list_count, p->row_list_capacity) = rows[i];
    return set + 1;
}

static int by_worth(const void *a, const void *b, void *pass)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct account_pass *p = pass;
    /* a line's own row is looked at more often than a row of all that it calls */
    uint64_t worth_x = (uint64_t)p->sets[x].high_bytes >> !p->set_rows[x].is_self;
    uint64_t worth_y = (uint64_t)p->sets[y].high_bytes >> !p->set_rows[y].is_self;
    if (worth_x != worth_y)
        return worth_x > worth_y ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void give_set_ranges(struct account_pass *p, uint32_t set, size_t *at)
{
    const struct set_rows *rows = &p->set_rows[set];
    p->sets[set].first_range = (uint32_t)*at;
    p->sets[set].range_count = rows->range_count;
    p->ranges = xrealloc(p->ranges, (*at + rows->range_count) * sizeof *p->ranges);
    for (uint32_t n = 0; n < rows->count; n++)
        for (uint32_t l = p->rows[p->row_lists[rows->first + n]].first_link; l; l = p->links[l].next)
            p->ranges[(*at)++] = p->links[l].range;
}

/* Gives sets their ranges: all of them in any recording of a real program seen so far, else those that can be afforded:
 * self rows, which together hold each site a few times only, then large ones. */
static void give_ranges(struct account_pass *p)
{
    int64_t chunks = db_int(p->m->db, "SELECT max(chunk_id) FROM event_chunk", 0);
    size_t budget = RANGE_STEPS_MAX / (size_t)(chunks > 0 && chunks < RANGE_STEPS_MAX ? chunks : 1);
    uint32_t *order = xmalloc((p->set_count + 1) * sizeof *order);
    size_t total = 0;
    uint64_t members = 0;
    for (size_t i = 0; i < p->set_count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, p->set_count, sizeof *order, by_worth, p);
    for (int is_self = 1; is_self >= 0; is_self--)
        for (size_t i = 0; i < p->set_count; i++) {
            const struct set_rows *rows = &p->set_rows[order[i]];
            if (rows->is_self != is_self)
                continue;
            if (total + rows->range_count > budget || members + rows->site_count > MEMBERS_MAX)
                break;
            members += rows->site_count;
            p->sets[order[i]].rank = (uint32_t)i;
            give_set_ranges(p, order[i], &total);
        }
    free(order);
}

/* Adds the row of the table that stands for rows (one a group, ascending, all of one device). */
static void add_out(struct account_pass *p, enum scope scope, int inclusive, int64_t key_id, const uint32_t *rows,
                    size_t count, int is_all)
{
    struct out_row *o = ARRAY_ADD(p->out, p->out_count, p->out_capacity);
    const struct row *first = &p->rows[rows[0]];
    const struct model_group *group = &p->m->groups[first->group];
    *o = (struct out_row){(uint8_t)scope, (uint8_t)inclusive, (uint8_t)is_all, first->group, key_id, 0, -1, {0}};
    size_t sites = 0;
    for (size_t i = 0; i < count; i++) {
        const struct row *r = &p->rows[rows[i]];
        account_combine(o->stat, r->stat);
        sites += r->site_count;
    }
    int64_t high = o->stat[STAT_own_peak_bytes], low = o->stat[STAT_own_largest];
    /* Live at one instant each: of the device's peak, and of the kind's. */
    if (o->stat[STAT_at_peak_bytes] > low)
        low = o->stat[STAT_at_peak_bytes];
    if (count == 1 && o->stat[STAT_at_kind_peak_bytes] > low)
        low = o->stat[STAT_at_kind_peak_bytes];
    if (sites == 1 || low == high)
        o->own = high;
    else if (sites == group->device_count && group->device_peak_bytes >= 0)
        o->own = group->device_peak_bytes;
    else if (count == 1 && sites == group->site_count && group->peak_bytes >= 0)
        o->own = group->peak_bytes;
    else if (!p->salt)
        p->has_unknown = 1;
    else
        o->set = set_of(p, rows, count, low, high, !inclusive);
}

static int by_group(const void *a, const void *b, void *rows)
{
    const struct row *x = &((struct row *)rows)[*(const uint32_t *)a], *y = &((struct row *)rows)[*(const uint32_t *)b];
    return x->group < y->group ? -1 : x->group > y->group;
}

static void out_key(struct account_pass *p, enum scope scope, uint32_t key, int64_t key_id, int inclusive,
                    uint32_t *list)
{
    size_t count = 0;
    for (uint32_t at = p->heads[inclusive][key]; at; at = p->rows[at].next)
        list[count++] = at;
    if (count > 1)
        qsort_r(list, count, sizeof *list, by_group, p->rows);
    for (size_t i = 0, n; i < count; i += n) {
        int64_t device = p->m->groups[p->rows[list[i]].group].device;
        for (n = 0; i + n < count && p->m->groups[p->rows[list[i + n]].group].device == device; n++)
            add_out(p, scope, inclusive, key_id, list + i + n, 1, 0);
        add_out(p, scope, inclusive, key_id, list + i, n, 1);
    }
}

static void out_keys(struct account_pass *p)
{
    struct model *m = p->m;
    uint32_t *list = xcalloc(m->group_count + 1, sizeof *list);
    for (int scope = 0; scope < SCOPE_COUNT; scope++)
        for (uint32_t key = p->base[scope]; key < p->base[scope + 1]; key++) {
            uint32_t index = key - p->base[scope];
            int64_t id = index;
            if (scope == SCOPE_FILE)
                id = m->files[index].id;
            else if (scope == SCOPE_FUNCTION)
                id = index < m->function_count ? m->functions[index].id : -(int64_t)(index - m->function_count);
            for (int inclusive = 0; inclusive < 2 - m->is_self_only; inclusive++)
                out_key(p, (enum scope)scope, key, id, inclusive, list);
        }
    free(list);
}

const char *ownpeak_hindrance(sqlite3 *db)
{
    char *kept = db_meta_text(db, "events_kept"), *why = db_meta_text(db, "own_peak_incomplete");
    /* of a part of a rotated recording all are those of the part, unless --max-events took some */
    int has_all = kept && (strcmp(kept, "all") == 0 || (strcmp(kept, "last") == 0 && db_meta_int(db, "part", 0) > 1));
    const char *hindrance = !has_all                                   ? "not all events were kept"
                            : why && strcmp(why, OWNPEAK_RUNNING) == 0 ? OWNPEAK_RUNNING
                                                                       : NULL;
    free(kept);
    free(why);
    return hindrance;
}

static int note_incomplete(sqlite3 *db, const char *why, struct error *err)
{
    if (!why)
        return db_exec(db, "DELETE FROM meta WHERE key = 'own_peak_incomplete'", err);
    return db_meta_set_text(db, "own_peak_incomplete", why) ? db_error(db, err) : 0;
}

static void open_pass(struct account_pass *p)
{
    const struct model *m = p->m;
    size_t counts[SCOPE_COUNT] = {m->file_count, m->function_count + m->line_count, m->line_count, m->module_count};
    for (int i = 0; i < SCOPE_COUNT; i++)
        p->base[i + 1] = p->base[i] + (uint32_t)counts[i];
    size_t keys = p->base[SCOPE_COUNT];
    p->on_path = xcalloc(keys, sizeof *p->on_path);
    p->heads[0] = xcalloc(keys, sizeof *p->heads[0]);
    p->heads[1] = xcalloc(keys, sizeof *p->heads[1]);
    p->cursors = xcalloc(m->group_count + 1, sizeof *p->cursors);
    p->rows = xcalloc(p->row_capacity = 256, sizeof *p->rows);
    p->links = xcalloc(p->link_capacity = 256, sizeof *p->links);
    p->row_count = p->link_count = 1;
}

static void close_pass(struct account_pass *p)
{
    free(p->first_of);
    free(p->keys_of);
    free(p->on_path);
    free(p->heads[0]);
    free(p->heads[1]);
    free(p->rows);
    free(p->links);
    free(p->levels);
    free(p->subtrees);
    free(p->cursors);
    free(p->keys);
    free(p->salt);
    map_close(&p->set_map);
    free(p->sets);
    free(p->set_rows);
    free(p->row_lists);
    free(p->ranges);
    free(p->out);
}

/* Of a sampled recording: the sums of the variances, by the same keys. */
static int spread(struct model *m, struct error *err)
{
    struct model_stats was;
    int rc = m->is_self_only ? 0 : account_spread_begin(m, &was, err);
    if (rc <= 0)
        return rc;
    struct account_pass p = {.m = m};
    open_pass(&p);
    rc = account_walk(&p);
    if (rc == 0) {
        out_keys(&p);
        rc = account_write_spread(&p, err);
    }
    close_pass(&p);
    model_stats_free(&m->stats);
    m->stats = was;
    return rc;
}

struct model_sums {
    struct account_pass pass;
    const char *hindrance; /* why no own peaks are looked for */
    pthread_t thread;
    int is_running, rc;
};

static void *sum(void *arg)
{
    struct model_sums *s = arg;
    s->rc = account_walk(&s->pass);
    return NULL;
}

struct model_sums *model_sums_begin(struct model *m)
{
    struct model_sums *s = xcalloc(1, sizeof *s);
    s->pass.m = m;
    s->hindrance = ownpeak_hindrance(m->db);
    open_pass(&s->pass);
    if (!s->hindrance)
        make_salt(&s->pass);
    if (m->is_self_only)
        return s;
    s->is_running = m->node_count > THREAD_NODES && pthread_create(&s->thread, NULL, sum, s) == 0;
    if (!s->is_running)
        sum(s);
    return s;
}

static int wait_for(struct model_sums *s)
{
    if (s->is_running)
        pthread_join(s->thread, NULL);
    s->is_running = 0;
    return s->rc;
}

void model_sums_close(struct model_sums *s)
{
    if (!s)
        return;
    wait_for(s);
    close_pass(&s->pass);
    free(s);
}

int model_accounts(struct model_sums *s, struct error *err)
{
    struct account_pass *p = &s->pass;
    struct model *m = p->m;
    const char *incomplete = NULL;
    int rc = m->is_self_only ? account_sum_selves(p, err) : wait_for(s);
    if (rc == 0) {
        out_keys(p);
        incomplete = p->has_unknown ? s->hindrance : NULL;
    }
    if (rc == 0 && !s->hindrance) {
        give_ranges(p);
        rc = ownpeak_compute(m, p->ranges, p->sets, p->set_count, &incomplete, err);
    }
    if (rc == 0)
        rc = account_write_rows(p, err);
    if (rc == 0)
        rc = note_incomplete(m->db, incomplete, err);
    return rc ? rc : spread(m, err);
}
