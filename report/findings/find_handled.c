#include "failure.h"
#include "rules.h"

/* A probe with a fallback, another try that went well, a size that is an error: nothing was missing. */
void find_handled(struct rules *r)
{
    sqlite3_stmt *s =
        rule_query(r, "SELECT " FAILURE_HANDLED " FROM v_oom v WHERE is_handled GROUP BY is_impossible ORDER BY 1");
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        struct buf text = BUF(1 << 16);
        struct finding *f = rule_finding(r, "host");
        if (sqlite3_column_int(s, 0))
            f->title = "Asked for more than there is";
        f->bytes = rule_amount(s, 2);
        f->time_ns = rule_amount(s, 3);
        failure_handled(r->db, s, &text);
        finding_say(f, "%s", buf_text(&text));
        buf_free(&text);
    }
    sqlite3_finalize(s);
}
