#include "ending.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/units.h"
#include "merged.h"
#include "torn_sites.h"

#include <stdio.h>
#include <string.h>

/* The first process in its last image. */
#define FIRST                                                                                                          \
    " FROM process p WHERE process_id IN (SELECT process_id FROM v_image WHERE first_id = (SELECT min(process_id) "    \
    "FROM process)) ORDER BY process_id DESC LIMIT 1"

/* Of a merged file: the first process of each recording, a failed one first, and how many ended as it did. */
#define FIRST_OF_EACH                                                                                                  \
    " FROM process p WHERE process_id IN (SELECT max(process_id) FROM v_image WHERE first_id IN (SELECT "              \
    "min(process_id) FROM recording_process GROUP BY recording_id) GROUP BY first_id) ORDER BY end_kind IS 'exit' "    \
    "AND exit_status IS 0, process_id LIMIT 1"

int ending_text(sqlite3 *db, char text[ENDING_TEXT])
{
    sqlite3_stmt *s = NULL;
    int failed = 0;
    int64_t merged = merged_count(db);
    *text = 0;
    if (db_prepare(db,
                   merged ? "SELECT end_kind, exit_status, exit_signal, count(*) OVER (PARTITION BY end_kind, "
                            "exit_status, exit_signal)" FIRST_OF_EACH
                          : "SELECT end_kind, exit_status, exit_signal" FIRST,
                   &s, NULL) == 0 &&
        sqlite3_step(s) == SQLITE_ROW) {
        const char *kind = db_text(s, 0);
        int status = sqlite3_column_int(s, 1), number = sqlite3_column_int(s, 2);
        snprintf(text, ENDING_TEXT, "not seen to end");
        if (!strcmp(kind, "exit")) {
            snprintf(text, ENDING_TEXT, "exit status %d", status);
            failed = status != 0;
        } else if (!strcmp(kind, "signal")) {
            snprintf(text, ENDING_TEXT, "killed by signal %d (%s)", number, strsignal(number));
            failed = 1;
        }
        size_t length = strlen(text);
        if (merged)
            snprintf(text + length, ENDING_TEXT - length, ", %lld of %lld", (long long)sqlite3_column_int64(s, 3),
                     (long long)merged);
    }
    sqlite3_finalize(s);
    return failed;
}

int ending_is_killed(sqlite3 *db)
{
    return db_int(db, "SELECT end_kind = 'signal'" FIRST, 0) != 0;
}

/* As enum ending_of_blocks has them. That the recorder stopped in a process is a cut, too. */
#define OF_PROCESS                                                                                                     \
    "CASE WHEN p.end_kind = 'signal' THEN 1 WHEN p.end_ns IS NULL OR p.process_id IN (SELECT c.process_id FROM "       \
    "counter c WHERE c.name = 'stopped' AND c.value > 0) THEN 2 WHEN p.end_kind = 'unknown' THEN 3 ELSE 0 END"

/* The accounts by thread say whose blocks they are. Where there are none, as the first process ended. */
enum ending_of_blocks ending_of_blocks(sqlite3 *db, int64_t device_id)
{
    sqlite3_stmt *s = NULL;
    int64_t found = -1;
    if (db_prepare(
            db,
            "SELECT " OF_PROCESS " AS ending FROM account a JOIN thread t ON t.thread_id = a.key_id JOIN "
            "process p USING(process_id) WHERE a.scope = 'thread' AND a.inclusive = 0 AND ?1 IN (-1, a.device_id) AND "
            "a.kind = 'all' AND a.end_bytes > 0 GROUP BY ending ORDER BY total(a.end_bytes) DESC LIMIT 1",
            &s, NULL) == 0) {
        sqlite3_bind_int64(s, 1, device_id);
        if (sqlite3_step(s) == SQLITE_ROW)
            found = sqlite3_column_int64(s, 0);
    }
    sqlite3_finalize(s);
    return (enum ending_of_blocks)(found >= 0 ? found : db_int(db, "SELECT " OF_PROCESS FIRST, ENDING_RETURNED));
}

/* A process ends in its last image; the others are there for the blocks that went with them. */
void ending_count(sqlite3 *db, int64_t device_id, int64_t counts[ENDINGS])
{
    sqlite3_stmt *s = NULL;
    for (int i = 0; i < ENDINGS; i++)
        counts[i] = 0;
    if (db_prepare(
            db,
            "SELECT " OF_PROCESS " AS ending, count(*) FROM (SELECT max(i.process_id) AS process_id FROM account "
            "a JOIN thread t ON t.thread_id = a.key_id JOIN v_image i USING(process_id) WHERE a.scope = "
            "'thread' AND a.inclusive = 0 AND ?1 IN (-1, a.device_id) AND a.kind = 'all' AND a.end_bytes > 0 GROUP BY "
            "i.first_id) JOIN process p USING(process_id) GROUP BY ending",
            &s, NULL) == 0) {
        sqlite3_bind_int64(s, 1, device_id);
        while (sqlite3_step(s) == SQLITE_ROW)
            counts[sqlite3_column_int(s, 0)] = sqlite3_column_int64(s, 1);
    }
    sqlite3_finalize(s);
}

int64_t ending_duration_ns(sqlite3 *db, int64_t unknown)
{
    int64_t duration_ns = db_meta_int(db, "duration_ns", 0);
    return duration_ns > 0 ? duration_ns : db_int(db, "SELECT max(time_ns + width_ns) FROM timeline", unknown);
}

void ending_killed_text(const int64_t counts[ENDINGS], struct buf *out)
{
    char text[2][UNITS_TEXT];
    const int64_t killed = counts[ENDING_KILLED];
    int64_t all = 0;
    for (int i = 0; i < ENDINGS; i++)
        all += counts[i];
    buf_printf(out, "%s%s%s process%s %s killed", units_count(text[0], killed), killed < all ? " of " : "",
               killed < all ? units_count(text[1], all) : "", all == 1 ? "" : "es", killed == 1 ? "was" : "were");
}

int ending_is_running(sqlite3 *db)
{
    return db_int(db,
                  "SELECT value = 'recording' AND NOT EXISTS (SELECT 1 FROM meta WHERE key = 'partial') FROM meta "
                  "WHERE key = 'state'",
                  0) != 0;
}

char *ending_running_text(sqlite3 *db)
{
    char saved[UNITS_TEXT];
    struct buf text = BUF(1024);
    if (!ending_is_running(db))
        return NULL;
    units_ns(saved, db_meta_int(db, "duration_ns", 0));
    buf_printf(&text,
               "still being recorded: what came after %s is not there yet, and live at the end is what was live then",
               saved);
    return buf_take(&text);
}

int ending_is_teardown(sqlite3 *db, int64_t pid)
{
    sqlite3_stmt *s = NULL;
    int found = 0;
    if (db_prepare(db, "SELECT 1 FROM teardown t JOIN main.process p USING(process_id) WHERE ?1 IN (0, p.pid)", &s,
                   NULL) == 0) {
        sqlite3_bind_int64(s, 1, pid);
        found = sqlite3_step(s) == SQLITE_ROW;
    }
    sqlite3_finalize(s);
    return found;
}

int ending_has_others(sqlite3 *db)
{
    return db_int(db,
                  "SELECT EXISTS (SELECT 1 FROM process WHERE end_kind IS NOT 'exec' AND process_id NOT IN (SELECT "
                  "process_id FROM teardown))",
                  0) == 1;
}

void ending_teardown_text(sqlite3 *db, struct buf *out)
{
    char bytes[UNITS_TEXT], count[UNITS_TEXT];
    if (!ending_is_teardown(db, 0))
        return;
    const struct torn torn = torn_sites_sum(db);
    buf_printf(out, "%swhere Python began to take itself down", ending_has_others(db) ? "of Python's processes " : "");
    if (torn.count > 0)
        buf_printf(out, ", which then freed %s in %s block%s", units_bytes(bytes, torn.bytes),
                   units_count(count, torn.count), torn.count == 1 ? "" : "s");
}
