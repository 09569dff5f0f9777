/* What programs call their memory: a block that lives there has the name; else it is a segment's, or nobody's. */
#include "drain_private.h"

#include "../account/names.h"

#include "../../common/error.h"

#include <stdlib.h>
#include <string.h>

#define NAME_ROWS 65536u /* names of memory that is no block, in the file; the first ones */

static int tell_block(struct drain *d, const struct ring *r, const struct name_said *said)
{
    if (!d->sink.name)
        return 0;
    drain_flush(d);
    return d->sink.name(d->sink.arg, r->process->process_id, (uint64_t)record_ns(d, r), said);
}

void records_name(struct drain *d, const struct ring *r, uint64_t address, const char *name)
{
    if (tell_block(d, r, &(struct name_said){.block = address, .text = name}) || d->name_rows++ >= NAME_ROWS)
        return;
    sqlite3_stmt *q =
        store_statement(d->store, "INSERT INTO memory_name(process_id, address, time_ns, name) VALUES(?, ?, ?, ?)");
    sqlite3_bind_int64(q, 1, r->process->process_id);
    sqlite3_bind_int64(q, 2, (int64_t)address);
    sqlite3_bind_int64(q, 3, record_ns(d, r));
    sqlite3_bind_text(q, 4, name, -1, SQLITE_TRANSIENT);
    store_step(d->store, q);
}

/* words: bytes of the text, and the text. */
static char *read_text(const uint64_t *words, uint64_t count)
{
    uint64_t bytes = count ? words[0] : 0;
    if (!bytes || bytes > (count - 1) * 8)
        return NULL;
    char *text = xmalloc(bytes + 1);
    memcpy(text, words + 1, bytes);
    text[bytes] = 0;
    return text;
}

static void tell(struct drain *d, const struct ring *r, struct name_said *said, const uint64_t *words, uint64_t count)
{
    char *text = read_text(words, count);
    said->text = text;
    if (!text)
        d->bad_records++;
    else if (*text && !tell_block(d, r, said))
        d->unresolved_names++;
    free(text);
}

void records_category(struct drain *d, const struct ring *r, const uint64_t *words, uint64_t count)
{
    if (count < 1) {
        d->bad_records++;
        return;
    }
    tell(d, r, &(struct name_said){.block = words[0], .is_category = 1}, words + 1, count - 1);
}

void records_view(struct drain *d, const struct ring *r, const uint64_t *words, uint64_t count)
{
    enum { FIXED = 4 }; /* block, data, item bytes, rank */
    const uint64_t rank = count >= FIXED ? words[3] : 0;
    struct memprof_view view = {.rank = (uint32_t)rank};
    if (count < FIXED || rank > MEMPROF_RANK || count < FIXED + 2 * rank) {
        d->bad_records++;
        return;
    }
    view.data = (const void *)(uintptr_t)words[1];
    view.item_bytes = words[2];
    memcpy(view.size, words + FIXED, rank * sizeof *view.size);
    memcpy(view.stride, words + FIXED + rank, rank * sizeof *view.stride);
    struct name_said said = {.block = words[0] ? words[0] : words[1], .view = &view};
    tell(d, r, &said, words + FIXED + 2 * rank, count - FIXED - 2 * rank);
}
