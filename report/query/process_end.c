#include "process_end.h"

#include "../../common/chunk.h"
#include "../../common/db.h"

#include <errno.h>

/* An image's ends are events of the very instant that the process has as its end. */
static const char sql[] =
    "SELECT p.process_id, p.end_ns, c.data FROM v_image i JOIN process p USING(process_id) JOIN event_chunk c ON "
    "p.end_ns BETWEEN c.first_ns AND c.last_ns WHERE i.first_id = ?";

static int take_chunk(struct chunk_codec *codec, sqlite3_stmt *s, process_end_take *take, void *arg)
{
    const struct chunk_event *events;
    int64_t process_id = sqlite3_column_int64(s, 0), end_ns = sqlite3_column_int64(s, 1);
    const void *data = sqlite3_column_blob(s, 2);
    long count = chunk_decode_events(codec, data, (size_t)sqlite3_column_bytes(s, 2), &events);
    for (long i = 0; i < count; i++)
        if (events[i].op == CHUNK_end && events[i].process_id == process_id && (int64_t)events[i].time_ns == end_ns)
            take(arg, events[i].site_id, events[i].size_bytes, events[i].address);
    return count < 0 ? (int)count : 0;
}

int process_end_each(sqlite3 *db, int64_t first_id, process_end_take *take, void *arg, struct error *err)
{
    struct chunk_codec *codec = NULL;
    sqlite3_stmt *s = NULL;
    int step = SQLITE_DONE, rc = db_prepare(db, sql, &s, err);
    if (rc)
        return rc;
    sqlite3_bind_int64(s, 1, first_id);
    codec = chunk_codec_open();
    while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
        rc = take_chunk(codec, s, take, arg);
    if (rc)
        rc = error_set(err, rc, "the end of process %lld cannot be read: a part of the events is damaged",
                       (long long)first_id);
    else if (step != SQLITE_DONE)
        rc = db_error(db, err);
    sqlite3_finalize(s);
    chunk_codec_close(codec);
    return rc;
}
