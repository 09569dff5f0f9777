#include "heap_returned.h"

#include "../../common/buf.h"
#include "../../common/units.h"
#include "../print/table.h"
#include "../query/heap_there.h"
#include "../query/process_label.h"

#define LEAST_BYTES (1 << 20)

static void say(const struct report_out *out, sqlite3_stmt *label, uint32_t process_id, const struct heap_look *look)
{
    char text[3][UNITS_TEXT];
    struct buf line = BUF(1 << 16), name = BUF(1 << 16);
    int64_t pid = process_label(label, process_id, &name);
    buf_puts(&line, "Of the free pages");
    if (pid >= 0)
        buf_printf(&line, " of %s, pid %lld,", buf_text(&name), (long long)pid);
    buf_printf(&line,
               " at least %s took no memory at the last look, at %s: malloc_trim had given it back, or it was "
               "never touched. malloc_trim(0) would have given back %s at most.",
               units_bytes(text[0], (int64_t)look->gone_bytes), units_ns(text[1], look->time_ns),
               units_bytes(text[2], look->there_bytes));
    table_prose(out, TABLE_PLAIN, buf_text(&line));
    buf_free(&line);
    buf_free(&name);
}

void heap_returned_say(sqlite3 *db, const struct heap *heap, const struct report_out *out)
{
    sqlite3_stmt *label = process_label_query(db);
    struct heap_look look;
    for (size_t i = 0; i < heap->range_count; i++) { /* ranges are by process */
        uint32_t id = heap->ranges[i].process_id;
        uint64_t bytes = i && heap->ranges[i - 1].process_id == id ? 0 : heap_there_free(heap, id);
        if (bytes >= LEAST_BYTES && heap_there_look(db, id, INT64_MAX, bytes, &look))
            say(out, label, id, &look);
    }
    sqlite3_finalize(label);
}
