#include "../../common/db.h"
#include "failure.h"
#include "rules.h"

#include <stdlib.h>

#define SHOWN 3

/* unlisted: a sentence of those that no row is of; empty: there are none. */
static void find_failure(struct rules *r, sqlite3_stmt *s, int is_first, const char *unlisted)
{
    char total[UNITS_TEXT];
    struct finding *f = rule_finding(r, db_text(s, 3));
    f->time_ns = sqlite3_column_int64(s, 0);
    f->bytes = rule_amount(s, 1);
    finding_say(f, "At %s an allocation of %s on %s", units_ns(r->a, f->time_ns),
                units_bytes(r->b, sqlite3_column_int64(s, 1)), f->device);
    if (sqlite3_column_type(s, 7) != SQLITE_NULL) {
        char *function = xstrdup(db_text(s, 6));
        finding_say(f, " by ");
        finding_code(f, function, db_text(s, 7), sqlite3_column_int64(s, 8));
        free(function);
    }
    if (sqlite3_column_int64(s, 10) > 1)
        finding_say(f, " failed, the last%s of %s alike%s,", *unlisted ? " listed" : "",
                    units_count(r->d, sqlite3_column_int64(s, 10)), *unlisted ? " or more" : "");
    else
        finding_say(f, " failed,");
    finding_say(f, " with %s in use", units_bytes(r->c, sqlite3_column_int64(s, 2)));
    if (sqlite3_column_type(s, 5) != SQLITE_NULL)
        finding_say(f, " of the device's %s", units_bytes(r->d, sqlite3_column_int64(s, 5)));
    if (sqlite3_column_type(s, 4) != SQLITE_NULL)
        finding_say(f, " (%s free)", units_bytes(total, sqlite3_column_int64(s, 4)));
    struct buf bound = BUF(256);
    if (sqlite3_column_int(s, 9)) {
        failure_bound(r->db, sqlite3_column_int64(s, 1), sqlite3_column_int64(s, 12), &bound);
        f->title = "Asked for more than there is";
        finding_say(f, ": %s", buf_text(&bound));
    } else {
        failure_limit(r->db, f->device, sqlite3_column_int64(s, 12), sqlite3_column_int64(s, 13), &bound);
        finding_say(f, "%s", buf_text(&bound));
    }
    buf_free(&bound);
    finding_say(f, ".%s%s", is_first && *unlisted ? " " : "", is_first ? unlisted : "");
    finding_look(f, FINDING_MOMENT, f->time_ns, NULL, "Who held it then");
}

/* The last ones: what the program ended on is among them. A line that tries again and again is one. */
void find_failures(struct rules *r)
{
    int64_t count = db_int(r->db, "SELECT count(*) FROM v_oom WHERE NOT is_handled", 0);
    struct buf unlisted = BUF(1 << 10);
    sqlite3_stmt *s =
        rule_query(r, "SELECT time_ns, size_bytes, active_bytes, device, device_free_bytes, "
                      "device_total_bytes, function, file, line, is_impossible, count(*), max(oom_id), "
                      "address_limit_bytes, own_address_bytes FROM v_oom WHERE "
                      "NOT is_handled GROUP BY device, size_bytes, coalesce(file || ':' || line, function, oom_id) "
                      "ORDER BY max(oom_id) DESC LIMIT ?");
    if (s)
        sqlite3_bind_int(s, 1, SHOWN);
    failure_unlisted(r->db, &unlisted);
    for (int nth = 0; s && sqlite3_step(s) == SQLITE_ROW; nth++) {
        char all[UNITS_TEXT + 32];
        find_failure(r, s, nth == 0, buf_text(&unlisted));
        if (nth || count <= SHOWN)
            continue;
        snprintf(all, sizeof all, "All %s that %s", units_count(r->a, count),
                 unlisted.length ? "are listed" : "failed");
        finding_look(&r->findings->item[r->findings->count - 1], FINDING_SECTION, 0, "failures", all);
    }
    sqlite3_finalize(s);
    buf_free(&unlisted);
}
