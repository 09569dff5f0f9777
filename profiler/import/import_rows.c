/* Rows that every import has. */
#include "../../common/buf.h"
#include "../../common/build.h"
#include "../store/store.h"
#include "import_private.h"

#include <stdlib.h>
#include <unistd.h>

void import_meta(struct importing *i, const struct import_meta *meta)
{
    char *absolute = realpath(i->options->path, NULL);
    store_meta_text(i->store, "format", "memprof");
    store_meta_text(i->store, "writer_version", build_version);
    store_meta_text(i->store, "state", "recording");
    store_meta_int(i->store, "start_unix_ns", meta->start_unix_ns);
    store_meta_int(i->store, "duration_ns", meta->duration_ns);
    store_meta_text(i->store, "command", meta->command);
    store_meta_text(i->store, "options", "");
    store_meta_text(i->store, "imported_file", absolute ? absolute : i->options->path);
    store_meta_text(i->store, "imported_form", i->form->text);
    store_meta_int(i->store, "page_bytes", sysconf(_SC_PAGESIZE));
    store_meta_text(i->store, "clock", meta->clock);
    store_meta_text(i->store, "events_kept", meta->events_kept);
    store_meta_int(i->store, "event_count", 0);
    free(absolute);
}

void import_process(struct store *store, const char *exe, const char *command_line)
{
    sqlite3_stmt *q =
        store_statement(store, "INSERT INTO process(process_id, pid, start_kind, exe, command_line, start_ns)"
                               " VALUES(?, 0, 'exec', ?, ?, 0)");
    sqlite3_bind_int64(q, 1, IMPORT_PROCESS);
    sqlite3_bind_text(q, 2, exe, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(q, 3, command_line, -1, SQLITE_TRANSIENT);
    store_step(store, q);
}

void import_thread(struct store *store, uint32_t thread_id, int64_t tid, const char *name)
{
    sqlite3_stmt *q =
        store_statement(store, "INSERT INTO thread(thread_id, process_id, tid, name, start_ns) VALUES(?, ?, ?, ?, 0)");
    sqlite3_bind_int64(q, 1, thread_id);
    sqlite3_bind_int64(q, 2, IMPORT_PROCESS);
    sqlite3_bind_int64(q, 3, tid);
    sqlite3_bind_text(q, 4, name, -1, SQLITE_TRANSIENT);
    store_step(store, q);
}

void import_device(struct store *store, unsigned device_id, const char *name)
{
    sqlite3_stmt *q = store_statement(store, "INSERT INTO device(device_id, name) VALUES(?, ?)");
    sqlite3_bind_int64(q, 1, device_id);
    sqlite3_bind_text(q, 2, name, -1, SQLITE_TRANSIENT);
    store_step(store, q);
}

void import_hook(struct store *store, unsigned hook_id, const char *name, const char *kind)
{
    sqlite3_stmt *q = store_statement(store, "INSERT INTO hook VALUES(?, ?, ?)");
    sqlite3_bind_int64(q, 1, hook_id);
    sqlite3_bind_text(q, 2, name, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 3, kind, -1, SQLITE_STATIC);
    store_step(store, q);
}
