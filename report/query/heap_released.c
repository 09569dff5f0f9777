#include "heap_released.h"

#include "../../common/chunk.h"
#include "../../common/db.h"
#include "../../common/kind.h"

#define ALLOCS_MOST  16        /* that may come meanwhile: a buffer for the output, names of what ends; and */
#define ALLOCS_BURST 64        /* where all that is so quickly at the end, */
#define BURST_NS     50000000  /* outputs that are opened then */
#define PAUSE_NS     250000000 /* what came before so long a rest is no part of the end, */
#define REST_NS      1000000   /* and what came before such a short one only where it is */
#define LEAST_PART   16        /* that much of all: else it is the last of its work */

/* What a process did last, read backwards. */
struct tail {
    int64_t process_id;
    int64_t last_ns, first_ns; /* of what was read of it */
    int64_t allocs;            /* from there on */
    int64_t freed, most;       /* blocks, less those that came; the most of them, */
    int64_t most_ns;           /* from when on */
    int64_t counted;           /* what most was after the last rest that was found to be within its frees */
    int is_before;             /* a rest was read since */
};

/* A lone free of its work, before the program rested or had its heap trimmed, is none of its frees at the end. */
static void add_free(struct tail *t, int64_t time_ns)
{
    if (t->freed <= t->most)
        return;
    if (t->is_before && t->freed - t->counted <= t->counted / LEAST_PART)
        return;
    t->is_before = 0;
    t->most = t->freed;
    t->most_ns = time_ns;
}

/* Whether what came before it is of no interest any more. */
static int read_event(struct tail *t, const struct chunk_event *e)
{
    int64_t time_ns = (int64_t)e->time_ns;
    if (time_ns < t->first_ns - PAUSE_NS)
        return 1;
    if (e->process_id != t->process_id || e->device != 0 || e->kind != KIND_heap)
        return 0;
    if (t->most && t->first_ns - time_ns >= REST_NS && !t->is_before) {
        t->is_before = 1;
        t->counted = t->most;
    }
    t->last_ns = t->last_ns ? t->last_ns : time_ns;
    t->first_ns = time_ns < t->first_ns ? time_ns : t->first_ns;
    if (chunk_op_is_birth(e->op)) {
        t->freed--;
        return ++t->allocs > (t->last_ns - time_ns < BURST_NS ? ALLOCS_BURST : ALLOCS_MOST);
    }
    if (chunk_op_is_death(e->op)) {
        t->freed++;
        add_free(t, time_ns);
    }
    return 0;
}

int64_t heap_released(sqlite3 *db, const struct heap_gap *process)
{
    struct tail t = {.process_id = process->process_id, .first_ns = process->end_ns};
    sqlite3_stmt *s = NULL;
    int is_over = db_prepare(db, "SELECT data FROM event_chunk WHERE first_ns <= ?1 ORDER BY chunk_id DESC", &s, NULL);
    struct chunk_codec *codec = chunk_codec_open();
    sqlite3_bind_int64(s, 1, process->end_ns);
    while (!is_over && sqlite3_step(s) == SQLITE_ROW) {
        const struct chunk_event *events;
        const void *data = sqlite3_column_blob(s, 0);
        long count = data ? chunk_decode_events(codec, data, (size_t)sqlite3_column_bytes(s, 0), &events) : -1;
        is_over = count < 0;
        for (long i = count - 1; i >= 0 && !is_over; i--)
            is_over = (int64_t)events[i].time_ns <= process->end_ns && read_event(&t, &events[i]);
    }
    sqlite3_finalize(s);
    chunk_codec_close(codec);
    return t.most && t.most >= process->live_count ? t.most_ns - 1 : -1;
}

const struct heap_gap *heap_released_by(sqlite3 *db, int is_forked, const struct heap_gap *gaps, size_t count)
{
    static const char sql[] =
        "SELECT process_id FROM (SELECT process_id, max(size_bytes) AS bytes FROM heap_range WHERE size_bytes BETWEEN "
        "0 AND 1 << 48 GROUP BY process_id, address) JOIN main.process p USING(process_id) LEFT JOIN teardown t "
        "USING(process_id) WHERE (p.start_kind = 'fork') = ?1 AND p.end_ns IS NOT NULL AND t.time_ns IS NULL GROUP BY "
        "process_id ORDER BY total(bytes) DESC LIMIT 1";
    int64_t process_id = db_int_of(db, sql, &(int64_t){is_forked}, 1, -1);
    for (size_t i = 0; i < count; i++)
        if (gaps[i].process_id == process_id)
            return &gaps[i];
    return NULL;
}
