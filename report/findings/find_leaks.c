#include "rules.h"

#define LARGE          (1 << 20)
#define TERMINAL_BYTES (4 << 20) /* below, most that is live is what libraries and interpreters keep */

/* The end of a program in Python is where its interpreter began to take itself down. */
static void say_teardown(struct rules *r, struct finding *f)
{
    sqlite3_stmt *s = rule_query(
        r, "SELECT sum(x.freed_bytes) FROM site_teardown x JOIN site s USING(site_id) WHERE s.device_id = ?");
    if (!s)
        return;
    sqlite3_bind_int64(s, 1, r->device->device_id);
    if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int64(s, 0) > 0) {
        f->title = "Live at the end";
        finding_say(f, " The end is where Python began to take itself down, which then freed %s of it.",
                    units_bytes(r->c, rule_amount(s, 0)));
    }
    sqlite3_finalize(s);
}

void find_leaks(struct rules *r)
{
    const struct rule_device *d = r->device;
    int64_t all;
    const struct rule_line *line = rule_top_line(r, LINE_END_BYTES, &all);
    if (!line || d->end_count <= 0)
        return;
    int64_t bytes = line->sums[LINE_END_BYTES], blocks = line->sums[LINE_END_COUNT];
    struct finding *f = rule_finding(r, d->name);
    f->bytes = d->end_bytes;
    f->is_large = d->end_bytes >= TERMINAL_BYTES;
    if (d->end_bytes < LARGE && rule_percent(d->end_bytes, d->peak_active) < 5)
        f->severity = FINDING_INFO;
    finding_say(f, "%s in %s block%s of %s %s still live at the end. %s: ", units_bytes(r->a, d->end_bytes),
                units_count(r->b, d->end_count), d->end_count == 1 ? "" : "s", d->name,
                d->end_count == 1 ? "was" : "were", bytes < all ? "The largest part" : "All of it");
    finding_line(r, f, line->site_id, "end");
    finding_say(f, ", %s in %s block%s.", units_bytes(r->c, bytes), units_count(r->d, blocks), blocks == 1 ? "" : "s");
    say_teardown(r, f);
    f->next = "Blocks kept on purpose until exit show here too: see the leaks table for each stack.";
}
