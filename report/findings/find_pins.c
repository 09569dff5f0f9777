#include "../../common/db.h"
#include "rules.h"

/* A segment whose last phase is one line's. */
void find_pins(struct rules *r)
{
    struct buf sql = BUF(4096);
    buf_printf(
        &sql,
        "SELECT g.size_bytes, coalesce(g.free_ns, ?1), count(*), sum(b.size_bytes), min(s.site_id), count(DISTINCT "
        "coalesce(sl.line_id, s.site_id)), d.name "
        "FROM (SELECT * FROM segment ORDER BY size_bytes DESC LIMIT 200) g JOIN device d ON d.device_id = g.device_id "
        "JOIN block b ON b.device_id = g.device_id AND b.process_id = g.process_id AND b.address >= g.address AND "
        "b.address < g.address + g.size_bytes AND b.alloc_ns < coalesce(g.free_ns, ?1) AND coalesce(b.free_ns, ?1) >= "
        "coalesce(g.free_ns, ?1) "
        "JOIN site s ON s.stack_id = b.stack_id AND s.device_id = b.device_id AND s.kind = b.kind LEFT JOIN %s "
        "sl ON sl.site_id = s.site_id "
        "WHERE g.size_bytes >= 1048576 GROUP BY g.segment_id "
        "HAVING sum(b.size_bytes) * 4 < g.size_bytes AND count(DISTINCT coalesce(sl.line_id, s.site_id)) = 1 ORDER BY "
        "g.size_bytes - sum(b.size_bytes) DESC LIMIT 2",
        rule_recorded_table(r->db));
    sqlite3_stmt *s = rule_query(r, buf_text(&sql));
    buf_free(&sql);
    if (s)
        sqlite3_bind_int64(s, 1, r->duration_ns);
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        struct finding *f = rule_finding(r, db_text(s, 6));
        f->bytes = rule_amount(s, 0);
        f->time_ns = rule_amount(s, 1);
        finding_say(f, "A segment of %s on %s could not be given back at %s because of %s in %s block%s of ",
                    units_bytes(r->a, sqlite3_column_int64(s, 0)), f->device,
                    units_ns(r->b, sqlite3_column_int64(s, 1)), units_bytes(r->c, sqlite3_column_int64(s, 3)),
                    units_count(r->d, sqlite3_column_int64(s, 2)), sqlite3_column_int64(s, 2) == 1 ? "" : "s");
        finding_line(r, f, sqlite3_column_int64(s, 4), "end");
        finding_say(f, ".");
    }
    sqlite3_finalize(s);
}
