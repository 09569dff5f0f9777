#include "rules.h"

/* A probe with a fallback, or another try that went well: nothing was missing. */
void find_handled(struct rules *r)
{
    sqlite3_stmt *s = rule_query(r, "SELECT count(*), max(size_bytes), time_ns FROM v_oom WHERE is_handled");
    if (s && sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int64(s, 0) > 0) {
        int64_t count = sqlite3_column_int64(s, 0);
        struct finding *f = rule_finding(r, "host");
        f->bytes = rule_amount(s, 1);
        f->time_ns = rule_amount(s, 2);
        finding_say(f, "%s allocation%s failed on the host, %s%s at %s, and as much was had afterwards.",
                    units_count(r->a, count), count == 1 ? "" : "s", count == 1 ? "of " : "the largest of ",
                    units_bytes(r->b, sqlite3_column_int64(s, 1)), units_ns(r->c, sqlite3_column_int64(s, 2)));
    }
    sqlite3_finalize(s);
}
