/* The stacks below the wanted lines, found in one look at all of them. */
#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/packed.h"
#include "focus_private.h"

#include <errno.h>
#include <stdlib.h>

static void keep(struct focus_stacks *s, uint32_t parent, uint32_t address)
{
    ARRAY_ROOM(s->parents, s->count + 1ul, s->room[0]);
    ARRAY_ROOM(s->addresses, s->count + 1ul, s->room[1]);
    s->parents[s->count] = parent;
    s->addresses[s->count++] = address;
}

/* A node comes after its caller, as the collector numbers them. */
static int take_stacks(void *arg, uint32_t first, const uint64_t *parents, const uint64_t *addresses, uint32_t count)
{
    struct focus_work *w = arg;
    struct focus_stacks *s = &w->stacks;
    uint64_t *const bits = s->bits;
    const uint32_t *const line_of = w->line_of, address_limit = w->address_limit;
    if (first >= s->limit || count > s->limit - first)
        return -EAGAIN;
    for (uint32_t i = 0, id = first; i < count; i++, id++) {
        const uint64_t parent = parents[i], address = addresses[i];
        if (parent >= id)
            return -EAGAIN;
        if (id % 64 == 0)
            s->before[id / 64] = s->count;
        if (!(bits[parent / 64] >> parent % 64 & 1) && !(address < address_limit && line_of[address]))
            continue;
        bits[id / 64] |= UINT64_C(1) << id % 64;
        keep(s, (uint32_t)parent, (uint32_t)address);
    }
    return 0;
}

/* A wanted line is on no stack before the first one that it is at the end of: of all those before, which in a program
 * that ran for long are most, the callers need not be read. */
static int has_wanted(void *arg, const uint64_t *addresses, uint32_t count)
{
    const struct focus_work *w = arg;
    const uint64_t low = w->wanted_low, range = w->wanted_high - low;
    for (uint32_t i = 0; i < count; i++)
        if (addresses[i] - low <= range && w->line_of[addresses[i]])
            return 1;
    return 0;
}

/* Ids that there are not are of no stack. */
static int load_plain(struct focus_work *w, struct error *err)
{
    static const char sql[] = "SELECT stack_id, parent_id, address_id FROM stack WHERE stack_id > 0 ORDER BY stack_id";
    static const uint64_t none = 0;
    sqlite3_stmt *s = NULL;
    uint32_t next = 1;
    int rc = db_prepare(w->lens.db, sql, &s, err);
    while (db_next(s, &rc, err)) {
        const int64_t id = sqlite3_column_int64(s, 0);
        const uint64_t parent = (uint64_t)sqlite3_column_int64(s, 1), address = (uint64_t)sqlite3_column_int64(s, 2);
        for (; rc == 0 && next < id && next < w->stacks.limit; next++)
            rc = take_stacks(w, next, &none, &none, 1);
        if (rc == 0)
            rc = take_stacks(w, (uint32_t)id, &parent, &address, 1);
        next = (uint32_t)id + 1;
    }
    sqlite3_finalize(s);
    return rc;
}

static int64_t last_stack(sqlite3 *db, int is_packed)
{
    return db_int(db,
                  is_packed ? "SELECT max(first_row + row_count - 1) FROM main.packed WHERE table_name = 'stack'"
                            : "SELECT max(stack_id) FROM stack",
                  0);
}

int focus_stacks_load(struct focus_work *w, struct error *err)
{
    struct focus_stacks *s = &w->stacks;
    const int is_packed = packed_has(w->lens.db, PACKED_TABLE_stack);
    const int64_t last = last_stack(w->lens.db, is_packed);
    if (last < 0 || last >= FOCUS_IDS_MAX)
        return -EAGAIN;
    s->limit = (uint32_t)last + 1;
    s->bits = xcalloc(s->limit / 64 + 1ul, sizeof *s->bits);
    s->before = xcalloc(s->limit / 64 + 1ul, sizeof *s->before);
    if (!is_packed)
        return load_plain(w, err);
    return packed_each_stack(w->lens.db, &(struct packed_visit){has_wanted, take_stacks, w}) == 0 ? 0 : -EAGAIN;
}

void focus_stacks_free(struct focus_stacks *s)
{
    free(s->bits);
    free(s->before);
    free(s->parents);
    free(s->addresses);
}
