#include "forked.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/units.h"
#include "../print/listing.h"
#include "../query/program_name.h"
#include "../query/recorded.h"

#include <string.h>

#define LITTLE_SHARE 16 /* of what it inherited: what it allocated itself is little */

#define SQL_OF(name)                                                                                                   \
    "WITH f AS (SELECT *, " PROGRAM_TITLE(                                                                             \
        "v_fork.process_id") " AS title FROM v_fork) SELECT process_id, parent_id, "                                   \
                             "resident_bytes, shared_bytes, copied_bytes, own_bytes, file_bytes, time_ns, pid, "       \
                             "command, title, " name ", count(*) OVER () FROM f WHERE ?1 IS ?1 ORDER BY copied_bytes " \
                             "+ own_bytes DESC, process_id LIMIT iif(?2 > 0, "                                         \
                             "?2, -1)"

int forked_list(sqlite3 *db, int64_t top, struct record *document, struct error *err)
{
    static const struct column columns[] = {
        COLUMN("process_id", NULL, NUMBER),
        COLUMN("parent_id", NULL, NUMBER),
        COLUMN("resident_bytes", "resident", BYTES, .place = 1),
        COLUMN("inherited_shared_bytes", "inherited,\nstill shared", BYTES, .place = 2),
        COLUMN("inherited_copied_bytes", "inherited,\ncopied", BYTES, .place = 3),
        COLUMN("own_bytes", "its own", BYTES, .place = 4),
        COLUMN("file_bytes", "files, shared\nmemory", BYTES, .place = 5),
        COLUMN("time_ns", "at", NS, .place = 6),
        COLUMN("pid", "pid", NUMBER, .place = 7),
        COLUMN("command", NULL, TEXT),
        COLUMN("title", NULL, TEXT),
        COLUMN(NULL, "command", TEXT, .place = 8, .cut = TEXT_CUT_RIGHT),
    };
    const char *sql = document->out->width > 0 ? SQL_OF(PROGRAM_PROCESS) : SQL_OF(PROGRAM_PROCESS_CUT);
    int64_t all;
    if (document->out->format == REPORT_CSV)
        return 0;
    struct listing *l = listing_open_in(document, "forked", columns, COLUMN_COUNT_OF(columns), NULL);
    int rc = listing_query(l, db, sql, NULL, top, &all, err);
    if (rc == 0)
        listing_print_under(
            l,
            "Resident memory of forked processes, by what each costs: its copied pages and its own, each at one look",
            all);
    listing_close(l);
    return rc;
}

/* "of 73 MiB resident at 190 ms 48 MiB are ..." */
static void say_pages(struct buf *line, sqlite3_stmt *s, int64_t alloc_bytes)
{
    char text[UNITS_TEXT];
    double inherited = (double)sqlite3_column_int64(s, 4) + (double)sqlite3_column_int64(s, 5);
    int is_little = (double)alloc_bytes * LITTLE_SHARE < inherited;
    buf_printf(line, ": it allocated %s%s itself", alloc_bytes > 0 && is_little ? "only " : "",
               alloc_bytes > 0 ? units_bytes(text, alloc_bytes) : "nothing");
    buf_printf(line, " and inherited %s", units_bytes(text, (int64_t)inherited));
    buf_printf(line, ". Of %s resident", units_bytes(text, sqlite3_column_int64(s, 3)));
    buf_printf(line, " at %s", units_ns(text, sqlite3_column_int64(s, 2)));
    buf_printf(line, " %s were inherited and still shared (no cost)", units_bytes(text, sqlite3_column_int64(s, 4)));
    buf_printf(line, ", %s inherited and copied", units_bytes(text, sqlite3_column_int64(s, 5)));
    buf_printf(line, ", %s its own", units_bytes(text, sqlite3_column_int64(s, 6)));
    buf_printf(line, ", %s files and shared memory", units_bytes(text, sqlite3_column_int64(s, 7)));
}

/* Its newest image: one that executed another program since is not its parent's copy any more. */
void forked_print(sqlite3 *db, const struct report_out *out)
{
    sqlite3_stmt *s = NULL;
    struct error err;
    char text[UNITS_TEXT];
    struct buf line = BUF(1 << 12);
    if (db_prepare(db,
                   "SELECT q.pid, p.start_kind, v.time_ns, v.resident_bytes, v.shared_bytes, v.copied_bytes, "
                   "v.own_bytes, v.file_bytes FROM process p LEFT JOIN main.process q ON q.process_id = p.parent_id "
                   "LEFT JOIN v_fork v ON v.process_id = p.process_id" ORDER_BY_LAST_RECORDED,
                   &s, &err) == 0 &&
        sqlite3_step(s) == SQLITE_ROW && strcmp(db_text(s, 1), "fork") == 0) {
        int64_t alloc_bytes =
            db_int(db, "SELECT CAST(total(alloc_bytes) AS INTEGER) FROM v_total WHERE kind = 'all'", 0);
        buf_puts(&line, "Forked");
        if (sqlite3_column_type(s, 0) != SQLITE_NULL)
            buf_printf(&line, " from %lld", (long long)sqlite3_column_int64(s, 0));
        if (sqlite3_column_type(s, 2) != SQLITE_NULL)
            say_pages(&line, s, alloc_bytes);
        else
            buf_printf(&line, ": it allocated %s itself; what it inherited was not looked at",
                       alloc_bytes > 0 ? units_bytes(text, alloc_bytes) : "nothing");
        table_prose(out, TABLE_PLAIN, buf_text(&line));
    }
    sqlite3_finalize(s);
    buf_free(&line);
}
