#include "../../common/db.h"
#include "failure.h"
#include "rules.h"

/* What failed beyond what is listed: find_failures.c says it where it says anything. */
static void say_unlisted(struct rules *r, struct finding *f)
{
    struct buf text = BUF(1 << 10);
    if (!db_int(r->db, "SELECT EXISTS (SELECT 1 FROM v_oom WHERE NOT is_handled)", 0))
        failure_unlisted(r->db, &text);
    if (text.length)
        finding_say(f, " %s", text.data);
    buf_free(&text);
}

/* A probe with a fallback, another try that went well, a size that is an error: nothing was missing. */
void find_handled(struct rules *r)
{
    sqlite3_stmt *s =
        rule_query(r, "SELECT " FAILURE_HANDLED " FROM v_oom v WHERE is_handled GROUP BY is_impossible ORDER BY 1");
    for (int nth = 0; s && sqlite3_step(s) == SQLITE_ROW; nth++) {
        struct buf text = BUF(1 << 16);
        struct finding *f = rule_finding(r, "host");
        if (sqlite3_column_int(s, 0))
            f->title = "Asked for more than there is";
        f->bytes = rule_amount(s, 2);
        f->time_ns = rule_amount(s, 3);
        failure_handled(r->db, s, &text);
        finding_say(f, "%s", buf_text(&text));
        if (nth == 0)
            say_unlisted(r, f);
        buf_free(&text);
    }
    sqlite3_finalize(s);
}
