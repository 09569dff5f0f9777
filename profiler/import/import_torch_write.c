/* What of a snapshot is no event: rows written beside the accounts. */
#include "../store/named.h"
#include "../store/stacks.h"
#include "../symbols/symbols.h"
#include "import_snapshot.h"

#include "../../common/array.h"
#include "../../common/buf.h"
#include "../../common/build.h"
#include "../../common/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRINT_DEPTH 8 /* of nested settings */

/* --- before the events ------------------------------------------------------------------------------------------ */

static void print_value(const struct snapshot *snap, struct buf *out, struct pickle_value v, int depth)
{
    size_t count;
    const struct pickle_value *items;
    switch ((int)pickle_type(v)) {
    case PICKLE_NONE:
        buf_puts(out, "None");
        break;
    case PICKLE_BOOL:
        buf_puts(out, pickle_index(v) ? "True" : "False");
        break;
    case PICKLE_INT:
        buf_printf(out, "%lld", (long long)pickle_int(v));
        break;
    case PICKLE_FLOAT:
        buf_printf(out, "%.6g", pickle_float(v));
        break;
    case PICKLE_TEXT:
        buf_puts(out, pickle_text(snap->pickle, v, NULL));
        break;
    case PICKLE_DICT:
    case PICKLE_LIST:
    case PICKLE_TUPLE:
        items = pickle_items(snap->pickle, v, &count);
        buf_puts(out, "{");
        for (size_t i = 0; i < count && depth < PRINT_DEPTH && !out->failed; i++) {
            int is_key = pickle_type(v) == PICKLE_DICT && i % 2 == 0;
            print_value(snap, out, items[i], depth + 1);
            buf_puts(out, is_key ? ": " : i + 1 < count ? ", " : "");
        }
        buf_puts(out, "}");
        break;
    default:
        buf_puts(out, "?");
    }
}

/* meta 'torch.SETTING' for each: what the allocator was told to do. */
static void write_settings(const struct snapshot *snap, struct store *store)
{
    size_t count = 0;
    const struct pickle_value *items = snap->has_settings ? pickle_items(snap->pickle, snap->settings, &count) : NULL;
    for (size_t i = 0; i + 1 < count && i < 400; i += 2) {
        struct buf key = BUF(256), value = BUF(1 << 16);
        if (pickle_type(items[i]) == PICKLE_TEXT) {
            buf_printf(&key, "torch.%s", pickle_text(snap->pickle, items[i], NULL));
            print_value(snap, &value, items[i + 1], 0);
            if (key.data && !key.failed)
                store_meta_text(store, key.data, buf_text(&value));
        }
        buf_free(&key);
        buf_free(&value);
    }
}

static void write_meta(const struct snapshot *snap, const char *path, const struct import_counts *counts,
                       struct store *store)
{
    struct buf command = BUF(1 << 16);
    char *absolute = realpath(path, NULL);
    buf_puts(&command, "PyTorch memory snapshot ");
    buf_shell(&command, path);
    store_meta_text(store, "format", "memprof");
    store_meta_text(store, "writer_version", build_version);
    store_meta_text(store, "state", "recording");
    store_meta_int(store, "start_unix_ns", counts->start_us * 1000);
    store_meta_text(store, "command", buf_text(&command));
    store_meta_text(store, "options", "");
    store_meta_text(store, "imported_from", absolute ? absolute : path);
    store_meta_int(store, "page_bytes", sysconf(_SC_PAGESIZE));
    store_meta_text(store, "clock", counts->has_times ? "unix" : "none");
    store_meta_text(store, "events_kept", "all");
    store_meta_int(store, "event_count", 0);
    store_meta_int(store, "duration_ns", (int64_t)import_time_ns(counts, counts->end_us));
    write_settings(snap, store);
    buf_free(&command);
    free(absolute);
}

static void write_hooks(struct store *store)
{
    for (unsigned i = 0; i < IMPORT_HOOKS; i++) {
        const char *name = i == SNAPSHOT_NO_ACTION   ? "none"
                           : i == IMPORT_HOOK_BEFORE ? "before the history"
                           : i == IMPORT_HOOK_AFTER  ? "final state"
                                                     : snapshot_action_name(i);
        sqlite3_stmt *q = store_statement(store, "INSERT INTO hook VALUES(?, ?, 'sub')");
        sqlite3_bind_int64(q, 1, i);
        sqlite3_bind_text(q, 2, name, -1, SQLITE_STATIC);
        store_step(store, q);
    }
}

static void write_device(struct store *store, unsigned device)
{
    char name[32];
    sqlite3_stmt *q = store_statement(store, "INSERT INTO device(device_id, name) VALUES(?, ?)");
    snprintf(name, sizeof name, "cuda:%u", device);
    sqlite3_bind_int64(q, 1, import_device_id(device));
    sqlite3_bind_text(q, 2, device == IMPORT_HOST ? "host" : name, -1, SQLITE_TRANSIENT);
    store_step(store, q);
}

static void write_devices(const struct snapshot *snap, struct store *store)
{
    uint8_t used[SNAPSHOT_DEVICES] = {0};
    for (uint32_t i = 0; i < snap->segment_run.count; i++) {
        const struct snapshot_segment *s = SNAPSHOT_AT(snap->segments, snapshot_segment, snap->segment_run.first + i);
        if (s->device < SNAPSHOT_DEVICES)
            used[s->device] = 1;
    }
    write_device(store, IMPORT_HOST);
    for (unsigned i = 0; i < SNAPSHOT_DEVICES; i++)
        if (used[i] || snap->devices[i].count || (i == 0 && snap->device_count))
            write_device(store, i);
}

/* A snapshot does not say which thread allocated; what stands in its place is the stream. */
static void write_streams(const struct snapshot *snap, const char *path, struct store *store,
                          struct import_names *names)
{
    const struct snapshot_place *places = snap->places.data;
    sqlite3_stmt *q =
        store_statement(store, "INSERT INTO process(process_id, pid, start_kind, exe, command_line, start_ns)"
                               " VALUES(?, 0, 'exec', 'python', ?, 0)");
    sqlite3_bind_int64(q, 1, IMPORT_PROCESS);
    sqlite3_bind_text(q, 2, path, -1, SQLITE_TRANSIENT);
    store_step(store, q);
    names->thread_ids = xcalloc(snap->places.count, sizeof *names->thread_ids);
    uint32_t last_id = 0;
    for (uint32_t i = 0; i < snap->places.count; i++) {
        for (uint32_t j = 0; j < i && !names->thread_ids[i]; j++)
            if (places[j].stream == places[i].stream)
                names->thread_ids[i] = names->thread_ids[j];
        if (names->thread_ids[i])
            continue;
        char name[64];
        snprintf(name, sizeof name, "stream %lld", (long long)places[i].stream);
        names->thread_ids[i] = ++last_id;
        q = store_statement(store,
                            "INSERT INTO thread(thread_id, process_id, tid, name, start_ns) VALUES(?, ?, ?, ?, 0)");
        sqlite3_bind_int64(q, 1, last_id);
        sqlite3_bind_int64(q, 2, IMPORT_PROCESS);
        sqlite3_bind_int64(q, 3, places[i].stream);
        sqlite3_bind_text(q, 4, name, -1, SQLITE_TRANSIENT);
        store_step(store, q);
    }
}

static int ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* PyTorch mixes both languages in one list, and says of neither which it is. */
static int is_python(const char *file)
{
    return file && (*file == '<' || ends_in(file, ".py") || ends_in(file, ".pyc") || ends_in(file, ".ipynb"));
}

static uint32_t name_frame(const struct snapshot *snap, struct store *store, struct named *named,
                           const struct snapshot_frame *f)
{
    const char *function = snapshot_text(snap, f->function), *file = snapshot_text(snap, f->file);
    int python = is_python(file), is_unfiled = file && !*file;
    char *plain = python || !function ? NULL : symbols_plain_name(function);
    if (file && (!*file || strcmp(file, "??") == 0))
        file = NULL;
    struct named_frame frame = {
        .function = function,
        .plain_name = plain,
        .file = file,
        .line = f->line,
        .language = python ? "python" : "native",
    };
    uint32_t id = named_address(named, &frame);
    sqlite3_stmt *q =
        is_unfiled ? store_statement(store, "INSERT OR IGNORE INTO snapshot_unfiled(address_id) VALUES(?)") : NULL;
    if (q) {
        sqlite3_bind_int64(q, 1, id);
        store_step(store, q);
    }
    free(plain);
    return id;
}

static void write_stacks(const struct snapshot *snap, struct store *store, struct import_names *names)
{
    struct stacks *stacks = stacks_open(store);
    struct named *named = named_open(store, stacks);
    uint32_t *addresses = xcalloc(snap->frames.count + 1ul, sizeof *addresses), *path = NULL;
    uint32_t path_capacity = 0;
    names->stack_ids = xcalloc(snap->stacks.count, sizeof *names->stack_ids);
    for (uint32_t i = 0; i < snap->stacks.count; i++) {
        const struct snapshot_stack *s = SNAPSHOT_AT(snap->stacks, snapshot_stack, i);
        ARRAY_ROOM(path, s->count, path_capacity);
        for (uint32_t n = 0; n < s->count; n++) {
            uint32_t frame = s->frames[n];
            if (!addresses[frame])
                addresses[frame] = name_frame(snap, store, named, SNAPSHOT_AT(snap->frames, snapshot_frame, frame));
            path[n] = addresses[frame];
        }
        names->stack_ids[i] = s->count ? named_stack(named, path, s->count) : 0;
    }
    const struct named_frame before = {.function = "(before the history)", .language = "native"};
    uint32_t address = named_address(named, &before);
    names->before_id = named_stack(named, &address, 1);
    free(path);
    free(addresses);
    named_close(named);
    stacks_write(stacks);
    stacks_close(stacks);
}

void import_write_before(const struct snapshot *snap, const char *path, const struct import_counts *counts,
                         struct store *store, struct import_names *names)
{
    write_meta(snap, path, counts, store);
    write_hooks(store);
    write_devices(snap, store);
    write_streams(snap, path, store, names);
    write_stacks(snap, store, names);
}

/* --- after them ------------------------------------------------------------------------------------------------- */

static void bind_pool(sqlite3_stmt *q, int at, const struct snapshot_place *p)
{
    char pool[64];
    if (p->pool[0] == 0 && p->pool[1] == 0) {
        sqlite3_bind_null(q, at);
        return;
    }
    snprintf(pool, sizeof pool, "%lld,%lld", (long long)p->pool[0], (long long)p->pool[1]);
    sqlite3_bind_text(q, at, pool, -1, SQLITE_TRANSIENT);
}

/* Rows that begin at an address, at a time or at any. */
static void mark_segment(const struct snapshot *snap, struct store *store, unsigned device_id, const char *type,
                         uint16_t place, int is_expandable, uint64_t address, int64_t from_ns)
{
    static const char sql[] = "UPDATE segment SET stream = ?1, pool = ?2, is_expandable = ?3, type = coalesce(?4, type)"
                              " WHERE device_id = ?5 AND address = ?6 AND alloc_ns >= ?7";
    const struct snapshot_place *p = SNAPSHOT_AT(snap->places, snapshot_place, place);
    sqlite3_stmt *q = store_statement(store, sql);
    if (!q)
        return;
    sqlite3_bind_int64(q, 1, p->stream);
    bind_pool(q, 2, p);
    sqlite3_bind_int(q, 3, is_expandable);
    sqlite3_bind_text(q, 4, type, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(q, 5, device_id);
    sqlite3_bind_int64(q, 6, (int64_t)address);
    sqlite3_bind_int64(q, 7, from_ns);
    store_step(store, q);
}

static void mark_history(const struct snapshot *snap, struct store *store, unsigned device,
                         const struct snapshot_history *h, const struct import_counts *counts)
{
    for (uint32_t i = 0; i < h->count; i++) {
        const struct snapshot_event *e = SNAPSHOT_AT(snap->events, snapshot_event, h->first + i);
        if (e->action < SNAPSHOT_segment_alloc || e->action > SNAPSHOT_segment_unmap)
            continue;
        /* what is there from its free back to the start of the history has these properties too */
        int is_birth = e->action == SNAPSHOT_segment_alloc || e->action == SNAPSHOT_segment_map;
        int is_expandable = e->action == SNAPSHOT_segment_map || e->action == SNAPSHOT_segment_unmap;
        mark_segment(snap, store, import_device_id(device), NULL, e->place, is_expandable, e->address,
                     is_birth ? (int64_t)import_time_ns(counts, e->time_us) : 0);
    }
}

static void write_blocks(const struct snapshot *snap, struct store *store, const struct snapshot_segment *s,
                         unsigned device_id)
{
    static const char *const states[] = {"inactive", "active", "awaiting free"};
    for (uint32_t i = 0; i < s->block_count; i++) {
        const struct snapshot_block *b = SNAPSHOT_AT(snap->blocks, snapshot_block, s->first_block + i);
        sqlite3_stmt *q =
            store_statement(store, "INSERT INTO segment_block(device_id, segment_address, address, size_bytes,"
                                   " requested_bytes, state) VALUES(?, ?, ?, ?, ?, ?)");
        if (!q)
            return;
        sqlite3_bind_int64(q, 1, device_id);
        sqlite3_bind_int64(q, 2, (int64_t)s->address);
        sqlite3_bind_int64(q, 3, (int64_t)b->address);
        sqlite3_bind_int64(q, 4, (int64_t)b->size_bytes);
        if (b->state == SNAPSHOT_INACTIVE)
            sqlite3_bind_null(q, 5);
        else
            sqlite3_bind_int64(q, 5, (int64_t)b->requested_bytes);
        sqlite3_bind_text(q, 6, states[b->state], -1, SQLITE_STATIC);
        store_step(store, q);
    }
}

static void write_segments(const struct snapshot *snap, struct store *store, const struct import_counts *counts)
{
    sqlite3_exec(store_db(store), "CREATE INDEX temporary_segment ON segment(device_id, address)", NULL, NULL, NULL);
    for (unsigned i = 0; i < SNAPSHOT_DEVICES; i++)
        mark_history(snap, store, i, &snap->devices[i], counts);
    mark_history(snap, store, IMPORT_HOST, &snap->host, counts);
    const struct snapshot_run *runs[] = {&snap->segment_run, &snap->host_segment_run};
    for (unsigned k = 0; k < 2; k++)
        for (uint32_t i = 0; i < runs[k]->count; i++) {
            const struct snapshot_segment *s = SNAPSHOT_AT(snap->segments, snapshot_segment, runs[k]->first + i);
            if (s->device >= SNAPSHOT_DEVICES)
                continue;
            unsigned device_id = import_device_id(k ? IMPORT_HOST : s->device);
            mark_segment(snap, store, device_id, snapshot_text(snap, s->type), s->place, s->is_expandable, s->address,
                         0);
            write_blocks(snap, store, s, device_id);
        }
    sqlite3_exec(store_db(store), "DROP INDEX temporary_segment", NULL, NULL, NULL);
}

static void write_mark(struct store *store, unsigned device, const char *name, int64_t start_ns, int64_t end_ns,
                       int is_range, const char *category)
{
    sqlite3_stmt *q =
        store_statement(store, "INSERT INTO mark(process_id, device_id, name, start_ns, end_ns, is_range, category)"
                               " VALUES(?, ?, ?, ?, ?, ?, ?)");
    if (!q)
        return;
    sqlite3_bind_int64(q, 1, IMPORT_PROCESS);
    sqlite3_bind_int64(q, 2, import_device_id(device));
    sqlite3_bind_text(q, 3, name ? name : "", -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(q, 4, start_ns);
    if (is_range && end_ns >= 0)
        sqlite3_bind_int64(q, 5, end_ns);
    else
        sqlite3_bind_null(q, 5);
    sqlite3_bind_int(q, 6, is_range);
    sqlite3_bind_text(q, 7, category, -1, SQLITE_STATIC);
    store_step(store, q);
}

/* START and END of a name nest; an END alone is a range from before the history. */
static void write_annotations(const struct snapshot *snap, struct store *store, const struct import_counts *counts)
{
    const struct snapshot_annotation *all = snap->annotations.data;
    uint32_t first = snap->annotation_run.first, count = snap->annotation_run.count, depth = 0;
    uint32_t *open = xcalloc(count + 1ul, sizeof *open);
    for (uint32_t i = first; i < first + count; i++) {
        const struct snapshot_annotation *a = &all[i];
        unsigned device = a->device < SNAPSHOT_DEVICES ? a->device : 0;
        uint32_t at = depth;
        if (!a->is_end) {
            open[depth++] = i;
            continue;
        }
        /* the innermost of that name; not farther than real nesting goes */
        while (at > 0 && depth - at < 1000 &&
               (all[open[at - 1]].name != a->name || all[open[at - 1]].device != a->device))
            at--;
        int64_t end_ns = (int64_t)import_time_ns(counts, a->time_us), start_ns = 0;
        const char *category = "before the history";
        if (at > 0 && all[open[at - 1]].name == a->name && all[open[at - 1]].device == a->device) {
            start_ns = (int64_t)import_time_ns(counts, all[open[at - 1]].time_us);
            memmove(open + at - 1, open + at, (depth - at) * sizeof *open);
            depth--;
            category = NULL;
        }
        write_mark(store, device, snapshot_text(snap, a->name), start_ns, end_ns > start_ns ? end_ns : start_ns, 1,
                   category);
    }
    for (uint32_t i = 0; i < depth; i++)
        write_mark(store, all[open[i]].device < SNAPSHOT_DEVICES ? all[open[i]].device : 0,
                   snapshot_text(snap, all[open[i]].name), (int64_t)import_time_ns(counts, all[open[i]].time_us), -1, 1,
                   NULL);
    free(open);
}

/* Marks among the entries, and what an oom says of its device. */
static void write_entries(const struct snapshot *snap, struct store *store, const struct import_counts *counts)
{
    for (unsigned i = 0; i <= SNAPSHOT_DEVICES; i++) {
        const struct snapshot_history *h = i == IMPORT_HOST ? &snap->host : &snap->devices[i];
        for (uint32_t n = 0; n < h->count; n++) {
            const struct snapshot_event *e = SNAPSHOT_AT(snap->events, snapshot_event, h->first + n);
            int64_t time_ns = (int64_t)import_time_ns(counts, e->time_us);
            if (e->action == SNAPSHOT_user_defined)
                write_mark(store, i, snapshot_text(snap, (uint32_t)e->address), time_ns, -1, 0, NULL);
            else if (e->action == SNAPSHOT_snapshot)
                write_mark(store, i, "snapshot", time_ns, -1, 0, NULL);
            if (e->action != SNAPSHOT_oom)
                continue;
            sqlite3_stmt *q = store_statement(store, "UPDATE oom SET device_free_bytes = ? WHERE device_id = ? AND"
                                                     " time_ns = ? AND size_bytes = ?");
            sqlite3_bind_int64(q, 1, (int64_t)e->address);
            sqlite3_bind_int64(q, 2, import_device_id(i));
            sqlite3_bind_int64(q, 3, time_ns);
            sqlite3_bind_int64(q, 4, (int64_t)e->size_bytes);
            store_step(store, q);
        }
    }
}

/* The entries' texts, a row where they change; entries that were not used have no number. */
static void write_texts(const struct snapshot *snap, struct store *store, unsigned device,
                        const struct snapshot_history *h)
{
    const struct snapshot_texts *before = NULL, *all = snap->texts.data;
    uint32_t at = 0;
    int64_t number = 0;
    for (uint32_t i = h->first; i < h->first + h->count; i++) {
        while (at + 1 < snap->texts.count && all[at + 1].first_event <= i)
            at++;
        if (SNAPSHOT_AT(snap->events, snapshot_event, i)->action == SNAPSHOT_NO_ACTION)
            continue;
        int is_same = before == &all[at] || (!before && !all[at].compile_context && !all[at].user_metadata);
        before = &all[at];
        number++;
        sqlite3_stmt *q = is_same ? NULL : store_statement(store, "INSERT INTO snapshot_entry VALUES(?, ?, ?, ?)");
        if (!q)
            continue;
        sqlite3_bind_int64(q, 1, import_device_id(device));
        sqlite3_bind_int64(q, 2, number - 1);
        sqlite3_bind_text(q, 3, snapshot_text(snap, before->compile_context), -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(q, 4, snapshot_text(snap, before->user_metadata), -1, SQLITE_TRANSIENT);
        store_step(store, q);
    }
}

static void write_all_texts(const struct snapshot *snap, struct store *store)
{
    for (unsigned i = 0; i < SNAPSHOT_DEVICES && snap->texts.count; i++)
        write_texts(snap, store, i, &snap->devices[i]);
    if (snap->texts.count)
        write_texts(snap, store, IMPORT_HOST, &snap->host);
}

struct fact {
    const char *name, *text;
    uint64_t value;
    int is_note; /* said where the import is, and by every report; 2: without the number */
};

#define FACTS 13

static int is_empty(const struct snapshot *snap)
{
    uint64_t entries = snap->host.count;
    for (unsigned i = 0; i < SNAPSHOT_DEVICES; i++)
        entries += snap->devices[i].count;
    return entries + snap->segment_run.count + snap->host_segment_run.count == 0;
}

static void list_facts(const struct snapshot *snap, const struct import_counts *c, struct fact facts[FACTS])
{
    const struct fact all[FACTS] = {
        {"before_history", "blocks that were live before the history begins; counted as allocated at its start",
         c->before_blocks, 1},
        {"before_unknown", "of the blocks from before the history, those whose allocating line is not known",
         c->before_unknown, 0},
        {"before_segments", "segments that were there before the history begins", c->before_segments, 0},
        {"unseen_free", "blocks live at the history's end but not in the final state; freed at its end",
         c->unseen_frees, 1},
        {"unseen_alloc", "blocks of the final state whose allocation the history does not have; allocated at its end",
         c->unseen_allocs, 1},
        {"unseen_segment", "parts of segments in which the history and the final state differ; set at its end",
         c->unseen_segments, 1},
        {"bad_entry", "entries whose action, state or address is none that is known, not used", snap->bad_entries, 1},
        {"bad_size", "sizes that make no sense (negative, or larger than can be added up), taken as 0", snap->bad_sizes,
         1},
        {"rest_bytes", "bytes after the snapshot's end, not read", snap->rest_bytes, 1},
        {"empty", "the snapshot is empty: it has neither a history nor segments", is_empty(snap), 2},
        {"unknown_key", "values of keys that are not used", snap->unknown_keys, 0},
        {"unknown_value", "values that are not used: of another type than expected, or too many", snap->unknown_values,
         1},
        {"no_times", "entries without a time: they are a microsecond apart here", c->has_times ? 0 : snap->events.count,
         1},
    };
    memcpy(facts, all, sizeof all);
}

static void write_facts(const struct snapshot *snap, struct store *store, const struct import_counts *counts)
{
    struct fact facts[FACTS];
    list_facts(snap, counts, facts);
    for (unsigned i = 0; i < FACTS; i++)
        store_counter(store, 0, facts[i].name, facts[i].value, facts[i].text);
    if (snap->unknown_names[0])
        store_meta_text(store, "unknown_keys", snap->unknown_names);
}

char *import_note(const struct snapshot *snap, const struct import_counts *counts)
{
    struct fact facts[FACTS];
    struct buf note = BUF(4096);
    char count[UNITS_TEXT];
    list_facts(snap, counts, facts);
    for (unsigned i = 0; i < FACTS; i++) {
        if (!facts[i].value || !facts[i].is_note)
            continue;
        buf_puts(&note, note.length ? ". Also " : "");
        if (facts[i].is_note == 1)
            buf_printf(&note, "%s ", units_count(count, (int64_t)facts[i].value));
        buf_puts(&note, facts[i].text);
    }
    return note.data;
}

/* The accounts always have the host; a snapshot without host memory says nothing of it. */
static void remove_host(const struct snapshot *snap, struct store *store)
{
    static const char *const sql[] = {"DELETE FROM total WHERE device_id = 0",
                                      "DELETE FROM timeline WHERE device_id = 0",
                                      "DELETE FROM peak WHERE device_id = 0", "DELETE FROM device WHERE device_id = 0"};
    if (snap->host.count || snap->host_segment_run.count)
        return;
    for (size_t i = 0; i < sizeof sql / sizeof *sql; i++)
        store_step(store, store_statement(store, sql[i]));
}

void import_write_after(const struct snapshot *snap, struct store *store, const struct import_counts *counts)
{
    char *note = import_note(snap, counts);
    write_segments(snap, store, counts);
    write_annotations(snap, store, counts);
    write_entries(snap, store, counts);
    write_all_texts(snap, store);
    write_facts(snap, store, counts);
    remove_host(snap, store);
    if (note)
        store_meta_text(store, "import_note", note);
    free(note);
}
