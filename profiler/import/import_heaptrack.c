/*
 * Files of heaptrack. They tell sizes and traces and no addresses: a free says which kind of block (size and trace)
 * went, not which one of them. So addresses are made up, and of equal blocks the youngest goes first: bytes and counts
 * of every trace are the file's, lifetimes are of that choice.
 */
#include "../../common/array.h"
#include "../../common/kind.h"
#include "../../common/map.h"
#include "../../common/units.h"
#include "../../formats/heaptrack/heaptrack.h"
#include "../account/account.h"
#include "../collect/facts.h"
#include "../store/named.h"
#include "../store/stacks.h"
#include "../store/store.h"
#include "../symbols/symbols.h"
#include "import_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH         512u
#define FLUSH_EVENTS  (1u << 20)
#define LIVE_MAX      (1u << 26)              /* blocks at once: 64 bytes each in the accounts */
#define BYTES_MAX     (1ull << 62)            /* allocated in all */
#define FIRST_ADDRESS 0x100000ull             /* of the blocks, */
#define BLOCK_STEP    16u                     /* whose places are so far from each other */
#define TIME_MAX_MS   (366ull * 86400 * 1000) /* no run lasts longer */

struct replay {
    struct importing *importing;
    struct heaptrack file;
    struct stacks *stacks;
    struct named *named;
    struct account *account;
    uint32_t *address_ids; /* by code */
    uint32_t *stack_ids;   /* by trace */
    struct map sizes;      /* size and trace -> the first allocation of them: a file may define it again */
    uint32_t *firsts;      /* by allocation: that one's number, plus 1; 0: not looked up yet */
    uint32_t *youngest;    /* by such a one: its newest live block, a number from 1; 0: none */
    uint32_t *older;       /* by block: the one before it of that allocation, or the next unused one */
    uint32_t code_room, trace_room, first_room, youngest_room, block_room;
    uint32_t block_count, unused; /* numbers given out; one that is free again */
    uint64_t live, events, flushed, bytes, time_ns, peak_rss_bytes;
    uint64_t unknown_frees; /* of an allocation that has no live block */
    struct event batch[BATCH];
    unsigned fill;
};

/* --- names -------------------------------------------------------------------------------------------------------- */

static void name_frame(const struct heaptrack *h, const struct heaptrack_frame *from, struct named_frame *f)
{
    const char *function = heaptrack_text_of(h, from->function), *file = heaptrack_text_of(h, from->file);
    *f = (struct named_frame){.function = function,
                              .plain_name = function ? symbols_plain_name(function) : NULL,
                              .file = file && *file && strcmp(file, "??") != 0 ? file : NULL,
                              .line = from->line,
                              .language = "native"};
}

static uint32_t address_of(struct replay *r, uint32_t number)
{
    const struct heaptrack *h = &r->file;
    ARRAY_ROOM_ZERO(r->address_ids, h->code_count + 1ul, r->code_room);
    if (r->address_ids[number])
        return r->address_ids[number];
    const struct heaptrack_code *c = &h->codes[number];
    const struct named_code code = {.path = heaptrack_text_of(h, c->module), .offset = c->address};
    struct named_frame *chain = xcalloc(c->frame_count + 1ul, sizeof *chain);
    for (uint32_t i = 0; i < c->frame_count; i++)
        name_frame(h, &h->frames[c->first_frame + i], &chain[i]);
    r->address_ids[number] = named_code(r->named, IMPORT_PROCESS, &code, chain, c->frame_count);
    for (uint32_t i = 0; i < c->frame_count; i++)
        free((void *)(uintptr_t)chain[i].plain_name);
    free(chain);
    return r->address_ids[number];
}

/* Callers first, without recursion: a hostile file has traces of any depth. */
static uint32_t stack_of(struct replay *r, uint32_t trace)
{
    const struct heaptrack *h = &r->file;
    uint32_t path_count = 0, path_room = 0, *path = NULL;
    ARRAY_ROOM_ZERO(r->stack_ids, h->trace_count + 1ul, r->trace_room);
    for (uint32_t t = trace; t && !r->stack_ids[t]; t = h->traces[t].caller)
        *ARRAY_ADD(path, path_count, path_room) = t;
    while (path_count) {
        const struct heaptrack_trace *t = &h->traces[path[--path_count]];
        uint32_t caller = r->stack_ids[t->caller];
        r->stack_ids[path[path_count]] = t->code ? stacks_node(r->stacks, caller, 0, address_of(r, t->code)) : caller;
    }
    free(path);
    return trace ? r->stack_ids[trace] : 0;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void flush(struct replay *r)
{
    if (r->fill)
        account_events(r->account, r->batch, r->fill);
    r->fill = 0;
    if (r->events - r->flushed < FLUSH_EVENTS)
        return;
    r->flushed = r->events;
    account_flush(r->account, r->time_ns);
    stacks_write(r->stacks);
    store_commit(r->importing->store);
}

static void give(struct replay *r, unsigned op, uint64_t address, uint64_t size_bytes, uint32_t stack_id)
{
    r->batch[r->fill++] = (struct event){
        .time_ns = r->time_ns,
        .address = address,
        .size_bytes = size_bytes,
        .stack_id = stack_id,
        .thread_id = 1,
        .process_id = IMPORT_PROCESS,
        .op = (uint8_t)op,
        .kind = KIND_heap,
    };
    if (r->fill == BATCH)
        flush(r);
}

static uint64_t block_address(uint32_t block)
{
    return FIRST_ADDRESS + (uint64_t)block * BLOCK_STEP;
}

static uint32_t new_block(struct replay *r)
{
    uint32_t block = r->unused;
    if (block) {
        r->unused = r->older[block];
        return block;
    }
    block = ++r->block_count;
    ARRAY_ROOM(r->older, block + 1ul, r->block_room);
    return block;
}

/* The allocation that stands for all of its size and trace; there is room for its youngest block. */
static uint32_t first_of(struct replay *r, uint32_t number)
{
    const struct heaptrack *h = &r->file;
    ARRAY_ROOM_ZERO(r->firsts, h->allocation_count, r->first_room);
    ARRAY_ROOM_ZERO(r->youngest, h->allocation_count, r->youngest_room);
    if (!r->firsts[number])
        r->firsts[number] =
            map_number_or(&r->sizes, h->allocations[number].size_bytes, h->allocations[number].trace, number) + 1;
    return r->firsts[number] - 1;
}

/* 0, or why nothing more is read. */
static int born(struct replay *r, uint32_t number)
{
    struct heaptrack *h = &r->file;
    const struct heaptrack_allocation *a = &h->allocations[number];
    if (r->live >= LIVE_MAX)
        return error_set(&h->ending, E2BIG, "more than %u blocks live at once; what comes after that is not read",
                         LIVE_MAX);
    if (a->size_bytes > BYTES_MAX - r->bytes)
        return error_set(&h->ending, E2BIG,
                         "more bytes allocated than can be added up; what comes after that is not "
                         "read");
    uint32_t block = new_block(r);
    number = first_of(r, number);
    r->older[block] = r->youngest[number];
    r->youngest[number] = block;
    r->live++;
    r->bytes += a->size_bytes;
    r->events++;
    give(r, EVENT_ALLOC, block_address(block), a->size_bytes, stack_of(r, a->trace));
    return 0;
}

static void died(struct replay *r, uint32_t number)
{
    number = first_of(r, number);
    uint32_t block = r->youngest[number];
    if (!block) {
        r->unknown_frees++;
        return;
    }
    r->youngest[number] = r->older[block];
    r->older[block] = r->unused;
    r->unused = block;
    r->live--;
    r->events++;
    give(r, EVENT_FREE, block_address(block), 0, 0);
}

/* Times do not go back. */
static void set_time(struct replay *r, uint64_t time_ms)
{
    uint64_t time_ns = (time_ms < TIME_MAX_MS ? time_ms : TIME_MAX_MS) * 1000000;
    if (time_ns > r->time_ns)
        r->time_ns = time_ns;
}

static void set_rss(struct replay *r, uint64_t bytes)
{
    if (bytes > r->peak_rss_bytes)
        r->peak_rss_bytes = bytes;
    give(r, EVENT_RSS, 0, bytes, 0);
}

static void replay(struct replay *r)
{
    struct heaptrack_event e;
    while (heaptrack_next(&r->file, &e)) {
        if (e.what == HEAPTRACK_TIME)
            set_time(r, e.value);
        else if (e.what == HEAPTRACK_RSS)
            set_rss(r, e.value);
        else if (e.what == HEAPTRACK_FREE)
            died(r, (uint32_t)e.value);
        else if (born(r, (uint32_t)e.value))
            break;
    }
    give(r, EVENT_PROCESS_END, 0, 0, 0);
    flush(r);
}

/* --- what is no event --------------------------------------------------------------------------------------------- */

/* The first word of the command. */
static char *program_of(const char *command)
{
    size_t length = strcspn(command, " \n");
    char *program = xmalloc(length + 1);
    memcpy(program, command, length);
    program[length] = 0;
    return program;
}

static void write_before(struct replay *r)
{
    struct importing *i = r->importing;
    const struct import_meta meta = {.clock = "none", .events_kept = "all", .command = "heaptrack file"};
    import_meta(i, &meta);
    import_device(i->store, 0, "host");
    import_hook(i->store, 0, "heaptrack", "heap");
    import_process(i->store, "", "");
    import_thread(i->store, 1, 0, "all threads");
}

struct fact {
    const char *name, *text;
    uint64_t value;
    int is_note; /* 2: without the number */
};

/* What is said where the import is, and by every report; the others `memprof info` tells. */
static void write_facts(struct replay *r)
{
    const struct heaptrack *h = &r->file;
    const struct fact facts[] = {
        {"bad_line", "lines that are not understood, or that name what is not there, left out", h->bad_lines, 1},
        {"cut_line", "lines of more than 16 MiB, cut", h->cut_lines, 1},
        {"unknown_free", "frees of sizes and traces of which nothing was live, left out", r->unknown_frees, 1},
        {"attached", "heaptrack came to a program that ran: what lived before is not in it", (uint64_t)h->is_attached,
         2},
        {"empty", "the file holds no allocations", !r->events, 2},
        {"suppression", "suppressions of leaks in the file, not used", h->suppressions, 0},
    };
    struct buf note = BUF(4096);
    char count[UNITS_TEXT];
    if (h->ending.text[0])
        buf_printf(&note, "not read to its end: %s", h->ending.text);
    else if (unpack_is_cut(r->importing->unpack))
        buf_puts(&note, "the file was cut: it ends before its compressed data does; what there is was read");
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        store_counter(r->importing->store, 0, facts[i].name, facts[i].value, facts[i].text);
        if (!facts[i].value || !facts[i].is_note)
            continue;
        buf_puts(&note, note.length ? ". Also " : "");
        if (facts[i].is_note == 1)
            buf_printf(&note, "%s ", units_count(count, (int64_t)facts[i].value));
        buf_puts(&note, facts[i].text);
    }
    if (note.length) {
        store_meta_text(r->importing->store, "import_note", buf_text(&note));
        r->importing->note = buf_take(&note);
    }
    buf_free(&note);
}

static void write_end(struct replay *r)
{
    struct store *store = r->importing->store;
    const char *command = buf_text(&r->file.command);
    char *program = program_of(command);
    sqlite3_stmt *q = store_statement(
        store, "UPDATE process SET exe = ?, command_line = ?, end_ns = ?, end_kind = 'unknown', peak_rss_bytes = "
               "nullif(?, 0), peak_rss_sampled = 1 WHERE process_id = ?");
    sqlite3_bind_text(q, 1, program, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(q, 2, command, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(q, 3, (int64_t)r->time_ns);
    sqlite3_bind_int64(q, 4, (int64_t)r->peak_rss_bytes);
    sqlite3_bind_int64(q, 5, IMPORT_PROCESS);
    store_step(store, q);
    if (*command)
        store_meta_text(store, "command", command);
    if (r->file.page_bytes)
        store_meta_int(store, "page_bytes", (int64_t)r->file.page_bytes);
    if (r->file.page_bytes && r->file.page_count) {
        q = store_statement(store, "UPDATE device SET total_bytes = ? WHERE device_id = 0");
        sqlite3_bind_int64(q, 1, (int64_t)(r->file.page_bytes * r->file.page_count));
        store_step(store, q);
    }
    free(program);
}

static void write_all(struct replay *r)
{
    struct store *store = r->importing->store;
    struct account_options options = {0};
    struct facts facts = {.processes = 1};
    r->stacks = stacks_open(store);
    r->named = named_open(store, r->stacks);
    r->account = account_open(store, &options);
    write_before(r);
    replay(r);
    account_finish(r->account, r->time_ns);
    account_counts(r->account, &facts.counts);
    facts.counts.events = r->events;
    facts.duration_ns = (int64_t)r->time_ns;
    stacks_write(r->stacks);
    write_end(r);
    write_facts(r);
    facts_end(store, &facts);
    store_commit(store);
    account_close(r->account);
    named_close(r->named);
    stacks_close(r->stacks);
}

/* "v 10400 3" */
static int is_heaptrack(const unsigned char *head, size_t length)
{
    return length > 2 && head[0] == 'v' && head[1] == ' ';
}

static int read_heaptrack(struct importing *i, struct error *err)
{
    struct replay *r = xcalloc(1, sizeof *r);
    r->importing = i;
    int rc = heaptrack_open(&r->file, i->unpack, err);
    if (rc == 0)
        rc = import_begin(i, err);
    if (rc == 0)
        write_all(r);
    heaptrack_close(&r->file);
    free(r->address_ids);
    free(r->stack_ids);
    free(r->firsts);
    free(r->youngest);
    map_close(&r->sizes);
    free(r->older);
    free(r);
    return rc;
}

const struct import_form import_heaptrack = {"heaptrack file", is_heaptrack, read_heaptrack, IMPORT_NO_RESERVED};
