#include "inherited.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/map.h"

#include <stdlib.h>

#define PROCESSES 65536u
#define DEEPEST   64u /* forks of forks; a chain of more is not followed */

struct lived { /* a block that went, and lived across a fork before */
    uint64_t address, size_bytes;
    int64_t born_ns, gone_ns;
    uint32_t site_id;
};

struct freed { /* by a child */
    uint64_t address;
    int64_t time_ns;
};

struct kin {
    uint32_t parent; /* 0: it did not begin as a fork, or of one that is not known */
    int64_t fork_ns;
    uint8_t is_wanted;   /* its heap is asked for */
    uint8_t is_followed; /* that, or it forked one that is */
    int64_t *forks;      /* its own, of those that are followed */
    uint32_t fork_count, fork_capacity, next_fork;
    struct lived *lived;
    struct freed *freed;
    size_t lived_count, lived_capacity, freed_count, freed_capacity;
};

struct inherited {
    struct kin *kin[PROCESSES]; /* NULL: nothing is asked of it */
    size_t entry_count;
    int is_full; /* of more than is kept: nothing is known */
};

static struct kin *kin_of(struct inherited *in, int64_t process_id)
{
    struct kin **kin = &in->kin[process_id];
    if (!*kin)
        *kin = xcalloc(1, sizeof **kin);
    return *kin;
}

/* --- whose blocks are to be followed ----------------------------------------------------------------------------- */

static int load_forks(struct inherited *in, sqlite3 *db, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db,
                        "SELECT process_id, parent_id, start_ns FROM main.process WHERE start_kind = 'fork' AND "
                        "process_id BETWEEN 1 AND 65535 AND parent_id BETWEEN 1 AND 65535 AND parent_id < process_id",
                        &s, err);
    while (rc == 0 && db_next(s, &rc, err)) {
        struct kin *kin = kin_of(in, sqlite3_column_int64(s, 0));
        kin->parent = (uint32_t)sqlite3_column_int64(s, 1);
        kin->fork_ns = sqlite3_column_int64(s, 2);
    }
    sqlite3_finalize(s);
    return rc;
}

static int load_wanted(struct inherited *in, sqlite3 *db, int64_t at_ns, int *count, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db,
                        "SELECT process_id FROM (SELECT process_id, address, max(size_bytes) AS bytes FROM heap_range "
                        "GROUP BY process_id, address) JOIN main.process p USING(process_id) WHERE p.start_kind = "
                        "'fork' AND p.start_ns <= ?1 AND (?1 = ?2 OR p.end_ns IS NULL OR p.end_ns >= ?1) AND "
                        "process_id BETWEEN 1 AND 65535 GROUP BY process_id ORDER BY total(bytes) DESC, process_id "
                        "LIMIT ?3",
                        &s, err);
    if (rc)
        return rc;
    sqlite3_bind_int64(s, 1, at_ns);
    sqlite3_bind_int64(s, 2, INT64_MAX);
    sqlite3_bind_int(s, 3, INHERITED_CHILDREN);
    while (db_next(s, &rc, err)) {
        kin_of(in, sqlite3_column_int64(s, 0))->is_wanted = 1;
        ++*count;
    }
    sqlite3_finalize(s);
    return rc;
}

static int by_time(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

/* A parent's number is below that of its child: what is followed goes on from a child to its parent. */
static void follow(struct inherited *in)
{
    for (uint32_t i = PROCESSES; i-- > 0;) {
        struct kin *kin = in->kin[i];
        if (!kin)
            continue;
        kin->is_followed |= kin->is_wanted;
        if (kin->fork_count)
            qsort(kin->forks, kin->fork_count, sizeof *kin->forks, by_time);
        if (!kin->is_followed || !kin->parent)
            continue;
        struct kin *parent = kin_of(in, kin->parent);
        parent->is_followed = 1;
        *ARRAY_ADD(parent->forks, parent->fork_count, parent->fork_capacity) = kin->fork_ns;
    }
}

int inherited_open(sqlite3 *db, const struct instant *at, struct inherited **inherited, struct error *err)
{
    struct inherited *in = xcalloc(1, sizeof *in);
    /* of an older recording it is not known which blocks a child freed */
    int count = 0, is_told = db_int(db, "SELECT 1 FROM meta WHERE key = 'forked_heap' AND value = 'blocks'", 0) == 1;
    int rc = is_told ? load_forks(in, db, err) : 0;
    if (rc == 0 && is_told)
        rc = load_wanted(in, db, at->end_ns[0], &count, err);
    if (rc == 0)
        follow(in);
    if (rc || !count) {
        inherited_close(in);
        in = NULL;
    }
    *inherited = in;
    return rc;
}

void inherited_close(struct inherited *in)
{
    if (!in)
        return;
    for (uint32_t i = 0; i < PROCESSES; i++) {
        if (!in->kin[i])
            continue;
        free(in->kin[i]->forks);
        free(in->kin[i]->lived);
        free(in->kin[i]->freed);
        free(in->kin[i]);
    }
    free(in);
}

/* --- the replay -------------------------------------------------------------------------------------------------- */

static int has_room(struct inherited *in)
{
    in->is_full |= in->entry_count++ >= INHERITED_ENTRIES;
    return !in->is_full;
}

void inherited_gone(struct inherited *in, const struct block *block, uint64_t time_ns)
{
    struct kin *kin = in->kin[block->space >> 16];
    if (!kin || !kin->fork_count || (block->space & 0xffff) != KIND_heap)
        return;
    while (kin->next_fork < kin->fork_count && kin->forks[kin->next_fork] < (int64_t)time_ns)
        kin->next_fork++;
    if (!kin->next_fork || (int64_t)block->time_ns > kin->forks[kin->next_fork - 1] || !has_room(in))
        return;
    *ARRAY_ADD(kin->lived, kin->lived_count, kin->lived_capacity) = (struct lived){.address = block->address,
                                                                                   .size_bytes = block->size_bytes,
                                                                                   .site_id = block->site_id,
                                                                                   .born_ns = (int64_t)block->time_ns,
                                                                                   .gone_ns = (int64_t)time_ns};
}

void inherited_freed(struct inherited *in, const struct chunk_event *e)
{
    struct kin *kin = in->kin[e->process_id];
    if (kin && kin->is_followed && has_room(in))
        *ARRAY_ADD(kin->freed, kin->freed_count, kin->freed_capacity) = (struct freed){e->address, (int64_t)e->time_ns};
}

/* --- what a child has -------------------------------------------------------------------------------------------- */

struct heirloom { /* the search for all that a child has */
    struct blocks *blocks;
    uint64_t capacity;
    struct map freed; /* addresses, by those between a block's process and the child */
    uint32_t space;
};

static void add(struct heirloom *h, const struct block *block, uint32_t forks)
{
    if (forks && map_get(&h->freed, block->address, 0))
        return;
    struct block *b = ARRAY_ADD(h->blocks->slots, h->blocks->count, h->capacity);
    *b = *block;
    b->space = h->space;
    b->forks = forks;
}

/* What a process had of its own at a time; the child's own is the instant's. */
static void add_own(struct heirloom *h, const struct kin *kin, const struct blocks *live, uint32_t process_id,
                    int64_t until_ns, uint32_t forks)
{
    for (size_t i = live_blocks_find(live, process_id << 8, 0); i < live->count; i++) {
        const struct block *b = &live->slots[i];
        if (b->space >> 8 != process_id << 8)
            break;
        if ((b->space & 255) == KIND_heap && (int64_t)b->time_ns <= until_ns)
            add(h, b, forks);
    }
    for (size_t i = 0; forks && kin && i < kin->lived_count; i++) {
        const struct lived *l = &kin->lived[i];
        if (l->born_ns > until_ns || l->gone_ns <= until_ns)
            continue;
        add(h,
            &(struct block){.address = l->address,
                            .size_bytes = l->size_bytes,
                            .time_ns = (uint64_t)l->born_ns,
                            .site_id = l->site_id},
            forks);
    }
}

static void add_freed(struct heirloom *h, const struct kin *kin, int64_t until_ns)
{
    for (size_t i = 0; i < kin->freed_count && kin->freed[i].time_ns <= until_ns; i++)
        *map_slot(&h->freed, kin->freed[i].address, 0) = 1;
}

/* Its own first, then its parent's: what came later at an address is there now. */
static int by_address(const void *x, const void *y)
{
    const struct block *a = x, *b = y;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (a->forks > b->forks) - (a->forks < b->forks);
}

static void sort(struct blocks *blocks)
{
    uint64_t kept = 0;
    if (blocks->count)
        qsort(blocks->slots, blocks->count, sizeof *blocks->slots, by_address);
    for (uint64_t i = 0; i < blocks->count; i++)
        if (!kept || blocks->slots[kept - 1].address != blocks->slots[i].address)
            blocks->slots[kept++] = blocks->slots[i];
    blocks->count = kept;
}

int inherited_blocks(const struct inherited *in, const struct blocks *live, uint32_t process_id, struct blocks *blocks)
{
    const struct kin *kin = in ? in->kin[process_id] : NULL;
    *blocks = (struct blocks){0};
    if (!kin || !kin->is_wanted || !kin->parent || in->is_full)
        return 0;
    struct heirloom h = {.blocks = blocks, .space = process_id << 16 | KIND_heap};
    int64_t until_ns = INT64_MAX;
    uint32_t forks = 0;
    add_own(&h, kin, live, process_id, until_ns, 0);
    for (; kin && kin->parent && forks < DEEPEST;) {
        add_freed(&h, kin, until_ns);
        until_ns = kin->fork_ns;
        process_id = kin->parent;
        kin = in->kin[process_id];
        add_own(&h, kin, live, process_id, until_ns, ++forks);
    }
    map_close(&h.freed);
    sort(blocks);
    return forks < DEEPEST;
}
