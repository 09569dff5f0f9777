#include "naive_parts.h"

#include "../../common/kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { IDS = 256, DEVICES = 2, KINDS = KIND_COUNT + 1 };

struct part {
    int64_t v[STAT_VALUE_COUNT], live_bytes, live_count;
};

static struct part threads[IDS][DEVICES][KINDS];
static struct part processes[IDS][DEVICES][KINDS];
static struct replay_size sizes[DEVICES][KINDS][CHUNK_SIZE_CLASSES];

void naive_parts_begin(void)
{
    memset(threads, 0, sizeof threads);
    memset(processes, 0, sizeof processes);
    memset(sizes, 0, sizeof sizes);
}

static void rows_of(const struct chunk_event *birth, struct part *rows[4])
{
    assert_true(birth->thread_id < IDS && birth->process_id < IDS && birth->device < DEVICES);
    rows[0] = &threads[birth->thread_id][birth->device][birth->kind];
    rows[1] = &threads[birth->thread_id][birth->device][KIND_all];
    rows[2] = &processes[birth->process_id][birth->device][birth->kind];
    rows[3] = &processes[birth->process_id][birth->device][KIND_all];
}

static void each(void (*f)(struct part *p))
{
    for (size_t i = 0; i < sizeof threads / sizeof(struct part); i++) {
        f(&threads[0][0][0] + i);
        f(&processes[0][0][0] + i);
    }
}

static void start(struct part *p)
{
    p->v[STAT_start_bytes] = p->live_bytes;
    p->v[STAT_start_count] = p->live_count;
}

static void look(struct part *p)
{
    if (p->live_bytes > p->v[STAT_own_peak_bytes])
        p->v[STAT_own_peak_bytes] = p->live_bytes;
}

static void still_live(struct part *p)
{
    p->v[STAT_end_bytes] += p->live_bytes;
    p->v[STAT_end_count] += p->live_count;
}

void naive_parts_enter(void)
{
    each(start);
}

void naive_parts_range(void)
{
    each(look);
}

void naive_parts_finish(void)
{
    each(still_live);
}

void naive_parts_peak(unsigned device, unsigned kind)
{
    for (unsigned id = 0; id < IDS; id++)
        for (unsigned k = 0; k < KINDS; k++) {
            struct part *p = &threads[id][device][k];
            if (kind == KIND_all) {
                p->v[STAT_at_peak_bytes] = p->live_bytes;
                p->v[STAT_at_peak_count] = p->live_count;
            }
            if (kind == k)
                p->v[STAT_at_kind_peak_bytes] = p->live_bytes;
        }
}

/* Bit by bit, not as the code under test does it. */
static struct replay_size *size_of(const struct chunk_event *e)
{
    unsigned class = 0;
    while (class < 64 && e->size_bytes >> class)
        class ++;
    return &sizes[e->device][e->kind][class];
}

void naive_parts_birth(const struct chunk_event *e, int inside)
{
    struct part *rows[4];
    rows_of(e, rows);
    for (int i = 0; i < 4; i++) {
        rows[i]->live_bytes += (int64_t)e->size_bytes;
        rows[i]->live_count++;
        if (!inside)
            continue;
        rows[i]->v[STAT_alloc_count]++;
        rows[i]->v[STAT_alloc_bytes] += (int64_t)e->size_bytes;
        look(rows[i]);
    }
    size_of(e)->alloc_count += inside;
    size_of(e)->alloc_bytes += inside ? (int64_t)e->size_bytes : 0;
}

void naive_parts_loss(const struct naive_loss *l)
{
    const struct chunk_event *e = l->event;
    const int64_t size = (int64_t)e->size_bytes, inside = l->inside != 0;
    const int is_segment = e->op == CHUNK_to_segment;
    struct part *rows[4];
    rows_of(l->birth, rows);
    for (int i = 0; i < 4; i++) {
        int64_t *v = rows[i]->v;
        rows[i]->live_bytes -= size;
        rows[i]->live_count -= l->is_last;
        if (!inside)
            continue;
        v[STAT_alloc_count] -= is_segment;
        v[STAT_alloc_bytes] -= is_segment ? size : 0;
        v[STAT_free_count] += !is_segment && l->is_last;
        v[STAT_free_bytes] += is_segment ? 0 : size;
        v[STAT_temporary_count] += l->is_temporary;
        v[STAT_end_bytes] += l->is_torn ? size : 0;
        v[STAT_end_count] += l->is_torn && l->is_last;
    }
    if (!l->is_last || !inside)
        return;
    struct replay_size *c = size_of(e);
    c->alloc_count -= is_segment;
    c->alloc_bytes -= is_segment ? size : 0;
    c->free_count += !is_segment;
    c->temporary_count += l->is_temporary;
}

void naive_parts_end(const struct chunk_event *birth, int64_t count, int inside)
{
    struct part *rows[4];
    rows_of(birth, rows);
    for (int i = 0; i < 4; i++) {
        rows[i]->live_bytes -= (int64_t)birth->size_bytes;
        rows[i]->live_count -= count;
        rows[i]->v[STAT_end_bytes] += inside ? (int64_t)birth->size_bytes : 0;
        rows[i]->v[STAT_end_count] += inside ? count : 0;
    }
}

/* --- comparison -------------------------------------------------------------------------------------------------- */

static const int compared[] = {STAT_start_bytes,   STAT_start_count,   STAT_alloc_count,     STAT_alloc_bytes,
                               STAT_free_count,    STAT_free_bytes,    STAT_temporary_count, STAT_end_bytes,
                               STAT_end_count,     STAT_at_peak_bytes, STAT_at_peak_count,   STAT_at_kind_peak_bytes,
                               STAT_own_peak_bytes};
enum { COMPARED = sizeof compared / sizeof *compared };

static int64_t expected_of(const struct part *p, unsigned kind, int stat)
{
    return p->v[kind == KIND_all && stat == STAT_at_kind_peak_bytes ? STAT_at_peak_bytes : stat];
}

static void compare_thread(const char *who, const struct replay_thread *t, unsigned id, unsigned device, unsigned kind)
{
    static const struct replay_thread nothing;
    t = t ? t : &nothing;
    for (int i = 0; i < COMPARED; i++) {
        int64_t expected = expected_of(&threads[id][device][kind], kind, compared[i]);
        if (t->stats.value[compared[i]] != expected)
            fail_msg("%s: thread %u, device %u, kind %u: %s %ld, expected %ld", who, id, device, kind,
                     stat_infos[compared[i]].column, (long)t->stats.value[compared[i]], (long)expected);
    }
}

static void compare_size(const char *who, const struct replay *r, unsigned device, unsigned kind, unsigned class)
{
    static const struct replay_size nothing;
    const struct replay_size *is = &nothing, *expected = &sizes[device][kind][class];
    for (uint32_t i = 0; i < r->size_count; i++)
        if (r->sizes[i].device == device && r->sizes[i].kind == kind && r->sizes[i].log2_size == (int)class - 1)
            is = &r->sizes[i];
    if (is->alloc_count != expected->alloc_count || is->alloc_bytes != expected->alloc_bytes ||
        is->free_count != expected->free_count || is->temporary_count != expected->temporary_count)
        fail_msg("%s: size class %u, device %u, kind %u: %ld %ld %ld %ld, expected %ld %ld %ld %ld", who, class, device,
                 kind, (long)is->alloc_count, (long)is->alloc_bytes, (long)is->free_count, (long)is->temporary_count,
                 (long)expected->alloc_count, (long)expected->alloc_bytes, (long)expected->free_count,
                 (long)expected->temporary_count);
}

void naive_parts_compare(const char *who, const struct replay *r)
{
    const struct replay_thread *of[IDS][DEVICES][KINDS] = {0};
    for (uint32_t i = 0; i < r->thread_count; i++) {
        assert_true(r->threads[i].id >= 0 && r->threads[i].id < IDS);
        of[r->threads[i].id][r->threads[i].device][r->threads[i].kind] = &r->threads[i];
    }
    for (unsigned device = 0; device < DEVICES; device++)
        for (unsigned kind = 0; kind < KINDS; kind++) {
            for (unsigned id = 0; id < IDS; id++)
                compare_thread(who, of[id][device][kind], id, device, kind);
            for (unsigned class = 0; kind < KIND_COUNT && class < CHUNK_SIZE_CLASSES; class ++)
                compare_size(who, r, device, kind, class);
        }
    for (uint32_t i = 0; i < r->process_count; i++) {
        const struct replay_process *p = &r->processes[i];
        int64_t expected = processes[p->process_id][p->device][p->kind].v[STAT_own_peak_bytes];
        if (p->peak_bytes != expected)
            fail_msg("%s: process %ld, device %u, kind %u: own peak %ld, expected %ld", who, (long)p->process_id,
                     p->device, p->kind, (long)p->peak_bytes, (long)expected);
    }
}
