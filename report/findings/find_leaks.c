#include "../../common/db.h"
#include "../../common/kind.h"
#include "../query/ending.h"
#include "../query/noise.h"
#include "../query/program_name.h"
#include "../query/resident.h"
#include "../query/site_rows.h"
#include "rules.h"

#define LARGE          (1 << 20)
#define TERMINAL_BYTES (4 << 20)  /* below, most that is live is what libraries keep */
#define EVEN_BYTES     (64 << 10) /* of what came evenly over the run */
#define KEEPING_LINES  12 /* so many lines' blocks live at the end: a program that gives nothing back as it ends, */
#define KEEPING_SHARE  2  /* if they are that part of its peak */
#define THERE_SHARE    4  /* a part of what is live that is worth a word: what is on no page */

/* A value of few sites, by their ids, beside a list of all of them. */
struct beside {
    struct rules *r;
    sqlite3_stmt *s;
    int step;
};

static void beside_open(struct beside *b, struct rules *r, const char *sql)
{
    *b = (struct beside){r, rule_query(r, sql), SQLITE_ERROR};
    if (b->s)
        b->step = sqlite3_step(b->s);
}

static int64_t beside_value(struct beside *b, int64_t site_id)
{
    while (b->step == SQLITE_ROW && sqlite3_column_int64(b->s, 0) < site_id)
        b->step = sqlite3_step(b->s);
    return b->step == SQLITE_ROW && sqlite3_column_int64(b->s, 0) == site_id ? rule_amount(b->s, 1) : 0;
}

/* Returns 0 or the error that it met. */
static int beside_close(struct beside *b)
{
    int rc = b->step == SQLITE_ROW || b->step == SQLITE_DONE ? 0 : db_error(b->r->db, b->r->err);
    sqlite3_finalize(b->s);
    return rc;
}

/* The most that one process had at its end, and the part of it that can have been there: no more than its peak RSS,
 * where the kernel said that. Sums over processes that ended one after another were never in memory. */
static const char largest_sql[] =
    "SELECT bytes, CASE WHEN peak_rss_sampled = 0 AND ?1 = 0 THEN min(bytes, peak_rss_bytes) ELSE bytes END AS there, "
    "command_line, count(*) OVER (), peak FROM (SELECT max(process_id) AS process_id, CAST(total(a.end_bytes) AS "
    "INTEGER) AS bytes, CASE WHEN count(*) = count(a.own_peak_bytes) THEN CAST(total(a.own_peak_bytes) AS INTEGER) END "
    "AS peak FROM account a JOIN thread t ON t.thread_id = a.key_id JOIN v_image i USING(process_id) WHERE a.scope = "
    "'thread' AND a.inclusive = 0 AND a.kind = 'all' AND a.device_id = ?1 GROUP BY i.first_id HAVING bytes > 0) JOIN "
    "process USING(process_id) ORDER BY there DESC, process_id LIMIT 1";

enum { STACK, KIND, BYTES, COUNT, COLUMNS };
static const enum packed_column columns[COLUMNS] = {PACKED_site_stack_id, PACKED_site_kind, PACKED_site_end_bytes,
                                                    PACKED_site_end_count};

/* Adds to lines what is live at the end, but what `memprof leaks` counts apart. */
static int add_live(struct rules *r, struct noise *noise)
{
    struct site_rows rows;
    struct beside torn, untouched;
    int rc = site_rows_open(r->db, columns, COLUMNS, &rows, r->err);
    beside_open(&torn, r, "SELECT site_id, freed_bytes FROM site_teardown ORDER BY site_id");
    beside_open(&untouched, r,
                "SELECT site_id, CAST(total(untouched_bytes) AS INTEGER) FROM resident_site JOIN resident_scan "
                "USING(scan_id) WHERE is_last GROUP BY site_id ORDER BY site_id");
    while (rc == 0 && (rc = site_rows_next(&rows, r->err)) == 1) {
        rc = 0;
        if (site_rows_value(&rows, COUNT) <= 0)
            continue;
        rc = noise_of(noise, site_rows_value(&rows, STACK), r->err);
        if (rc == 0 && site_rows_value(&rows, KIND) == KIND_map)
            rc = noise_is_arena(noise, site_rows_value(&rows, STACK), r->err);
        if (rc) {
            rc = rc < 0 ? rc : 0;
            continue;
        }
        int64_t bytes = rule_sane(site_rows_value(&rows, BYTES));
        int64_t bare = beside_value(&untouched, rows.site_id);
        rule_add(r, rows.site_id, LINE_END_BYTES, bytes);
        rule_add(r, rows.site_id, LINE_END_COUNT, rule_sane(site_rows_value(&rows, COUNT)));
        rule_add(r, rows.site_id, LINE_END_TORN_BYTES, beside_value(&torn, rows.site_id));
        /* no more than is live at the end: a site may have held more at the look */
        rule_add(r, rows.site_id, LINE_END_UNTOUCHED_BYTES, bare < bytes ? bare : bytes);
        if (rule_is_even(r, rows.site_id)) {
            rule_add(r, rows.site_id, LINE_END_EVEN_BYTES, bytes);
            rule_add(r, rows.site_id, LINE_END_EVEN_COUNT, rule_sane(site_rows_value(&rows, COUNT)));
        }
    }
    int torn_rc = beside_close(&torn), untouched_rc = beside_close(&untouched);
    site_rows_close(&rows);
    return rc ? rc : torn_rc ? torn_rc : untouched_rc;
}

/* For all devices, once. */
static int load_ends(struct rules *r)
{
    struct walk *walk = NULL;
    struct noise *noise = NULL;
    if (r->has_ends)
        return 0;
    r->has_ends = 1;
    rule_growth(r);
    int rc = rule_lines(r);
    if (rc == 0)
        rc = walk_open(r->db, TREE_BOTH, &walk, r->err);
    if (rc == 0) {
        noise = noise_open(walk);
        rc = add_live(r, noise);
    }
    noise_close(noise);
    walk_close(walk);
    return rc;
}

struct largest {
    int64_t bytes, there_bytes, process_count; /* 0: not known */
    int64_t peak_bytes;                        /* no less than its peak: its threads' own ones; 0: not known */
    struct buf name;
};

/* A title that a program gave itself begins with its name: "nginx: worker process". */
static void name_process(struct buf *name, const char *command)
{
    size_t length = strcspn(command, " ");
    if (length > 1 && command[length] && command[length - 1] == ':')
        buf_add(name, command, length - 1);
    else
        program_name(name, command);
}

static void load_largest(struct rules *r, struct largest *largest)
{
    *largest = (struct largest){.name = BUF(4096)};
    sqlite3_stmt *s = rule_query(r, largest_sql);
    if (!s)
        return;
    sqlite3_bind_int64(s, 1, r->device->device_id);
    if (sqlite3_step(s) == SQLITE_ROW) {
        largest->bytes = rule_amount(s, 0);
        largest->there_bytes = rule_amount(s, 1);
        name_process(&largest->name, db_text(s, 2));
        largest->process_count = rule_amount(s, 3);
        largest->peak_bytes = rule_amount(s, 4);
    }
    sqlite3_finalize(s);
}

/* What of it can have been in memory at once. */
static int64_t weight(struct rules *r, int64_t all, int64_t untouched, const struct largest *largest)
{
    int64_t there = resident_last_is_whole(r->db) ? all - untouched : all;
    return largest->process_count && largest->there_bytes < there ? largest->there_bytes : there;
}

static void say_largest(struct rules *r, struct finding *f, int64_t all, const struct largest *largest)
{
    if (largest->process_count > 1 && largest->bytes < all)
        finding_say(f, "; of %s processes the largest, %s, had %s", units_count(r->a, largest->process_count),
                    buf_text(&largest->name), units_bytes(r->b, largest->bytes));
}

/* What of it took no memory. */
static void say_absent(struct rules *r, struct finding *f, int64_t all, int64_t untouched,
                       const struct largest *largest)
{
    if (untouched > all / THERE_SHARE && resident_last_is_whole(r->db))
        finding_say(f, " Of this, %s were on no page at the last look, and took no memory.",
                    units_bytes(r->a, untouched));
    else if (largest->process_count == 1 && all - largest->there_bytes > all / THERE_SHARE)
        finding_say(f, " Of this, %s or more took no memory: the peak RSS was %s.",
                    units_bytes(r->a, all - largest->there_bytes), units_bytes(r->b, largest->there_bytes));
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
        [ENDING_UNKNOWN] = {"Live where it ended", "live where the program ended",
                            "If it was killed, it was in use then: what grows over the run, not this, tells a leak."},
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

static void say_blocks(struct rules *r, struct finding *f, int64_t bytes, int64_t count)
{
    finding_say(f, "%s in %s block%s", units_bytes(r->a, bytes), units_count(r->b, count), count == 1 ? "" : "s");
}

static void say_line(struct rules *r, struct finding *f, const struct rule_line *line, enum line_sum bytes, int64_t all)
{
    finding_say(f, ". %s: ", line->sums[bytes] < all ? "The largest part" : "All of it");
    finding_line(r, f, line->site_id, "end");
    finding_say(f, ", ");
    say_blocks(r, f, line->sums[bytes], line->sums[bytes + 1]);
    finding_say(f, ".");
}

/* Runtimes and compilers end without giving back what they hold: of many lines, and much of the peak. Where it is not
 * known what was live when, nothing tells that from a leak. Python does take itself down. */
static int keeps_its_heap(struct rules *r, int64_t bytes, int64_t peak_bytes)
{
    const struct rule_device *d = r->device;
    uint32_t lines = 0;
    int64_t torn;
    rule_top_line(r, LINE_END_TORN_BYTES, &torn);
    for (uint32_t i = 0; i < r->line_count; i++)
        lines += r->lines[i].device_id == d->device_id && r->lines[i].sums[LINE_END_BYTES] > 0;
    return r->growth && torn == 0 && lines >= KEEPING_LINES && bytes >= peak_bytes / KEEPING_SHARE &&
           ending_of_blocks(r->db, d->device_id) == ENDING_RETURNED;
}

/* What a server leaks at each request comes as evenly as they do; a cache that is full, and a start, do not. */
static void find_even(struct rules *r)
{
    int64_t all, count;
    const struct rule_line *line = rule_top_line(r, LINE_END_EVEN_BYTES, &all);
    rule_top_line(r, LINE_END_EVEN_COUNT, &count);
    if (!line || all < EVEN_BYTES)
        return;
    struct finding *f = rule_finding(r, r->device->name);
    f->bytes = all;
    say_blocks(r, f, all, count);
    finding_say(f, " of %s came evenly over the run, and were still live at the end", r->device->name);
    say_line(r, f, line, LINE_END_EVEN_BYTES, all);
    f->next = "What is taken at each step and never given back looks like this.";
    if (line->sums[LINE_END_EVEN_BYTES] == line->sums[LINE_END_BYTES]) /* whose callers' parts are of all */
        finding_wrapper(r, f, line, CALLERS_OF_END);
}

static void find_kept(struct rules *r, const struct rule_line *line, int64_t all, int64_t count,
                      const struct largest *largest)
{
    find_even(r);
    struct finding *f = rule_finding(r, r->device->name);
    f->title = "Live at the end";
    f->severity = FINDING_INFO;
    f->is_fact = 1;
    f->bytes = all;
    f->is_large = all >= TERMINAL_BYTES;
    say_blocks(r, f, all, count);
    if (largest->process_count > 1 && largest->bytes < all)
        finding_say(f,
                    " of %s at the ends of %s processes, of which the largest, %s, had %s: programs that end without "
                    "giving back what they hold",
                    r->device->name, units_count(r->a, largest->process_count), buf_text(&largest->name),
                    units_bytes(r->b, largest->bytes));
    else
        finding_say(f, " of %s, and its peak was %s: a program that ends without giving back what it holds",
                    r->device->name, units_bytes(r->c, r->device->peak_active));
    say_line(r, f, line, LINE_END_BYTES, all);
    f->next =
        "Runtimes and compilers do so. What grows evenly over the run would be named: see the leaks table for each "
        "stack.";
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
    struct largest largest;
    load_largest(r, &largest);
    int is_one = largest.process_count > 1 && largest.peak_bytes; /* of several the largest tells */
    if (keeps_its_heap(r, is_one ? largest.bytes : all, is_one ? largest.peak_bytes : d->peak_active)) {
        find_kept(r, line, all, count, &largest);
        buf_free(&largest.name);
        return;
    }
    struct finding *f = rule_finding(r, d->name);
    f->bytes = weight(r, all, untouched, &largest);
    f->is_large = f->bytes >= TERMINAL_BYTES;
    if (f->bytes < LARGE)
        f->severity = FINDING_INFO;
    finding_say(f, "%s in %s block%s of %s %s", units_bytes(r->a, all), units_count(r->b, count), count == 1 ? "" : "s",
                d->name, count == 1 ? "was" : "were");
    say_end(r, f);
    if (d->end_count > count) /* the tables beside this sentence have these too */
        finding_say(f, ", beside %s in %s block%s that libraries, interpreters and allocators keep for themselves",
                    units_bytes(r->a, d->end_bytes - all), units_count(r->b, d->end_count - count),
                    d->end_count - count == 1 ? "" : "s");
    say_largest(r, f, all, &largest);
    finding_say(f, ". %s: ", bytes < all ? "The largest part" : "All of it");
    finding_line(r, f, line->site_id, "end");
    finding_say(f, ", %s in %s block%s.", units_bytes(r->c, bytes), units_count(r->d, blocks), blocks == 1 ? "" : "s");
    say_absent(r, f, all, untouched, &largest);
    buf_free(&largest.name);
    if (ending_of_blocks(r->db, d->device_id) == ENDING_UNKNOWN)
        finding_say(f, " How it ended is not known.");
    say_teardown(r, f);
    finding_wrapper(r, f, line, CALLERS_OF_END);
}
