#include "left_out.h"

#include <stddef.h>

/* Whatever a program wrote there. */
static int64_t bounded(uint64_t sum)
{
    return sum < INT64_MAX ? (int64_t)sum : INT64_MAX;
}

static uint64_t add(uint64_t sum, const uint64_t *word)
{
    uint64_t more;
    return __builtin_add_overflow(sum, __atomic_load_n(word, __ATOMIC_RELAXED), &more) ? UINT64_MAX : more;
}

void left_out_write(struct session *session, struct store *store)
{
    const uint32_t ring_end = session_ring_end(session);
    const struct wire_left *left =
        (const struct wire_left *)(const void *)((const char *)session->control + WIRE_LEFT_OFFSET);
    for (unsigned class = 0; session->control->least_bytes && class < WIRE_LEFT_CLASSES; class ++) {
        uint64_t count = 0, bytes = 0;
        for (uint32_t i = 0; i < ring_end; i++) {
            count = add(count, &left[i].count[class]);
            bytes = add(bytes, &left[i].bytes[class]);
        }
        sqlite3_stmt *q = count ? store_statement(store, "INSERT OR REPLACE INTO left_out VALUES(?, ?, ?)") : NULL;
        if (!q)
            continue;
        sqlite3_bind_int(q, 1, (int)class - 1);
        sqlite3_bind_int64(q, 2, bounded(count));
        sqlite3_bind_int64(q, 3, bounded(bytes));
        store_step(store, q);
    }
}
