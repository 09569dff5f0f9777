/*
 * A file of heaptrack, as heaptrack_interpret writes it (format 3), in zstd: one process's heap from the events, each
 * text, instruction, trace and allocation (size and trace) defined where it is needed first. A free is told by size and
 * trace, which is all that heaptrack's files say of it, too.
 */
#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/map.h"
#include "../../common/units.h"
#include "../query/replay.h"
#include "../query/vtab_event.h"
#include "../query/walk.h"
#include "one_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define HEAPTRACK_VERSION 0x10400 /* whose format it is: any since reads it */
#define HEAPTRACK_FORMAT  3
#define PENDING_BYTES     (1u << 18)
#define NAME_MOST         (8u << 20)
#define ZSTD_LEVEL        3
#define INFOS_MAX         (1u << 18) /* sizes by stack that are remembered; then all are defined anew */

/* Of ids of the recording, which are dense where it is honest: small ones in an array. */
struct numbers {
    uint32_t *small; /* number plus 1 */
    uint32_t room;
    struct map others;
};
#define SMALL_IDS (1u << 22)

struct heaptrack_file {
    sqlite3 *db;
    FILE *out;
    ZSTD_CCtx *zstd;
    struct buf pending; /* lines, not packed yet */
    struct walk *walk;
    struct text_map texts; /* -> number */
    struct numbers codes;  /* by address_id */
    struct numbers traces; /* by stack_id and enum trace_key */
    struct map infos;      /* size, stack_id -> number; emptied now and then */
    uint32_t code_count, trace_count, info_count;
    int all_frames;
    int64_t min_size_bytes;
    int64_t last_ms; /* -1: none */
    int64_t events, small_left_out, moved;
    int rc;
    struct error *err;
};

static uint32_t number_of(const struct numbers *n, int64_t id, unsigned key)
{
    if (key || id < 0 || id >= SMALL_IDS)
        return map_number(&n->others, (uint64_t)id, key);
    return id < n->room && n->small[id] ? n->small[id] - 1 : MAP_NONE;
}

static void set_number(struct numbers *n, int64_t id, unsigned key, uint32_t number)
{
    if (key || id < 0 || id >= SMALL_IDS) {
        map_set_number(&n->others, (uint64_t)id, key, number);
        return;
    }
    ARRAY_ROOM_ZERO(n->small, id + 1, n->room);
    n->small[id] = number + 1;
}

static void numbers_close(struct numbers *n)
{
    free(n->small);
    map_close(&n->others);
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

static void pack(struct heaptrack_file *f, ZSTD_EndDirective how)
{
    char packed[1 << 16];
    ZSTD_inBuffer in = {buf_text(&f->pending), f->pending.length, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {packed, sizeof packed, 0};
        left = ZSTD_compressStream2(f->zstd, &out, &in, how);
        if (ZSTD_isError(left) || fwrite(packed, 1, out.pos, f->out) != out.pos) {
            f->rc = f->rc ? f->rc : error_set(f->err, EIO, "writing the export: %s", strerror(errno ? errno : EIO));
            return;
        }
    } while (how == ZSTD_e_end ? left : in.pos < in.size);
    buf_reset(&f->pending);
}

static void line_ends(struct heaptrack_file *f)
{
    buf_putc(&f->pending, '\n');
    if (f->pending.length >= PENDING_BYTES && !f->rc)
        pack(f, ZSTD_e_continue);
}

/* --- definitions -------------------------------------------------------------------------------------------------- */

/* 0: none. heaptrack reads lines, so a text has none of their ends. */
static uint32_t text_of(struct heaptrack_file *f, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    length = length < NAME_MOST ? length : NAME_MOST;
    if (!length)
        return 0;
    uint32_t *slot = text_map_slot(&f->texts, text, length);
    if (*slot)
        return *slot;
    *slot = (uint32_t)text_map_count(&f->texts);
    buf_printf(&f->pending, "s %zx ", length);
    for (size_t i = 0; i < length; i++)
        buf_putc(&f->pending, text[i] == '\n' || text[i] == '\r' ? '?' : text[i]);
    line_ends(f);
    return *slot;
}

struct frame_texts {
    uint32_t function, file, line;
};

static uint32_t code_of(struct heaptrack_file *f, const struct walk_frame *frames, int count)
{
    uint32_t number = number_of(&f->codes, frames[0].address_id, 0);
    struct frame_texts texts[64];
    if (number != MAP_NONE)
        return number;
    count = count < 64 ? count : 64;
    uint32_t module = text_of(f, frames[0].module);
    for (int i = 0; i < count; i++)
        texts[i] = (struct frame_texts){text_of(f, frames[i].function), text_of(f, frames[i].file),
                                        frames[i].line > 0 ? (uint32_t)frames[i].line : 0};
    /* Python's frames have no address; a number of their own tells them apart */
    int64_t address = frames[0].offset > 0 ? frames[0].offset : frames[0].address_id;
    buf_printf(&f->pending, "i %llx %x", (unsigned long long)address, module);
    for (int i = 0; i < count && (texts[i].function || texts[i].file); i++)
        buf_printf(&f->pending, " %x %x %x", texts[i].function, texts[i].file, texts[i].line);
    line_ends(f);
    number = ++f->code_count;
    set_number(&f->codes, frames[0].address_id, 0, number);
    return number;
}

/* A node that was looked at on the way out, whose trace is still to be written. */
struct step {
    int64_t stack_id;
    uint32_t code; /* 0: none of its own, it is its caller's trace */
    uint8_t key;   /* enum trace_key */
};

/* A node of an allocator's has two traces: of what it allocates itself, without it, and of what it calls. */
enum trace_key { KEY_BOTH, KEY_INNER, KEY_CALLER };

static int is_allocators(const struct walk_step *step)
{
    for (int i = 0; i < step->count; i++)
        if (!step->frames[i].is_allocator)
            return 0;
    return 1;
}

static uint32_t known_trace(const struct heaptrack_file *f, int64_t stack_id, int is_inner)
{
    uint32_t trace = number_of(&f->traces, stack_id, KEY_BOTH);
    return trace != MAP_NONE ? trace : number_of(&f->traces, stack_id, is_inner ? KEY_INNER : KEY_CALLER);
}

/* Looks at the nodes from a stack's innermost outwards, up to one whose trace is there; its number, or 0. heaptrack,
 * too, has no malloc() and no operator new at the end of a trace. */
static uint32_t look_out(struct heaptrack_file *f, int64_t stack_id, struct step **steps, uint32_t *count)
{
    uint32_t room = 0, known = MAP_NONE;
    int is_inner = !f->all_frames;
    while (stack_id && (known = known_trace(f, stack_id, is_inner)) == MAP_NONE && *count < WALK_FRAMES_MAX) {
        struct walk_step step;
        int got = walk_step(f->walk, stack_id, *count > 0, &step, f->err);
        if (got <= 0 || !step.count) {
            f->rc = got < 0 ? got : f->rc;
            break;
        }
        int is_left_out = !f->all_frames && step.parent_id && is_allocators(&step);
        uint8_t key = !is_left_out ? KEY_BOTH : is_inner ? KEY_INNER : KEY_CALLER;
        is_inner = is_inner && is_left_out;
        *ARRAY_ADD(*steps, *count, room) =
            (struct step){stack_id, is_inner ? 0 : code_of(f, step.frames, step.count), key};
        stack_id = step.parent_id;
    }
    return stack_id && known != MAP_NONE ? known : 0;
}

static uint32_t trace_of(struct heaptrack_file *f, int64_t stack_id)
{
    struct step *steps = NULL;
    uint32_t count = 0, trace = look_out(f, stack_id, &steps, &count);
    while (count) {
        const struct step *s = &steps[--count];
        if (s->code) {
            buf_printf(&f->pending, "t %x %x", s->code, trace);
            line_ends(f);
            trace = ++f->trace_count;
        }
        set_number(&f->traces, s->stack_id, s->key, trace);
    }
    free(steps);
    return trace;
}

/* One that comes again under another number is the same to heaptrack: it adds up by trace. */
static uint32_t info_of(struct heaptrack_file *f, int64_t size_bytes, int64_t stack_id)
{
    if (f->infos.count >= INFOS_MAX)
        map_close(&f->infos);
    uint32_t number = map_number(&f->infos, (uint64_t)size_bytes, (uint64_t)stack_id);
    if (number != MAP_NONE)
        return number;
    uint32_t trace = trace_of(f, stack_id);
    buf_printf(&f->pending, "a %llx %x", (unsigned long long)size_bytes, trace);
    line_ends(f);
    number = f->info_count++;
    map_set_number(&f->infos, (uint64_t)size_bytes, (uint64_t)stack_id, number);
    return number;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void set_time(struct heaptrack_file *f, int64_t time_ns)
{
    int64_t ms = time_ns / 1000000;
    if (ms <= f->last_ms)
        return;
    f->last_ms = ms;
    buf_printf(&f->pending, "c %llx", (unsigned long long)ms);
    line_ends(f);
}

static void take_event(struct heaptrack_file *f, sqlite3_stmt *s)
{
    const char *op = db_text(s, 1);
    int is_birth = strcmp(op, "alloc") == 0 || strcmp(op, "realloc") == 0, is_move = strcmp(op, "to_segment") == 0;
    int64_t size_bytes = sqlite3_column_int64(s, 2);
    if (!is_birth && !is_move && strcmp(op, "free") != 0)
        return;
    if (size_bytes < f->min_size_bytes) {
        f->small_left_out += is_birth;
        return;
    }
    uint32_t info = info_of(f, size_bytes, sqlite3_column_int64(s, 3));
    set_time(f, sqlite3_column_int64(s, 0));
    buf_printf(&f->pending, "%c %x", is_birth ? '+' : '-', info);
    line_ends(f);
    f->events++;
    f->moved += is_move;
}

static int write_events(struct heaptrack_file *f, const struct one_process *one)
{
    static const char sql[] = "SELECT time_ns, op, size_bytes, stack_id FROM v_event WHERE device = 'host' AND kind = "
                              "'heap' AND (?1 = 0 OR process_id = ?1)";
    sqlite3_stmt *s = NULL;
    f->rc = db_prepare(f->db, sql, &s, f->err);
    if (f->rc == 0)
        sqlite3_bind_int64(s, 1, one->process_id);
    while (f->rc == 0 && db_next(s, &f->rc, f->err))
        take_event(f, s);
    sqlite3_finalize(s);
    return f->rc;
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static void write_head(struct heaptrack_file *f, const struct one_process *one)
{
    int64_t page_bytes = db_meta_int(f->db, "page_bytes", 4096);
    int64_t total_bytes = db_int(f->db, "SELECT total_bytes FROM device WHERE device_id = 0", 0);
    total_bytes = total_bytes > 0 ? total_bytes : db_meta_int(f->db, "machine_bytes", 0);
    page_bytes = page_bytes > 0 ? page_bytes : 4096;
    buf_printf(&f->pending, "v %x %x\nX ", HEAPTRACK_VERSION, HEAPTRACK_FORMAT);
    for (const char *c = one->command; *c; c++)
        buf_putc(&f->pending, *c == '\n' || *c == '\r' ? ' ' : *c);
    buf_printf(&f->pending, "\nI %llx %llx", (unsigned long long)page_bytes,
               (unsigned long long)(total_bytes > 0 ? total_bytes / page_bytes : 0));
    line_ends(f);
}

/* The length of the run, and the most that was resident: heaptrack knows it by the maximum of its samples. */
static void write_tail(struct heaptrack_file *f, const struct one_process *one)
{
    int64_t rss_bytes = 0, page_bytes = db_meta_int(f->db, "page_bytes", 4096);
    sqlite3_stmt *s = NULL;
    if (db_prepare(f->db, "SELECT peak_rss_bytes FROM process WHERE ?1 = 0 OR process_id = ?1", &s, NULL) == 0) {
        sqlite3_bind_int64(s, 1, one->process_id);
        rss_bytes = sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    }
    sqlite3_finalize(s);
    set_time(f, db_meta_int(f->db, "duration_ns", 0));
    if (rss_bytes > 0 && page_bytes > 0)
        buf_printf(&f->pending, "R %llx\n", (unsigned long long)(rss_bytes / page_bytes));
    buf_printf(&f->pending, "# strings: %zu\n# ips: %u", text_map_count(&f->texts), f->code_count);
    line_ends(f);
    pack(f, ZSTD_e_end);
}

static void tell(const struct heaptrack_file *f, const struct one_process *one, struct export_result *result)
{
    static const char others[] = "SELECT sum(alloc_count) FROM total WHERE kind <> 'all' AND NOT (kind = 'heap' AND "
                                 "device_id = 0)";
    struct buf note = BUF(sizeof result->note - 1);
    char count[UNITS_TEXT];
    int64_t other = db_int(f->db, others, 0), torn = db_int(f->db, "SELECT sum(freed_bytes) FROM site_teardown", 0);
    result->item_count = f->events;
    result->item = "events";
    if (other > 0)
        buf_printf(&note, "%s allocations of other kinds and devices are not in it: heaptrack knows malloc's alone\n",
                   units_count(count, other));
    if (one->images > 1)
        buf_puts(&note, "the process executed several programs; the one that allocated most is in it\n");
    if (f->small_left_out)
        buf_printf(&note, "%s allocations of small blocks are not in it (--min-size)\n",
                   units_count(count, f->small_left_out));
    if (f->moved)
        buf_printf(&note, "%s blocks became an allocator's memory: they count as freed there\n",
                   units_count(count, f->moved));
    if (torn > 0)
        buf_printf(&note, "what Python freed as it took itself down is freed: heaptrack says %s less of leaks\n",
                   units_bytes(count, torn));
    buf_puts(&note, "temporaries are heaptrack's own: freed before the next event of any thread\n");
    snprintf(result->note, sizeof result->note, "%s", buf_text(&note));
    buf_free(&note);
}

static int check_options(sqlite3 *db, const struct export_options *options, struct error *err)
{
    if (options->lens && options->lens->skip_count)
        return error_set(err, EINVAL, "export: --format heaptrack has whole stacks; leave out --skip");
    if (replay_is_possible(db))
        return 0;
    return error_set(err, EINVAL,
                     "export: heaptrack's files are made of all events, which are not in this recording; "
                     "'memprof run' without --aggregate, --sample and --max-events keeps them");
}

int export_heaptrack(sqlite3 *db, const struct export_options *options, FILE *out, struct export_result *result,
                     struct error *err)
{
    struct heaptrack_file f = {.db = db,
                               .out = out,
                               .pending = BUF(64u << 20),
                               .all_frames = options->all_frames,
                               .min_size_bytes = options->min_size_bytes,
                               .last_ms = -1,
                               .err = err};
    struct one_process one = {0};
    f.rc = vtab_event_register(db) == SQLITE_OK ? check_options(db, options, err) : db_error(db, err);
    if (f.rc == 0)
        f.rc = one_process_find(db, options, "host", &one, err);
    if (f.rc == 0)
        f.rc = walk_open(db, options->lens ? options->lens->language : TREE_BOTH, &f.walk, err);
    f.zstd = ZSTD_createCCtx();
    if (f.zstd)
        ZSTD_CCtx_setParameter(f.zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    if (f.rc == 0) {
        write_head(&f, &one);
        if (write_events(&f, &one) == 0)
            write_tail(&f, &one);
        tell(&f, &one, result);
    }
    walk_close(f.walk);
    ZSTD_freeCCtx(f.zstd);
    one_process_close(&one);
    text_map_close(&f.texts);
    numbers_close(&f.codes);
    numbers_close(&f.traces);
    map_close(&f.infos);
    buf_free(&f.pending);
    return f.rc;
}
