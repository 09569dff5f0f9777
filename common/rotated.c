#include "rotated.h"

#include "beside.h"
#include "buf.h"
#include "db.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int rotated_has_start(sqlite3 *db)
{
    return db_int(db, "SELECT count(*) FROM main.sqlite_schema WHERE name = 'site_start'", 0) != 0;
}

#define START "(SELECT value FROM meta WHERE key = 'part_start_ns')"
#define CHUNK "(SELECT value FROM meta WHERE key = 'part_chunk')"
#define EVENT "(SELECT value FROM meta WHERE key = 'part_first_event')"

int rotated_drop(sqlite3 *db, struct error *err)
{
    static const char sql[] =
        "DELETE FROM event_chunk WHERE chunk_id < " CHUNK ";"
        "DELETE FROM chunk_sum WHERE chunk_id < " CHUNK ";"
        "DELETE FROM chunk_free WHERE chunk_id < " CHUNK ";"
        "DELETE FROM keyframe WHERE event_count < " EVENT ";"
        "DELETE FROM segment WHERE free_ns < " START ";"
        "DELETE FROM block_name WHERE free_ns < " START ";"
        /* of each address the newest row still holds, unless it says that there is nothing */
        "DELETE FROM heap_range WHERE time_ns < " START " AND (size_bytes = 0 OR range_id NOT IN (SELECT max(range_id) "
        "FROM heap_range WHERE time_ns < " START " GROUP BY process_id, address) OR process_id IN (SELECT process_id "
        "FROM process WHERE end_ns < " START "));"
        "DELETE FROM policy_action WHERE time_ns < " START ";"
        "DELETE FROM mark WHERE coalesce(end_ns, iif(is_range, NULL, start_ns)) < " START ";"
        "DELETE FROM oom_had WHERE oom_id IN (SELECT oom_id FROM oom WHERE time_ns < " START ");"
        "DELETE FROM oom WHERE time_ns < " START ";"
        "DELETE FROM unmatched_free WHERE time_ns < " START ";"
        "DELETE FROM device_sample WHERE time_ns < " START ";"
        "UPDATE meta SET value = 'last' WHERE key = 'events_kept' AND value = 'all';"
        "DELETE FROM meta WHERE key = 'rotating'";
    return db_exec(db, sql, err);
}

/* The file is untrusted: only what a part of it may be called, "out.20261124-190312.347.db" of out.db, is looked for.
 */
static int is_part_name(sqlite3 *db, const char *name)
{
    static const char form[] = ".########-######.###";
    const char *path = sqlite3_db_filename(db, "main"), *slash = path ? strrchr(path, '/') : NULL;
    if (!slash)
        return 0;
    size_t stem = db_stem(slash + 1);
    if (strncmp(name, slash + 1, stem) != 0)
        return 0;
    name += stem;
    for (const char *f = form; *f; f++, name++)
        if (*f == '#' ? *name < '0' || *name > '9' : *name != *f)
            return 0;
    return strcmp(name, slash + 1 + stem) == 0;
}

/* NAME beside the database's own file. */
static char *path_beside(sqlite3 *db, const char *name)
{
    const char *path = sqlite3_db_filename(db, "main"), *slash = path ? strrchr(path, '/') : NULL;
    struct buf text = BUF(1 << 16);
    if (slash)
        buf_printf(&text, "%.*s", (int)(slash + 1 - path), path);
    buf_puts(&text, name);
    return buf_take(&text);
}

int rotated_recover(sqlite3 *db, struct error *err)
{
    char *name = db_meta_text(db, "rotating");
    if (!name || !is_part_name(db, name)) {
        free(name);
        return 0;
    }
    char *path = path_beside(db, name);
    struct buf half = BUF(1 << 16);
    int rc =
        access(path, F_OK) == 0 ? rotated_drop(db, err) : db_exec(db, "DELETE FROM meta WHERE key = 'rotating'", err);
    buf_printf(&half, "%s.part", path);
    unlink(buf_text(&half));
    beside_remove(buf_text(&half));
    buf_free(&half);
    free(path);
    free(name);
    return rc;
}
