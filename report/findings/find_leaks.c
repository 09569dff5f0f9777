#include "../../common/db.h"
#include "../query/ending.h"
#include "../query/noise.h"
#include "../query/resident.h"
#include "rules.h"

#define LARGE          (1 << 20)
#define TERMINAL_BYTES (4 << 20) /* below, most that is live is what libraries keep */
#define THERE_SHARE    4         /* a part of what is live that is worth a word: what is on no page */

/* Untouched is no more than is live at the end: a site may have held more at the look. */
static const char live_sql[] =
    "SELECT site_id, stack_id, s.end_bytes, s.end_count, coalesce(x.freed_bytes, 0), min(coalesce(u.bytes, 0), "
    "s.end_bytes) FROM site s LEFT JOIN site_teardown x USING(site_id) LEFT JOIN (SELECT site_id, "
    "CAST(total(untouched_bytes) AS INTEGER) AS bytes FROM resident_site JOIN resident_scan USING(scan_id) WHERE "
    "is_last GROUP BY site_id) u USING(site_id) WHERE s.end_count > 0 ORDER BY site_id";

/* Adds to lines what is live at the end, but what `memprof leaks` counts apart. */
static int add_live(struct rules *r, struct walk *walk)
{
    sqlite3_stmt *s = rule_query(r, live_sql);
    size_t next = 0;
    int rc = 0, step = SQLITE_ERROR;
    while (s && rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
        int64_t site_id = sqlite3_column_int64(s, 0);
        struct walk_stack stack;
        rc = walk_stack(walk, sqlite3_column_int64(s, 1), &stack, r->err);
        if (rc || noise_is_library(&stack) || noise_is_interpreter(&stack))
            continue;
        for (int i = 0; i < LINE_SUMS - LINE_END_BYTES; i++)
            rule_add(r, &next, site_id, LINE_END_BYTES + (enum line_sum)i, rule_amount(s, 2 + i));
    }
    sqlite3_finalize(s);
    return rc ? rc : step == SQLITE_DONE ? 0 : db_error(r->db, r->err);
}

/* For all devices, once. */
static int load_ends(struct rules *r)
{
    struct walk *walk = NULL;
    if (r->has_ends)
        return 0;
    r->has_ends = 1;
    int rc = rule_lines(r);
    if (rc == 0)
        rc = walk_open(r->db, TREE_BOTH, &walk, r->err);
    if (rc == 0)
        rc = add_live(r, walk);
    walk_close(walk);
    return rc;
}

/* The end of a program in Python is where its interpreter began to take itself down. */
static void say_teardown(struct rules *r, struct finding *f)
{
    int64_t torn;
    rule_top_line(r, LINE_END_TORN_BYTES, &torn);
    if (torn <= 0)
        return;
    f->title = "Live at the end";
    finding_say(f, " The end is where Python began to take itself down, which then freed %s of it.",
                units_bytes(r->c, torn));
}

/* What is live when a process is killed, or when its recording is cut, was in use: no leak is told from it. */
static void say_end(struct rules *r, struct finding *f)
{
    const struct rule_device *d = r->device;
    static const struct {
        const char *title, *text, *next;
    } ends[] = {
        [ENDING_RETURNED] = {NULL, "still live at the end",
                             "Blocks kept on purpose until exit show here too: see the leaks table for each stack."},
        [ENDING_KILLED] = {"Live when it was killed", "live when the program was killed",
                           "It was in use then: what grows over the run, not this, tells a leak."},
        [ENDING_CUT] = {"Live where the recording ends", "live where the recording ends",
                        "It was in use then: what grows over the run, not this, tells a leak."},
    };
    enum ending_of_blocks ending = ending_of_blocks(r->db, d->device_id);
    f->next = ends[ending].next;
    if (ending != ENDING_RETURNED) {
        f->title = ends[ending].title;
        f->severity = FINDING_INFO;
    }
    /* more than there ever was at once is a sum over processes that ended one after another */
    finding_say(f, " %s%s", ends[ending].text,
                ending == ENDING_RETURNED && d->end_bytes > d->peak_active ? "s of their processes" : "");
}

void find_leaks(struct rules *r)
{
    const struct rule_device *d = r->device;
    int64_t all, count, untouched;
    if (load_ends(r))
        return;
    const struct rule_line *line = rule_top_line(r, LINE_END_BYTES, &all);
    if (!line)
        return;
    rule_top_line(r, LINE_END_COUNT, &count);
    rule_top_line(r, LINE_END_UNTOUCHED_BYTES, &untouched);
    int64_t bytes = line->sums[LINE_END_BYTES], blocks = line->sums[LINE_END_COUNT];
    struct finding *f = rule_finding(r, d->name);
    f->bytes = all;
    f->is_large = all >= TERMINAL_BYTES;
    if (all < LARGE)
        f->severity = FINDING_INFO;
    finding_say(f, "%s in %s block%s of %s %s", units_bytes(r->a, all), units_count(r->b, count), count == 1 ? "" : "s",
                d->name, count == 1 ? "was" : "were");
    say_end(r, f);
    if (d->end_count > count) /* the tables beside this sentence have these too */
        finding_say(f, ", beside %s in %s block%s that the C library and interpreters keep for themselves",
                    units_bytes(r->a, d->end_bytes - all), units_count(r->b, d->end_count - count),
                    d->end_count - count == 1 ? "" : "s");
    finding_say(f, ". %s: ", bytes < all ? "The largest part" : "All of it");
    finding_line(r, f, line->site_id, "end");
    finding_say(f, ", %s in %s block%s.", units_bytes(r->c, bytes), units_count(r->d, blocks), blocks == 1 ? "" : "s");
    if (untouched > all / THERE_SHARE && resident_last_is_whole(r->db))
        finding_say(f, " Of this, %s were on no page at the last look, and took no memory.",
                    units_bytes(r->a, untouched));
    say_teardown(r, f);
    finding_wrapper(r, f, line, CALLERS_OF_END);
}
