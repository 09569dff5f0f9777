#include "merge.h"

#include "../account/timeline.h"
#include "../finish/finish.h"
#include "../store/output.h"
#include "merge_private.h"

#include "../../common/build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the file ---------------------------------------------------------------------------------------------------- */

/* Refuses what may not be replaced before anything is read; nothing is changed. */
static int check_output(const char *path, struct error *err)
{
    struct output output;
    int rc = output_prepare(&output, path, err);
    if (rc)
        return rc;
    output_remove(&output, 1);
    output_close(&output);
    return 0;
}

char *merge_file(const char *path)
{
    struct buf name = BUF(1 << 16);
    buf_printf(&name, "%s.merge-%ld", path, (long)getpid());
    return buf_take(&name);
}

static void remove_temporary(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; path && i < sizeof suffixes / sizeof *suffixes; i++) {
        struct buf name = BUF(1 << 16);
        buf_printf(&name, "%s%s", path, suffixes[i]);
        unlink(buf_text(&name));
        buf_free(&name);
    }
}

/* An older recording there is PATH.old now, as of a run. */
static int move_to_output(const char *temporary, const char *path, char **made, struct error *err)
{
    struct output output;
    int rc = output_prepare(&output, path, err);
    if (rc)
        return rc;
    if (rename(temporary, output.path)) {
        rc = error_set(err, errno, "%s: %s", output.path, strerror(errno));
        output_remove(&output, 1);
    } else {
        output_keep(&output);
        *made = xstrdup(output.path);
    }
    output_close(&output);
    return rc;
}

/* --- a merge ----------------------------------------------------------------------------------------------------- */

int merge_open(const struct merge_options *options, struct merge **merge, struct error *err)
{
    int rc = check_output(options->output, err);
    if (rc)
        return rc;
    struct merge *m = xcalloc(1, sizeof *m);
    m->options = *options;
    m->output = xstrdup(options->output);
    m->temporary = merge_file(options->output);
    m->partial = (struct buf)BUF(1 << 16);
    m->width_ns = TIMELINE_FIRST_WIDTH_NS;
    while (options->span_ns > 0 && (uint64_t)options->span_ns / m->width_ns >= TIMELINE_BUCKETS)
        m->width_ns *= 2;
    rc = store_create(m->temporary, &m->store, err);
    if (rc) {
        merge_drop(m);
        return rc;
    }
    m->nodes = nodes_open(m->store);
    device_rows_open(&m->devices, m->store);
    *merge = m;
    return 0;
}

static void free_merge(struct merge *m)
{
    nodes_close(m->nodes);
    merge_names_free(m);
    merge_time_free(m);
    map_close(&m->site_map);
    free(m->sites);
    m->nodes = NULL;
    m->sites = NULL;
}

void merge_drop(struct merge *m)
{
    if (!m)
        return;
    store_close(m->store, NULL);
    remove_temporary(m->temporary);
    free_merge(m);
    for (int i = 0; i < MERGE_SUMS; i++) {
        map_close(&m->sums[i].of);
        free(m->sums[i].rows);
    }
    text_map_close(&m->hosts);
    text_map_close(&m->device_names);
    text_map_close(&m->commands);
    buf_free(&m->partial);
    free(m->temporary);
    free(m->output);
    free(m);
}

/* --- facts ------------------------------------------------------------------------------------------------------- */

/* Facts that hold of the merged file where they are the same in all. */
static const char *const same_texts[] = {"cwd", "options", "python_malloc", "forked_heap", "boot_id", "clock"};
static const char *const same_numbers[] = {"page_bytes", "machine_bytes", "address_limit_bytes", "rank"};

static void keep_same(struct input *in, const char *key, int is_first)
{
    static const char sql[] = "DELETE FROM meta WHERE key = ?1 AND value IS NOT ?2";
    char *text = db_meta_text(in->db, key);
    if (is_first && text)
        store_meta_text(in->m->store, key, text);
    sqlite3_stmt *q = is_first ? NULL : store_statement(in->m->store, sql);
    if (q) {
        sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
        sqlite3_bind_text(q, 2, text, -1, SQLITE_TRANSIENT);
        store_step(in->m->store, q);
    }
    free(text);
}

static void keep_same_number(struct input *in, const char *key, int is_first)
{
    static const char sql[] = "DELETE FROM meta WHERE key = ?1 AND value IS NOT ?2";
    int64_t value = db_meta_int(in->db, key, INT64_MIN);
    if (is_first && value != INT64_MIN)
        store_meta_int(in->m->store, key, value);
    sqlite3_stmt *q = is_first ? NULL : store_statement(in->m->store, sql);
    if (q) {
        sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
        sqlite3_bind_int64(q, 2, value);
        store_step(in->m->store, q);
    }
}

static void keep_text(struct text_map *map, const char *text)
{
    uint32_t *slot = text && *text ? text_map_slot(map, text, strlen(text)) : NULL;
    if (slot && !*slot)
        *slot = (uint32_t)text_map_count(map);
}

/* "a, b and 3 more", in the order of the recordings. */
static void join(const struct text_map *map, struct buf *out)
{
    enum { SHOWN = 8 };
    uint32_t count = (uint32_t)text_map_count(map);
    const char *shown[SHOWN] = {NULL};
    for (struct map_entry *e = NULL; (e = map_next(&map->map, e));) {
        const uint32_t *slot = (const uint32_t *)(uintptr_t)e->value;
        if (*slot - 1 < SHOWN)
            shown[*slot - 1] = text_map_key(slot);
    }
    for (uint32_t i = 0; i < count && i < SHOWN; i++)
        buf_printf(out, "%s%s", i ? ", " : "", shown[i] ? shown[i] : "?");
    if (count > SHOWN)
        buf_printf(out, " and %u more", count - SHOWN);
}

static void add_facts(struct input *in)
{
    struct merge *m = in->m;
    int is_first = m->recording_count++ == 0;
    char *host = db_meta_text(in->db, "host"), *command = db_meta_text(in->db, "command"),
         *partial = db_meta_text(in->db, "partial");
    size_t hosts = text_map_count(&m->hosts);
    keep_text(&m->hosts, host);
    keep_text(&m->commands, command);
    if (text_map_count(&m->hosts) > hosts) { /* what another one has is beside it */
        int64_t bytes = db_int(in->db, "SELECT total_bytes FROM device WHERE device_id = 0", 0);
        m->host_bytes = bytes > 0 && m->host_bytes >= 0 ? wrap_add(m->host_bytes, bytes) : -1;
    }
    for (size_t i = 0; i < sizeof same_texts / sizeof *same_texts; i++)
        keep_same(in, same_texts[i], is_first);
    for (size_t i = 0; i < sizeof same_numbers / sizeof *same_numbers; i++)
        keep_same_number(in, same_numbers[i], is_first);
    m->event_count = wrap_add(m->event_count, db_meta_int(in->db, "event_count", 0));
    if (partial || in->source->running)
        buf_printf(&m->partial, "%s%s: %s", m->partial.length ? "; " : "", in->source->path,
                   partial ? partial : in->source->running);
    free(host);
    free(command);
    free(partial);
}

static void write_facts(struct merge *m)
{
    struct buf text = BUF(1 << 16);
    uint32_t commands = (uint32_t)text_map_count(&m->commands);
    store_meta_text(m->store, "format", "memprof");
    store_meta_text(m->store, "writer_version", build_version);
    store_meta_text(m->store, "state", "recorded");
    store_meta_text(m->store, "events_kept", "none");
    store_meta_int(m->store, "start_unix_ns", m->options.start_unix_ns);
    store_meta_int(m->store, "duration_ns", m->options.span_ns);
    store_meta_int(m->store, "event_count", m->event_count);
    store_meta_int(m->store, "merged", m->last_id[MERGE_RECORDING]);
    store_meta_text(m->store, "merged_clock",
                    m->options.align          ? m->options.align
                    : m->options.is_one_clock ? "one"
                                              : "several");
    join(&m->hosts, &text);
    if (text.length)
        store_meta_text(m->store, "host", buf_text(&text));
    buf_reset(&text);
    join(&m->commands, &text);
    if (commands)
        store_meta_text(m->store, "command", buf_text(&text));
    buf_free(&text);
    if (m->partial.length)
        store_meta_text(m->store, "partial", buf_text(&m->partial));
    sqlite3_stmt *q =
        m->host_bytes > 0 ? store_statement(m->store, "UPDATE device SET total_bytes = ? WHERE device_id = 0") : NULL;
    if (q) {
        sqlite3_bind_int64(q, 1, m->host_bytes);
        store_step(m->store, q);
    }
}

/* --- adding and closing ------------------------------------------------------------------------------------------ */

static void free_input(struct input *in)
{
    for (int i = 0; i < MERGE_IDS; i++) {
        free(in->of[i].ids.ids);
        free(in->of[i].to);
    }
    packed_close(in->packed);
    free(in);
}

/* Of the recording that was read last. */
static void say_partial(struct merge *m, const char *text)
{
    static const char sql[] = "UPDATE recording SET partial = coalesce(partial, ?) WHERE recording_id = ?";
    sqlite3_stmt *q = store_statement(m->store, sql);
    sqlite3_bind_text(q, 1, text, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(q, 2, m->last_id[MERGE_RECORDING]);
    store_step(m->store, q);
}

int merge_add(struct merge *m, sqlite3 *db, const struct merge_source *source, struct error *err)
{
    struct input *in = xcalloc(1, sizeof *in);
    in->m = m;
    in->db = db;
    in->source = source;
    in->packed = packed_open(db);
    merge_devices(in);
    merge_processes(in);
    merge_names(in);
    merge_stacks(in);
    merge_rows(in);
    merge_totals(in);
    merge_timeline(in);
    add_facts(in);
    int rc = in->rc;
    if (rc) {
        const char *why = text_without_path(in->err.text, source->path);
        *err = in->err;
        buf_printf(&m->partial, "%s%s: %s", m->partial.length ? "; " : "", source->path, why);
        say_partial(m, why);
    }
    free_input(in);
    store_commit(m->store);
    return rc;
}

static int finish(struct merge *m, struct error *err)
{
    static const char why[] = "UPDATE meta SET value = 'of several recordings the events are not merged' WHERE key = "
                              "'own_peak_incomplete'";
    sqlite3 *db = NULL;
    struct finish_options options = {.is_named = 1};
    int rc = db_open_write(m->temporary, &db, err);
    if (rc == 0)
        rc = db_exec(db, "PRAGMA synchronous = OFF", err);
    if (rc == 0)
        rc = finish_database(db, &options, err);
    if (rc == 0)
        rc = db_exec(db, why, err);
    sqlite3_close(db);
    return rc;
}

int merge_close(struct merge *m, char **output, struct error *err)
{
    merge_names_end(m);
    merge_stacks_end(m);
    merge_looks_end(m);
    merge_timeline_end(m);
    merge_totals_end(m);
    write_facts(m);
    free_merge(m); /* what comes next needs the memory */
    int rc = store_close(m->store, err);
    m->store = NULL;
    if (rc == 0)
        rc = finish(m, err);
    if (rc == 0)
        rc = move_to_output(m->temporary, m->output, output, err);
    return rc;
}

/* --- one recording ----------------------------------------------------------------------------------------------- */

/* What is opened is the file itself, and all of it is in that file. */
static int is_plain_file(sqlite3 *db)
{
    const char *path = sqlite3_db_filename(db, "main");
    return path && *path && db_int(db, "SELECT journal_mode <> 'wal' FROM pragma_journal_mode", 0);
}

/* Closing the file here ends SQLite's lock on it, which nothing needs any more. */
static int copy_bytes(const char *from, const char *to, struct error *err)
{
    char block[1 << 16];
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), code = 0;
    ssize_t got = in < 0 || out < 0 ? -1 : 1;
    while (got > 0 && (got = read(in, block, sizeof block)) > 0)
        for (ssize_t done = 0, put; done < got; done += put)
            if ((put = write(out, block + done, (size_t)(got - done))) < 0) {
                got = -1;
                break;
            }
    if (got < 0)
        code = errno;
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) && !code)
        code = errno;
    return code ? error_set(err, code, "%s: %s", to, strerror(code)) : 0;
}

static int copy_pages(sqlite3 *db, const char *temporary, struct error *err)
{
    sqlite3 *copy = NULL;
    int rc = 0;
    if (sqlite3_open_v2(temporary, &copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
        rc = db_error(copy, err);
    sqlite3_backup *backup = rc ? NULL : sqlite3_backup_init(copy, "main", db, "main");
    if (rc == 0 && (!backup || sqlite3_backup_step(backup, -1) != SQLITE_DONE))
        rc = db_error(copy, err);
    sqlite3_backup_finish(backup);
    sqlite3_close(copy);
    return rc;
}

int merge_copy(sqlite3 *db, const char *path, char **output, struct error *err)
{
    int rc = check_output(path, err);
    if (rc)
        return rc;
    char *temporary = merge_file(path);
    rc = is_plain_file(db) ? copy_bytes(sqlite3_db_filename(db, "main"), temporary, err)
                           : copy_pages(db, temporary, err);
    if (rc == 0)
        rc = move_to_output(temporary, path, output, err);
    if (rc)
        remove_temporary(temporary);
    free(temporary);
    return rc;
}
