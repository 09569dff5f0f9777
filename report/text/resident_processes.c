#include "resident_processes.h"

#include "../../common/db.h"
#include "../print/listing.h"
#include "../query/program_name.h"

#define SQL_OF(name)                                                                                                   \
    "WITH seen AS (SELECT v.*, l.present_bytes AS last_bytes, l.time_ns AS last_ns, " PROGRAM_TITLE(                   \
        "v.process_id") " AS title FROM v_resident_process v LEFT JOIN resident_scan l ON l.process_id = "             \
                        "v.process_id "                                                                                \
                        "AND l.is_last) "                                                                              \
                        "SELECT process_id, resident_bytes, block_bytes, shared_memory_bytes, "                        \
                        "inherited_bytes, file_bytes, other_bytes, time_ns, last_bytes, last_ns, pid, command, "       \
                        "title, " name ", count(*) OVER () FROM seen WHERE ?1 IS ?1 "                                  \
                        "ORDER BY resident_bytes DESC, process_id LIMIT iif(?2 > 0, ?2, -1)"

int resident_processes_list(sqlite3 *db, int64_t top, struct record *document, struct error *err)
{
    static const struct column columns[] = {
        COLUMN("process_id", NULL, NUMBER),
        COLUMN("resident_bytes", "resident", BYTES, .place = 1),
        COLUMN("block_bytes", "its blocks", BYTES, .place = 2),
        COLUMN("shared_memory_bytes", "shared\nmemory", BYTES, .place = 3),
        COLUMN("inherited_bytes", "inherited", BYTES, .place = 4),
        COLUMN("file_bytes", "files", BYTES, .place = 5),
        COLUMN("other_bytes", "other", BYTES, .place = 6),
        COLUMN("time_ns", "at", NS, .place = 7),
        COLUMN("last_bytes", "last look", BYTES, .place = 8, .none = "-"),
        COLUMN("last_ns", "at", NS, .place = 9, .none = "-"),
        COLUMN("pid", "pid", NUMBER, .place = 10),
        COLUMN("command", NULL, TEXT),
        COLUMN("title", NULL, TEXT),
        COLUMN(NULL, "command", TEXT, .place = 11, .cut = TEXT_CUT_RIGHT),
    };
    const char *sql = document->out->width > 0 ? SQL_OF(PROGRAM_PROCESS) : SQL_OF(PROGRAM_PROCESS_CUT);
    int64_t all;
    if (document->out->format == REPORT_CSV || db_int(db, "SELECT count(*) FROM v_resident_process", 0) < 2)
        return 0;
    struct listing *l = listing_open_in(document, "resident_processes", columns, COLUMN_COUNT_OF(columns), NULL);
    int rc = listing_query(l, db, sql, NULL, top, &all, err);
    if (rc == 0)
        listing_print_under(l, "Resident memory of each process, which together are what was looked at", all);
    listing_close(l);
    return rc;
}
