#include "unseen.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "estimate.h"

/* What glibc counts as in use though it was freed: each thread keeps blocks for itself. */
#define KEPT_LEAST  (1 << 20)
#define KEPT_THREAD (256 << 10) /* seven blocks of each of 64 sizes up to 1,032 bytes are 240,128 */

int64_t unseen_heap_bytes(sqlite3 *db)
{
    static const char at_once_sql[] =
        "SELECT max(alive) FROM (SELECT sum(step) OVER (PARTITION BY process_id ORDER BY time_ns, step DESC ROWS "
        "UNBOUNDED PRECEDING) AS alive FROM (SELECT process_id, start_ns AS time_ns, 1 AS step FROM thread UNION ALL "
        "SELECT process_id, end_ns, -1 FROM thread WHERE end_ns IS NOT NULL))";
    int64_t bytes = db_int(db, "SELECT max(value) FROM counter WHERE name = 'unseen_heap_bytes'", 0);
    return bytes >= KEPT_LEAST && bytes >= KEPT_LEAST + db_int(db, at_once_sql, 0) * KEPT_THREAD ? bytes : 0;
}

int unseen_blocks(sqlite3 *db, struct buf *which)
{
    struct buf own = BUF(1 << 12);
    struct buf *text = which ? which : &own;
    const size_t before = text->length;
    const int64_t least_bytes = db_meta_int(db, "least_bytes", 0), beside = unseen_heap_bytes(db);
    char bytes[UNITS_TEXT];
    if (db_meta_int(db, "attached", 0))
        buf_puts(text, "blocks from before memprof attached");
    else if (db_int(db, "SELECT EXISTS (SELECT 1 FROM mark WHERE domain = 'pause')", 0))
        buf_puts(text, "blocks of a pause of the recording");
    else if (estimate_mean_bytes(db))
        buf_puts(text, "blocks that were not sampled");
    else if (least_bytes > 0)
        buf_printf(text, "blocks smaller than %s (--min-size)", units_bytes(bytes, least_bytes));
    else if (beside)
        buf_printf(text, "blocks of calls that were not seen (%s that glibc says were in use beside those recorded)",
                   units_bytes(bytes, beside));
    const int is_missing = text->length > before;
    buf_free(&own);
    return is_missing;
}

int64_t unseen_frees(sqlite3 *db)
{
    return db_int(db,
                  "SELECT CAST(total(value) AS INTEGER) FROM counter WHERE name = 'unseen_free' OR (name = "
                  "'inherited_free' AND EXISTS (SELECT 1 FROM meta WHERE key = 'attached' AND value = 1))",
                  0);
}

int64_t unseen_freed_bytes(sqlite3 *db)
{
    return db_int(db, "SELECT max(value) FROM counter WHERE name = 'unfreed_heap_bytes'", 0);
}

void unseen_say(sqlite3 *db, struct buf *text)
{
    struct buf which = BUF(1 << 12);
    if (unseen_blocks(db, &which))
        buf_printf(text, "Not known: %s; pages that are free here may be theirs.", buf_text(&which));
    buf_free(&which);
}
