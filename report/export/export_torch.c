/*
 * A memory snapshot as torch.cuda.memory._dump_snapshot writes it, from the events of a recording. Its readers want:
 * each block within a segment at every instant, blocks that fill their segments without gaps, and an entry for each
 * birth and death between the first state and the final one. Where a recording knows no segments (glibc's heap),
 * regions that hold all blocks stand for them.
 */
#include "export_torch.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "../query/device.h"
#include "../query/estimate.h"
#include "../query/merged.h"
#include "../query/vtab_event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VIEWER_ENTRIES 200000 /* that PyTorch's viewer shows without long waits */
#define SETTINGS_MAX   1000

static int put_annotations(struct exporting *e, struct error *err)
{
    /* of an import: its marks are entries, what began before its history had no START, and what we found in it is ours
     */
    static const char sql[] =
        "SELECT time_ns, is_end, name, device_id FROM ("
        " SELECT start_ns AS time_ns, 0 AS is_end, name, device_id, mark_id FROM mark WHERE "
        "(NOT ?1 OR (is_range AND domain IS NULL AND category IS NULL)) AND (is_range OR name <> 'snapshot')"
        " UNION ALL SELECT coalesce(end_ns, start_ns), 1, name, device_id, mark_id FROM mark"
        " WHERE CASE WHEN ?1 THEN is_range AND domain IS NULL AND end_ns IS NOT NULL ELSE end_ns IS NOT NULL OR (NOT "
        "is_range AND name <> 'snapshot') END)"
        " ORDER BY time_ns, mark_id, is_end";
    struct snapshot_writer *w = &e->writer;
    sqlite3_stmt *s = NULL;
    int64_t count = 0;
    int step, rc = db_prepare(e->db, sql, &s, err);
    if (rc)
        return rc;
    sqlite3_bind_int(s, 1, e->is_import);
    pickle_put_begin(&w->pickle, PICKLE_LIST);
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        int number = 0;
        for (int i = 0; i < e->trace_count; i++)
            if (sqlite3_column_type(s, 3) != SQLITE_NULL && e->traces[i].device_id == sqlite3_column_int64(s, 3))
                number = e->traces[i].number;
        pickle_put_begin(&w->pickle, PICKLE_DICT);
        snapshot_put_word(w, WORD_stage);
        snapshot_put_word(w, sqlite3_column_int(s, 1) ? WORD_END : WORD_START);
        snapshot_put_word(w, WORD_name);
        pickle_put_text(&w->pickle, db_text(s, 2));
        snapshot_put_item(w, WORD_device, number);
        snapshot_put_item(w, WORD_time_us, e->start_us + sqlite3_column_int64(s, 0) / 1000);
        pickle_put_end(&w->pickle, PICKLE_DICT);
        pickle_put_next(&w->pickle, ++count);
    }
    pickle_put_end(&w->pickle, PICKLE_LIST);
    rc = step == SQLITE_DONE ? 0 : db_error(e->db, err);
    sqlite3_finalize(s);
    return rc;
}

/* A word of Python, a number, or a text. */
static void put_value(struct pickle_writer *w, const char *text)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0) {
        pickle_put_bool(w, *text == 'T');
    } else if (*text && !*end && errno != ERANGE) {
        pickle_put_number(w, number);
    } else {
        double real = strtod(text, &end);
        if (*text && !*end && strspn(text, "-+.0123456789eE") == strlen(text))
            pickle_put_float(w, real);
        else
            pickle_put_text(w, text);
    }
}

/* Those of an imported snapshot; readers look for PYTORCH_CUDA_ALLOC_CONF in all. */
static int put_settings(struct exporting *e, struct error *err)
{
    static const char sql[] =
        "SELECT substr(key, 7), CAST(value AS TEXT) FROM meta WHERE key LIKE 'torch.%' AND value IS NOT NULL"
        " UNION SELECT 'PYTORCH_CUDA_ALLOC_CONF', '' WHERE NOT EXISTS(SELECT 1 FROM meta WHERE key = "
        "'torch.PYTORCH_CUDA_ALLOC_CONF') ORDER BY 1";
    struct snapshot_writer *w = &e->writer;
    sqlite3_stmt *s = NULL;
    int64_t count = 0;
    int step, rc = db_prepare(e->db, sql, &s, err);
    if (rc)
        return rc;
    pickle_put_begin(&w->pickle, PICKLE_DICT);
    while ((step = sqlite3_step(s)) == SQLITE_ROW && count++ < SETTINGS_MAX) {
        pickle_put_text(&w->pickle, db_text(s, 0));
        errno = 0;
        put_value(&w->pickle, db_text(s, 1));
    }
    pickle_put_end(&w->pickle, PICKLE_DICT);
    rc = step == SQLITE_DONE || step == SQLITE_ROW ? 0 : db_error(e->db, err);
    sqlite3_finalize(s);
    return rc;
}

/* --- the whole -------------------------------------------------------------------------------------------------- */

/* GPUs by their numbers; the host, where it is asked for or where there is nothing else, as device 0. */
static int choose_devices(struct exporting *e, const char *wanted, char names[TORCH_DEVICES_MAX][64], struct error *err)
{
    static const char sql[] = "SELECT d.device_id, d.name FROM device d WHERE CASE WHEN ?1 IS NOT NULL THEN " DEVICE_IS(
        "d.name",
        "?1") " WHEN EXISTS(SELECT 1 "
              "FROM total t JOIN device g USING(device_id) WHERE g.name LIKE 'cuda:%' AND (t.alloc_count > 0 OR "
              "t.peak_reserved_bytes > 0)) OR NOT EXISTS(SELECT 1 FROM device WHERE name = 'host') THEN d.name LIKE "
              "'cuda:%' "
              "ELSE d.name "
              "= "
              "'host' END ORDER BY d.device_id LIMIT 64";
    sqlite3_stmt *s = NULL;
    int step, rc = db_prepare(e->db, sql, &s, err);
    if (rc)
        return rc;
    sqlite3_bind_text(s, 1, wanted, -1, SQLITE_TRANSIENT);
    while ((step = sqlite3_step(s)) == SQLITE_ROW && e->trace_count < TORCH_DEVICES_MAX) {
        const char *name = db_text(s, 1);
        int number = strncmp(name, "cuda:", 5) == 0 ? atoi(name + 5) : 0;
        if (number < 0 || number >= TORCH_DEVICES_MAX)
            continue;
        snprintf(names[e->trace_count], 64, "%s", name);
        e->traces[e->trace_count++] = (struct trace){.device_id = sqlite3_column_int64(s, 0), .number = number};
    }
    rc = step == SQLITE_DONE || step == SQLITE_ROW ? 0 : db_error(e->db, err);
    sqlite3_finalize(s);
    if (rc == 0 && !e->trace_count)
        rc = error_set(err, EINVAL, "export: no device '%s' in this recording; 'memprof report --by device' lists them",
                       wanted ? wanted : "host");
    return rc;
}

/* Of the host's processes the one that allocated most: each has addresses of its own, and a snapshot is of one. */
static void choose_process(struct exporting *e)
{
    for (int i = 0; i < e->trace_count; i++) {
        if (e->traces[i].device_id || e->is_import)
            continue;
        e->traces[i].process_id = db_int(
            e->db,
            "SELECT t.process_id FROM account a JOIN thread t ON t.thread_id = a.key_id WHERE a.scope = 'thread' AND "
            "a.device_id = 0 AND a.kind = 'all' GROUP BY t.process_id ORDER BY sum(a.alloc_bytes) DESC, 1 LIMIT 1",
            0);
        e->other_processes = db_int(
            e->db,
            "SELECT count(DISTINCT t.process_id) - 1 FROM account a JOIN thread t ON t.thread_id = a.key_id WHERE "
            "a.scope = 'thread' AND a.device_id = 0 AND a.alloc_count > 0",
            0);
    }
}

/* A list for each number up to the largest; those between are empty. */
static int put_traces(struct exporting *e, char names[TORCH_DEVICES_MAX][64], struct error *err)
{
    int rc = 0, next = 0;
    pickle_put_begin(&e->writer.pickle, PICKLE_LIST);
    for (int number = 0; rc == 0 && next < e->trace_count; number++) {
        int found = -1;
        for (int i = 0; i < e->trace_count && found < 0; i++)
            if (e->traces[i].number == number)
                found = i;
        if (found >= 0) {
            rc = torch_trace_write(e, &e->traces[found], names[found], err);
            next++;
        } else {
            pickle_put_empty(&e->writer.pickle, PICKLE_LIST);
        }
    }
    pickle_put_end(&e->writer.pickle, PICKLE_LIST);
    return rc;
}

static int put_all(struct exporting *e, char names[TORCH_DEVICES_MAX][64], struct error *err)
{
    struct snapshot_writer *w = &e->writer;
    int64_t count = 0;
    pickle_put_start(&w->pickle);
    pickle_put_begin(&w->pickle, PICKLE_DICT);
    snapshot_put_word(w, WORD_device_traces);
    int rc = put_traces(e, names, err);
    if (rc)
        return rc;
    snapshot_put_word(w, WORD_segments);
    pickle_put_begin(&w->pickle, PICKLE_LIST);
    for (int i = 0; i < e->trace_count; i++)
        torch_final_write(e, &e->traces[i], &count);
    pickle_put_end(&w->pickle, PICKLE_LIST);
    snapshot_put_word(w, WORD_external_annotations);
    rc = put_annotations(e, err);
    snapshot_put_word(w, WORD_allocator_settings);
    if (rc == 0)
        rc = put_settings(e, err);
    pickle_put_end(&w->pickle, PICKLE_DICT);
    pickle_put_stop(&w->pickle);
    return rc ? rc : e->rc;
}

static void close_export(struct exporting *e)
{
    for (int i = 0; i < e->trace_count; i++) {
        struct trace *t = &e->traces[i];
        free(t->blocks);
        free(t->segments);
        for (size_t page = 0; t->regions && page < TORCH_PAGES; page++)
            free(t->regions[page]);
        free(t->regions);
        free(t->unused);
        map_close(&t->live);
        map_close(&t->processes);
    }
    free(e->traces);
    map_close(&e->frames);
    map_close(&e->stacks);
    map_close(&e->unfiled);
    walk_close(e->walk);
    buf_free(&e->writer.pickle.text);
}

static void note_count(struct buf *note, int64_t count, const char *one, const char *many)
{
    char text[UNITS_TEXT];
    if (count > 0)
        buf_printf(note, "%s %s\n", units_count(text, count), count == 1 ? one : many);
}

/* Devices that have memory and no place in the file. */
static void note_devices(const struct exporting *e, struct buf *note)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(
            e->db,
            "SELECT device_id, name, alloc_count FROM total JOIN device USING(device_id) WHERE kind = 'all' "
            "AND alloc_count > 0 ORDER BY 1",
            -1, &s, NULL) != SQLITE_OK)
        return;
    while (sqlite3_step(s) == SQLITE_ROW) {
        int is_in = 0;
        char text[UNITS_TEXT];
        for (int i = 0; i < e->trace_count; i++)
            is_in |= e->traces[i].device_id == sqlite3_column_int64(s, 0);
        if (!is_in)
            buf_printf(note, "%s is not in it, with %s allocations: --device %s\n", db_text(s, 1),
                       units_count(text, sqlite3_column_int64(s, 2)), db_text(s, 1));
    }
    sqlite3_finalize(s);
}

/* Everything that the recording has, and the file has not. */
static void tell(const struct exporting *e, struct export_result *result)
{
    struct buf note = BUF(sizeof result->note - 1);
    char *kept = db_meta_text(e->db, "events_kept"), text[UNITS_TEXT];
    note_devices(e, &note);
    note_count(&note, e->other_processes,
               "other process is not in it: a snapshot is of one, and this is of the one that allocated most",
               "other processes are not in it: a snapshot is of one, and this is of the one that allocated most");
    if (kept && strcmp(kept, "last") == 0)
        buf_puts(
            &note,
            "the recording kept its last events only: blocks from before them that were never freed are missing\n");
    note_count(&note, e->window_left_out,
               "event before the window is not in it; blocks that were live exist from the start",
               "events before the window are not in it; blocks that were live exist from the start");
    if (e->has_late)
        buf_puts(&note, "what came after the window is not in it; its final state is that of the window's end\n");
    note_count(&note, e->early_left_out, "event before the last ones is not in it (--max-events)",
               "events before the last ones are not in it (--max-events)");
    note_count(&note, e->small_left_out, "allocation of a small block is not in it (--min-size)",
               "allocations of small blocks are not in it (--min-size)");
    note_count(&note, e->left_out,
               "event or block is not in it: it overlaps others, or its address cannot be told apart",
               "events or blocks are not in it: they overlap others, or their addresses cannot be told apart");
    if (e->entries > VIEWER_ENTRIES)
        buf_printf(&note,
                   "PyTorch's viewer takes minutes for more than %s entries: --min-size 1024 or --max-events %d leaves "
                   "out the least\n",
                   units_count(text, VIEWER_ENTRIES), VIEWER_ENTRIES / 2);
    snprintf(result->note, sizeof result->note, "%s", buf_text(&note));
    buf_free(&note);
    free(kept);
}

int export_torch(sqlite3 *db, const struct export_options *options, FILE *out, struct export_result *result,
                 struct error *err)
{
    char names[TORCH_DEVICES_MAX][64];
    char *from = db_meta_text(db, "imported_from"), *kept = db_meta_text(db, "events_kept");
    struct exporting e = {.db = db,
                          .is_import = from != NULL,
                          .start_us = db_meta_int(db, "start_unix_ns", 0) / 1000,
                          .options = options,
                          .err = err};
    int rc = 0;
    e.writer.pickle = (struct pickle_writer){.out = out, .text = BUF(1 << 20)};
    e.traces = xcalloc(TORCH_DEVICES_MAX, sizeof *e.traces);
    if (kept && strcmp(kept, "none") == 0)
        rc = error_set(err, EINVAL, "export: %s: a snapshot is made of events, and this has none",
                       merged_count(db)              ? "a merged file"
                       : estimate_mean_bytes(db) > 0 ? "recorded with --sample"
                                                     : "recorded with --aggregate");
    free(from);
    free(kept);
    if (rc == 0 && vtab_event_register(db) != SQLITE_OK)
        rc = db_error(db, err);
    if (rc == 0)
        rc = walk_open(db, TREE_BOTH, &e.walk, err);
    if (rc == 0)
        rc = torch_import_files(&e, err);
    if (rc == 0)
        rc = choose_devices(&e, options->device, names, err);
    if (rc == 0) {
        choose_process(&e);
        rc = put_all(&e, names, err);
    }
    result->item_count = e.entries;
    result->item = "entries";
    tell(&e, result);
    close_export(&e);
    return rc;
}
