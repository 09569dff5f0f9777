#include "../../common/db.h"
#include "rules.h"

/* Segments that a few blocks of one line keep: at their device's peak of reserved bytes, where others had left them
 * before; else when they ended. ?1: the end of the run;
 * ?3: of the host's heap blocks are missing. */
static const char sql[] =
    /* the largest segments, each at up to two instants */
    "WITH g AS MATERIALIZED (SELECT s.*, t.peak_reserved_ns AS peak_ns, coalesce(s.free_ns, ?1) AS end_ns FROM segment "
    "s JOIN total t ON t.device_id = s.device_id AND t.kind = 'all' WHERE s.size_bytes >= 1048576 AND NOT (s.kind = "
    "'heap' AND ?3) ORDER BY s.size_bytes DESC LIMIT 200), "
    "i AS (SELECT *, end_ns - 1 AS at_ns, 0 AS is_peak FROM g UNION ALL SELECT *, peak_ns, 1 FROM g WHERE alloc_ns <= "
    "peak_ns AND end_ns > peak_ns), "
    /* what lived in them then */
    "p AS (SELECT i.*, count(*) AS pin_count, sum(b.size_bytes) AS pin_bytes, min(x.site_id) AS site_id, "
    "min(coalesce(sl.line_id, -x.site_id)) AS line_id FROM i JOIN block b ON b.device_id = i.device_id AND "
    "b.process_id = i.process_id AND b.address >= i.address AND b.address < i.address + i.size_bytes AND b.alloc_ns <= "
    "i.at_ns AND coalesce(b.free_ns, ?1 + 1) > i.at_ns JOIN site x ON x.stack_id = b.stack_id AND x.device_id = "
    "b.device_id AND x.kind = b.kind LEFT JOIN %s sl ON sl.site_id = x.site_id GROUP BY i.segment_id, i.is_peak HAVING "
    "sum(b.size_bytes) * 4 < i.size_bytes AND count(DISTINCT coalesce(sl.line_id, -x.site_id)) = 1 AND (NOT i.is_peak "
    "OR (SELECT sum(o.size_bytes) FROM block o WHERE o.device_id = i.device_id AND o.process_id = i.process_id AND "
    "o.address >= i.address AND o.address < i.address + i.size_bytes AND o.alloc_ns >= i.alloc_ns AND o.free_ns <= "
    "i.at_ns) * 4 >= i.size_bytes)), "
    "q AS (SELECT *, max(is_peak) FROM p GROUP BY segment_id) "
    "SELECT sum(q.size_bytes), max(at_ns) + NOT is_peak, sum(pin_count), sum(pin_bytes), min(site_id), d.name, "
    "is_peak, count(*), t.peak_reserved_bytes FROM q JOIN device d ON d.device_id = q.device_id JOIN total t ON "
    "t.device_id = q.device_id AND t.kind = 'all' GROUP BY q.device_id, line_id, is_peak ORDER BY is_peak DESC, "
    "sum(q.size_bytes) - sum(pin_bytes) DESC LIMIT ?2";

static void say(struct rules *r, sqlite3_stmt *s)
{
    struct finding *f = rule_finding(r, db_text(s, 5));
    int64_t bytes = rule_amount(s, 0), at_ns = rule_amount(s, 1), pin_count = rule_amount(s, 2),
            pin_bytes = rule_amount(s, 3), segments = rule_amount(s, 7);
    int is_peak = sqlite3_column_int(s, 6);
    f->bytes = bytes;
    f->time_ns = at_ns;
    if (segments == 1)
        finding_say(f, "A segment of %s on %s could not be given back at %s because of ", units_bytes(r->a, bytes),
                    f->device, units_ns(r->b, at_ns));
    else
        finding_say(f, "%s segments of together %s on %s could not be given back at %s because of ",
                    units_count(r->a, segments), units_bytes(r->b, bytes), f->device, units_ns(r->c, at_ns));
    finding_say(f, "%s in %s block%s of ", units_bytes(r->a, pin_bytes), units_count(r->b, pin_count),
                pin_count == 1 ? "" : "s");
    finding_line(r, f, sqlite3_column_int64(s, 4), "end");
    finding_say(f, ".");
    f->next = "Allocate what stays apart from what goes, or before it.";
    finding_number(f, "segment_bytes", bytes);
    finding_number(f, "segment_count", segments);
    finding_number(f, "pin_bytes", pin_bytes);
    finding_number(f, "pin_count", pin_count);
    finding_saves_of(r, f, FINDING_RESERVED, FINDING_AT_MOST, is_peak ? bytes - pin_bytes : 0, rule_amount(s, 8));
}

void find_pins(struct rules *r)
{
    struct buf text = BUF(8192);
    buf_printf(&text, sql, rule_recorded_table(r->db));
    sqlite3_stmt *s = rule_query(r, buf_text(&text));
    buf_free(&text);
    if (s) {
        sqlite3_bind_int64(s, 1, r->duration_ns);
        sqlite3_bind_int64(s, 2, FINDINGS_MOST);
        sqlite3_bind_int64(s, 3, rule_has_unseen(r));
    }
    while (s && sqlite3_step(s) == SQLITE_ROW)
        say(r, s);
    sqlite3_finalize(s);
}
