#include "drain_private.h"

#include "../../common/array.h"
#include "../../common/hash.h"

#include <string.h>

/* The fields of a mark's text, in place: each ends with a NUL. Missing ones are "". */
struct mark_text {
    const char *domain, *category, *name;
};

static struct mark_text split_mark(char *text)
{
    char *first = strchr(text, WIRE_MARK_SEPARATOR), *second = first ? strchr(first + 1, WIRE_MARK_SEPARATOR) : NULL;
    if (!second)
        return (struct mark_text){text + strlen(text), text + strlen(text), text};
    *first = *second = 0;
    return (struct mark_text){text, first + 1, second + 1};
}

void drain_mark_end(struct drain *d, int64_t mark_id, int64_t time_ns)
{
    if (!mark_id)
        return;
    sqlite3_stmt *q = store_statement(d->store, "UPDATE mark SET end_ns = ? WHERE mark_id = ?");
    sqlite3_bind_int64(q, 1, time_ns);
    sqlite3_bind_int64(q, 2, mark_id);
    store_step(d->store, q);
}

static void end_mark(struct drain *d, const struct ring *r, int64_t mark_id)
{
    drain_mark_end(d, mark_id, record_ns(d, r));
}

/* The innermost open range of this thread and domain. */
static void end_range(struct drain *d, struct ring *r, uint64_t domain)
{
    if (r->range_depth > DRAIN_RANGES) { /* deeper than what is remembered: of whatever domain */
        r->range_depth--;
        return;
    }
    for (unsigned i = r->range_depth; i-- > 0;)
        if (r->ranges[i].domain == domain) {
            end_mark(d, r, r->ranges[i].mark_id);
            memmove(&r->ranges[i], &r->ranges[i + 1], (r->range_depth - i - 1u) * sizeof *r->ranges);
            r->range_depth--;
            return;
        }
}

/* process_id, thread_id: 0: none. */
static int64_t insert_mark(struct drain *d, const struct mark_text *t, int64_t process_id, int64_t thread_id,
                           int64_t time_ns, int is_range)
{
    int64_t mark_id = (int64_t)++d->mark_rows;
    sqlite3_stmt *q = store_statement(d->store, "INSERT INTO mark(mark_id, process_id, thread_id, device_id, name, "
                                                "start_ns, is_range, domain, category) "
                                                "VALUES(?1, nullif(?2, 0), nullif(?3, 0), NULL, ?4, ?5, ?6, "
                                                "nullif(?7, ''), nullif(?8, ''))");
    sqlite3_bind_int64(q, 1, mark_id);
    sqlite3_bind_int64(q, 2, process_id);
    sqlite3_bind_int64(q, 3, thread_id);
    sqlite3_bind_text(q, 4, t->name, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(q, 5, time_ns);
    sqlite3_bind_int(q, 6, is_range);
    sqlite3_bind_text(q, 7, t->domain, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(q, 8, t->category, -1, SQLITE_TRANSIENT);
    store_step(d->store, q);
    return mark_id;
}

static int64_t mark_row(struct drain *d, const struct ring *r, const struct mark_text *t, int is_range)
{
    return insert_mark(d, t, r->process->process_id, r->thread_id, record_ns(d, r), is_range);
}

int64_t drain_mark(struct drain *d, const char *domain, const char *name, uint32_t process_id, int64_t time_ns,
                   int is_range)
{
    return insert_mark(d, &(struct mark_text){domain, "", name}, process_id, 0, time_ns, is_range);
}

/* Ranges by id: the ones that are open, of all processes; one that is never closed stays. */
static void start_span(struct drain *d, const struct ring *r, uint64_t id, int64_t mark_id)
{
    if (d->span_count < DRAIN_SPANS)
        *ARRAY_ADD(d->spans, d->span_count, d->span_room) = (struct span){id, mark_id, r->process->process_id};
}

static void end_span(struct drain *d, const struct ring *r, uint64_t id)
{
    for (size_t i = d->span_count; i-- > 0;)
        if (d->spans[i].id == id && d->spans[i].process_id == r->process->process_id) {
            end_mark(d, r, d->spans[i].mark_id);
            d->spans[i] = d->spans[--d->span_count];
            return;
        }
}

/* Epochs follow one another without gaps, whoever begins them: they are the recording's. */
static void begin_epoch(struct drain *d, const struct ring *r, char *name)
{
    struct mark_text t = {.domain = "epoch", .category = "", .name = name};
    end_mark(d, r, d->epoch_mark_id);
    d->epoch_mark_id = mark_row(d, r, &t, 1);
    drain_flush(d);
    if (d->sink.epoch)
        d->sink.epoch(d->sink.arg, (uint64_t)record_ns(d, r));
}

void records_mark(struct drain *d, struct ring *r, uint64_t word1, uint64_t words)
{
    uint64_t text[WIRE_RECORD_MAX + 1];
    unsigned kind = WIRE_HOOK(word1);
    int has_id = kind == WIRE_MARK_START || kind == WIRE_MARK_END;
    uint64_t bytes = WIRE_VAR_LOW(word1), first = 2u + (unsigned)has_id,
             id = has_id && words > 2 ? record_word(r, 2) : 0;
    if (words < first || kind > WIRE_MARK_EPOCH) {
        d->bad_records++;
        return;
    }
    if (bytes > (words - first) * 8)
        bytes = (words - first) * 8;
    for (uint64_t i = first; i < words; i++)
        text[i - first] = record_word(r, i);
    ((char *)text)[bytes] = 0; /* there is one word more than a record can hold */
    if (kind == WIRE_MARK_POP) {
        end_range(d, r, hash_text(HASH_START, (char *)text));
        return;
    }
    if (kind == WIRE_MARK_END) {
        end_span(d, r, id);
        return;
    }
    if (kind == WIRE_MARK_EPOCH) {
        begin_epoch(d, r, (char *)text);
        return;
    }
    struct mark_text t = split_mark((char *)text);
    int64_t mark_id = mark_row(d, r, &t, kind != WIRE_MARK_INSTANT);
    if (kind == WIRE_MARK_START)
        start_span(d, r, id, mark_id);
    if (kind == WIRE_MARK_PUSH) {
        if (r->range_depth < DRAIN_RANGES)
            r->ranges[r->range_depth] = (struct open_range){mark_id, hash_text(HASH_START, t.domain)};
        r->range_depth += r->range_depth < UINT8_MAX;
    }
}
