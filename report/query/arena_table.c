#include "arena_table.h"

#include "../../common/db.h"
#include "../../common/kind.h"
#include "site_rows.h"

enum { FIRST_BYTES = 16 * 48 };

/* The node that called the caller of a stack's innermost one; 0: there is none. */
static int64_t second_caller(struct walk *walk, int64_t stack_id, int *rc, struct error *err)
{
    struct walk_step step;
    int64_t id = stack_id;
    for (int i = 0; i < 2 && *rc == 0 && id; i++) {
        int found = walk_step(walk, id, i > 0, &step, err);
        *rc = found < 0 ? found : 0;
        id = found == 1 ? step.parent_id : 0;
    }
    return *rc ? 0 : id;
}

/* An arena's stack ends in the function that maps it, called by the one that takes it, which calls realloc, too. */
static int load(struct arena_table *t, struct walk *walk, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(walk_db(walk), "SELECT DISTINCT stack_id FROM segment WHERE kind = 'arena' AND stack_id > 0",
                        &s, err);
    while (rc == 0 && db_next(s, &rc, err)) {
        int64_t id = second_caller(walk, sqlite3_column_int64(s, 0), &rc, err);
        if (id)
            *map_slot(&t->callers, (uint64_t)id, 0) = 1;
    }
    sqlite3_finalize(s);
    return rc;
}

/* 16 entries of 48 bytes at first, and twice as many each time. */
static int is_table_size(int64_t largest_bytes, int64_t alloc_bytes)
{
    const int64_t times = largest_bytes / FIRST_BYTES;
    return times >= 1 && largest_bytes % FIRST_BYTES == 0 && (times & (times - 1)) == 0 &&
           alloc_bytes % FIRST_BYTES == 0;
}

/* Sites have no index by stack: all are read, once. */
static int load_sizes(struct arena_table *t, struct walk *walk, struct error *err)
{
    enum { STACK, KIND, LARGEST, BYTES, COLUMNS };
    static const enum packed_column columns[COLUMNS] = {PACKED_site_stack_id, PACKED_site_kind,
                                                        PACKED_site_largest_bytes, PACKED_site_alloc_bytes};
    struct site_rows rows;
    int rc = site_rows_open(walk_db(walk), columns, COLUMNS, &rows, err);
    while (rc == 0 && (rc = site_rows_next(&rows, err)) == 1) {
        rc = 0;
        if (site_rows_value(&rows, KIND) == KIND_heap &&
            is_table_size(site_rows_value(&rows, LARGEST), site_rows_value(&rows, BYTES)))
            *map_slot(&t->sized, (uint64_t)site_rows_value(&rows, STACK), 0) = 1;
    }
    site_rows_close(&rows);
    return rc;
}

int arena_table_is(struct arena_table *t, struct walk *walk, int64_t stack_id, struct error *err)
{
    struct walk_step step;
    int rc = t->is_loaded ? 0 : load(t, walk, err);
    if (rc == 0 && !t->is_loaded && t->callers.count)
        rc = load_sizes(t, walk, err);
    t->is_loaded = 1;
    if (rc || !map_get(&t->sized, (uint64_t)stack_id, 0))
        return rc;
    rc = walk_step(walk, stack_id, 0, &step, err);
    if (rc != 1 || step.count == 0 || step.frames[0].is_python || !step.frames[0].is_interpreter || !step.parent_id ||
        !map_get(&t->callers, (uint64_t)step.parent_id, 0))
        return rc < 0 ? rc : 0;
    return 1;
}

void arena_table_close(struct arena_table *t)
{
    map_close(&t->callers);
    map_close(&t->sized);
}
