#include "../../common/db.h"
#include "../query/ending.h"
#include "../query/program_name.h"
#include "../query/resident.h"
#include "../query/unseen.h"
#include "live_at_end.h"

#include <string.h>

#define LARGE        (4 << 20)  /* below, most that is live is what libraries keep */
#define EVEN_BYTES   (64 << 10) /* of what came evenly over the run */
#define EVEN_LITTLE  (1 << 20)  /* below, and below that percentage of the peak: classes and code that are loaded */
#define EVEN_PERCENT 1
#define EVEN_REST    8         /* a part of what is live beside them that needs no sentence of its own */
#define THERE_SHARE  4         /* a part of what is live that is worth a word: what is on no page, */
#define THERE_BYTES  (1 << 20) /* if it is more than may have been allocated while a look was made */

/* What of it can have been in memory at once. */
static int64_t weight(struct rules *r, int64_t all, int64_t untouched, const struct largest_process *largest)
{
    int64_t there = untouched >= THERE_BYTES && resident_last_is_whole(r->db) ? all - untouched : all;
    int64_t once = (int64_t)((double)all * largest->once_part);
    once = once < r->device->peak_active ? once : r->device->peak_active;
    once = once > largest->weighs_bytes ? once : largest->weighs_bytes;
    return largest->process_count && once < there ? once : there;
}

static void say_largest(struct rules *r, struct finding *f, int64_t all, const struct largest_process *largest)
{
    if (largest->process_count > 1 && largest->bytes < all)
        finding_say(f, "; of %s processes the largest, %s, had %s%s", units_count(r->a, largest->all_count),
                    buf_text(&largest->name), units_bytes(r->b, largest->bytes),
                    largest->has_beside ? " of all this" : "");
}

/* What of it took no memory. */
static void say_absent(struct rules *r, struct finding *f, int64_t all, int64_t untouched,
                       const struct largest_process *largest)
{
    if (untouched >= THERE_BYTES && untouched > all / THERE_SHARE && resident_last_is_whole(r->db))
        finding_say(f, " Of this, %s were on no page at the last look, and took no memory.",
                    units_bytes(r->a, untouched));
    else if (largest->process_count == 1 && all - largest->there_bytes > all / THERE_SHARE)
        finding_say(f, " Of this, %s or more took no memory: the peak RSS was %s.",
                    units_bytes(r->a, all - largest->there_bytes), units_bytes(r->b, largest->there_bytes));
}

static void say_killed(struct finding *f, const char *before, const int64_t counts[ENDINGS])
{
    struct buf text = BUF(4096);
    ending_killed_text(counts, &text);
    finding_say(f, "%s%s", before, buf_text(&text));
    buf_free(&text);
}

/* None of it allocated: what is freed too late saves no more. */
static void say_saving(struct rules *r, struct finding *f, const struct rule_line *line,
                       int (*is_kept)(const struct rules *r, int64_t site_id), int64_t bytes, int64_t count)
{
    struct saving saving = {.changes = NULL};
    finding_number(f, "never_freed_bytes", bytes);
    finding_number(f, "never_freed_count", count);
    finding_keeper(r, f, line, is_kept);
    rule_add_gone(r, &saving, NULL, is_kept);
    if (r->pass)
        finding_saves(r, f, &saving, FINDING_AT_MOST);
    else
        finding_saves_at_most(r, f, bytes);
    if (f->saved_bytes > bytes) /* what libraries and interpreters keep went along */
        f->saved_bytes = bytes;
}

/* Where most of it was live: beside what interpreters keep for themselves, which the ends of processes have too. */
static enum ending_of_blocks ending_of(struct rules *r, int64_t bytes)
{
    const enum ending_of_blocks of_all = ending_of_blocks(r->db, r->device->device_id);
    int64_t killed;
    rule_top_line(r, LINE_END_KILLED_BYTES, &killed);
    return of_all == ENDING_RETURNED && killed > bytes / 2 ? ENDING_KILLED : of_all;
}

/* What is live when a process is killed, or when its recording is cut, was in use: no leak is told from it. */
static void say_end(struct rules *r, struct finding *f, int64_t bytes)
{
    const struct rule_device *d = r->device;
    enum { ENDING_NOT_YET = ENDINGS };
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
        [ENDING_NOT_YET] = {"Live so far", "live at the last instant that is in the file",
                            "It is in use: what grows over the run, not this, tells a leak."},
    };
    const enum ending_of_blocks found = ending_of(r, bytes);
    const int ending = found == ENDING_CUT && ending_is_running(r->db) ? (int)ENDING_NOT_YET : (int)found;
    int64_t counts[ENDINGS], all = 0;
    ending_count(r->db, d->device_id, counts);
    for (int i = 0; i < ENDINGS; i++)
        all += counts[i];
    f->next = ends[ending].next;
    if (ending == ENDING_KILLED && all == 1 && !ending_is_killed(r->db)) {
        f->title = "Live when a process was killed";
        f->severity = FINDING_INFO;
        finding_say(f, " live when a process of the program was killed");
        return;
    }
    if (ending != ENDING_RETURNED) {
        f->title = ends[ending].title;
        f->severity = FINDING_INFO;
    }
    if (ending == ENDING_KILLED && all > 1) {
        f->title = "Live when processes were killed";
        say_killed(f, " live when ", counts);
        finding_say(f, "%s", counts[ENDING_KILLED] < all ? ", or at the ends of the others" : "");
        return;
    }
    /* more than there ever was at once is a sum over processes that ended one after another */
    finding_say(f, " %s%s", ends[ending].text,
                ending == ENDING_RETURNED && bytes > d->peak_active ? "s of their processes" : "");
    if (ending != ENDING_KILLED && counts[ENDING_KILLED] > 0) {
        say_killed(f, " (", counts);
        finding_say(f, ")");
    }
}

static void say_blocks(struct rules *r, struct finding *f, int64_t bytes, int64_t count)
{
    finding_say(f, "%s in %s block%s", units_bytes(r->a, bytes), units_count(r->b, count), count == 1 ? "" : "s");
}

struct live {
    int64_t bytes, count;
};

/* What libraries keep: tables of what is live at the end have it too. */
static void say_beside(struct rules *r, struct finding *f, const struct live *beside)
{
    if (beside->count > 0)
        finding_say(f, ", beside %s in %s block%s that libraries, interpreters and allocators keep for themselves",
                    units_bytes(r->a, beside->bytes), units_count(r->b, beside->count), beside->count == 1 ? "" : "s");
}

/* The largest part of all may be of other processes than the one that weighs. */
static void say_largest_line(struct rules *r, struct finding *f, const struct rule_line *line,
                             const struct largest_process *largest)
{
    if (largest->process_count < 2 || !largest->line || largest->line == line)
        return;
    finding_say(f, " The largest of %s: ", buf_text(&largest->name));
    finding_line(r, f, largest->line->site_id, "end");
    finding_say(f, ", ");
    say_blocks(r, f, largest->line_bytes, largest->line_count);
    finding_say(f, ".");
}

static void say_line(struct rules *r, struct finding *f, const struct rule_line *line, enum line_sum bytes, int64_t all)
{
    finding_say(f, ". %s: ", line->sums[bytes] < all ? "The largest part" : "All of it");
    if (bytes == LINE_END_EVEN_BYTES)
        finding_line_by(r, f, line->site_id, rule_even_bytes);
    else
        finding_line(r, f, line->site_id, "end");
    finding_say(f, ", ");
    say_blocks(r, f, line->sums[bytes], line->sums[bytes + 1]);
    finding_say(f, ".");
}

/* Whether no stack has half of it: what a program goes on to collect comes by many, a leak by few. */
static int is_of_many(const struct rules *r, int64_t all)
{
    int64_t most = 0;
    for (size_t i = 0; i < r->even_count; i++) {
        const struct rule_line *line = rule_line_of(r, r->even[i].site_id);
        const int64_t bytes = rule_sane(r->even[i].live[GROWTH_POINTS - 1]);
        if (line && line->device_id == r->device->device_id && rule_is_even(r, r->even[i].site_id) && bytes > most)
            most = bytes;
    }
    return most < all / 2;
}

/* What a server leaks at each request comes as evenly as they do; a cache that is full, and a start, do not. */
static struct finding *find_even(struct rules *r, int64_t peak_bytes)
{
    int64_t all, count;
    const struct rule_line *line = rule_top_line(r, LINE_END_EVEN_BYTES, &all);
    rule_top_line(r, LINE_END_EVEN_COUNT, &count);
    if (!line || all < EVEN_BYTES || rule_replaces_unseen(r))
        return NULL;
    struct finding *f = rule_finding(r, r->device->name);
    f->bytes = all;
    if (all < EVEN_LITTLE && all < peak_bytes / 100 * EVEN_PERCENT)
        finding_lessen(f);
    say_blocks(r, f, all, count);
    const int is_running = ending_is_running(r->db);
    if (is_running)
        f->title = "Not freed so far";
    finding_say(f, " of %s came evenly over the run, and %s", r->device->name,
                is_running ? "are live still" : "were still live at the end");
    say_line(r, f, line, LINE_END_EVEN_BYTES, all);
    f->next = "What is taken at each step and never given back looks like this.";
    finding_wrapper(r, f, line, LINE_END_EVEN_BYTES);
    say_saving(r, f, line, rule_is_even, all, count);
    return f;
}

/* Nothing is to be done about it. */
static struct finding *begin_fact(struct rules *r, const char *title, int64_t bytes, int64_t count)
{
    struct finding *f = rule_finding(r, r->device->name);
    f->title = title;
    f->severity = FINDING_INFO;
    f->is_fact = 1;
    f->bytes = bytes;
    if (bytes < LARGE)
        finding_lessen(f);
    say_blocks(r, f, bytes, count);
    return f;
}

static void find_kept(struct rules *r, const struct rule_line *line, const struct live *live, const struct live *beside,
                      const struct largest_process *largest, int64_t peak_bytes)
{
    int64_t even_bytes;
    rule_top_line(r, LINE_END_EVEN_BYTES, &even_bytes);
    struct finding *even = find_even(r, peak_bytes), *f;
    if (even && even_bytes > peak_bytes / 2 && is_of_many(r, even_bytes)) {
        even->severity = FINDING_INFO;
        finding_say(even, " A program that gives nothing back as it ends has its data here, too.");
    }
    f = begin_fact(r, "Live at the end", live->bytes, live->count);
    if (largest->process_count > 1 && largest->bytes < live->bytes) {
        finding_say(f, " of %s at the ends of %s processes, of which the largest, %s, had %s", r->device->name,
                    units_count(r->a, largest->all_count), buf_text(&largest->name), units_bytes(r->b, largest->bytes));
        say_beside(r, f, beside);
        finding_say(f, ": programs that end without giving back what they hold");
    } else {
        finding_say(f, " of %s", r->device->name);
        say_beside(r, f, beside);
        finding_say(f, ", and its peak was %s: a program that ends without giving back what it holds",
                    units_bytes(r->c, r->device->peak_active));
    }
    say_line(r, f, line, LINE_END_BYTES, live->bytes);
    f->next =
        "Runtimes and compilers do so. What grows evenly over the run would be named: see the leaks table for each "
        "stack.";
    if (!finding_runtime(r, f, line->site_id))
        finding_wrapper(r, f, line, LINE_END_BYTES);
}

static int64_t of_others(struct rules *r, enum line_sum others, enum line_sum replaced)
{
    int64_t other, images;
    rule_top_line(r, others, &other);
    rule_top_line(r, replaced, &images);
    return other + images;
}

static void find_never_freed(struct rules *r)
{
    const struct rule_device *d = r->device;
    int64_t all, count, untouched, torn_bytes, torn_count;
    const struct rule_line *line = rule_top_line(r, LINE_END_BYTES, &all);
    if (!line)
        return;
    rule_top_line(r, LINE_END_COUNT, &count);
    rule_top_line(r, LINE_END_UNTOUCHED_BYTES, &untouched);
    int64_t bytes = line->sums[LINE_END_BYTES], blocks = line->sums[LINE_END_COUNT];
    struct largest_process largest;
    rule_top_line(r, LINE_END_TORN_BYTES, &torn_bytes);
    rule_top_line(r, LINE_END_TORN_COUNT, &torn_count);
    const struct live beside = {
        d->end_bytes - all - torn_bytes - of_others(r, LINE_END_OTHER_BYTES, LINE_END_REPLACED_BYTES),
        d->end_count - count - torn_count - of_others(r, LINE_END_OTHER_COUNT, LINE_END_REPLACED_COUNT)};
    largest_process(r, beside.count > 0, 0, &largest);
    if (strcmp(d->name, "host") == 0)
        r->findings->largest_id = largest.process_id;
    if (rule_frees_unseen(r)) { /* what is left over them nobody knows */
        buf_free(&largest.name);
        return;
    }
    int is_one = largest.process_count > 1 && largest.peak_bytes; /* of several the largest tells */
    int64_t peak_bytes = is_one ? largest.peak_bytes : d->peak_active;
    if (keeps_its_heap(r, is_one ? largest.bytes : all, peak_bytes, is_one ? largest.is_torn : torn_bytes > 0)) {
        find_kept(r, line, &(struct live){all, count}, &beside, &largest, peak_bytes);
        buf_free(&largest.name);
        return;
    }
    const int64_t weighs = weight(r, all, untouched, &largest);
    const int is_small = weighs < LARGE, is_in_use = ending_of(r, all) != ENDING_RETURNED;
    /* of little, and of what was in use, what a start or a cache left is no news: a leak comes evenly */
    const struct finding *even = is_small || is_in_use ? find_even(r, peak_bytes) : NULL;
    if (even && !is_in_use && even->bytes >= all - all / EVEN_REST) { /* of the same blocks */
        buf_free(&largest.name);
        return;
    }
    struct finding *f = rule_finding(r, d->name);
    f->bytes = weighs;
    if (is_small)
        finding_lessen(f);
    finding_say(f, "%s in %s block%s of %s %s", units_bytes(r->a, all), units_count(r->b, count), count == 1 ? "" : "s",
                d->name, count == 1 ? "was" : "were");
    say_end(r, f, all);
    if (r->is_advise && is_in_use) /* nothing is to be done about it */
        finding_lessen(f);
    say_beside(r, f, &beside);
    if (!torn_count) /* which is in what each process had */
        say_largest(r, f, all, &largest);
    finding_say(f, ". %s: ", bytes < all ? "The largest part" : "All of it");
    finding_line(r, f, line->site_id, "end");
    finding_say(f, ", %s in %s block%s.", units_bytes(r->c, bytes), units_count(r->d, blocks), blocks == 1 ? "" : "s");
    if (!torn_count)
        say_largest_line(r, f, line, &largest);
    say_absent(r, f, all, untouched, &largest);
    if (d->device_id == 0 && unseen_freed_bytes(r->db) > 0)
        finding_say(f, " Calls that were not seen freed %s of it, or more.",
                    units_bytes(r->a, unseen_freed_bytes(r->db)));
    buf_free(&largest.name);
    say_saving(r, f, line, NULL, all, count);
    if (ending_of(r, all) == ENDING_UNKNOWN)
        finding_say(f, " How it ended is not known.");
    if (!finding_runtime(r, f, line->site_id))
        finding_wrapper(r, f, line, LINE_END_BYTES);
}

/* What Python freed when it took itself down was no leak: globals and caches. The tables of what was live at the end
 * have it. */
static void find_torn(struct rules *r)
{
    int64_t all, count;
    const struct rule_line *line = rule_top_line(r, LINE_END_TORN_BYTES, &all);
    rule_top_line(r, LINE_END_TORN_COUNT, &count);
    if (!line)
        return;
    struct finding *f = begin_fact(r, "Live when Python began to end", all, count);
    finding_say(f, " of %s, which it then freed", r->device->name);
    say_line(r, f, line, LINE_END_TORN_BYTES, all);
    f->next = "What globals and caches keep shows here; what a program keeps by mistake does too.";
}

static void say_others(struct rules *r, const struct rule_line *line, const struct largest_process *largest,
                       int64_t all, int64_t count)
{
    struct finding *f = begin_fact(r, "Live at the ends of other programs", all, count);
    finding_say(f, " of %s, at the ends of the programs that this one ran: the largest of %s process%s, %s, had %s",
                r->device->name, units_count(r->a, largest->process_count), largest->process_count == 1 ? "" : "es",
                buf_text(&largest->name), units_bytes(r->b, largest->bytes));
    say_line(r, f, line, LINE_END_OTHER_BYTES, all);
    f->next = "Nothing of it is a leak of the program: memprof leaks --process PID shows one of them.";
}

/* The image that had most of it, and what it executed. */
static const char replaced_sql[] =
    "SELECT p.command_line, q.command_line FROM process p JOIN process q ON q.parent_id = p.process_id AND q.pid = "
    "p.pid AND q.start_kind = 'exec' JOIN thread t ON t.process_id = p.process_id JOIN account a ON a.scope = 'thread' "
    "AND a.key_id = t.thread_id AND a.inclusive = 0 AND a.kind = 'all' AND a.device_id = ? WHERE p.end_kind = 'exec' "
    "GROUP BY p.process_id ORDER BY total(a.end_bytes) DESC LIMIT 1";

/* What an image had as it executed the next in its place (a launcher's last step) went with it. */
static void find_replaced(struct rules *r)
{
    int64_t all, count;
    const struct rule_line *line = rule_top_line(r, LINE_END_REPLACED_BYTES, &all);
    struct buf name = BUF(1 << 16), next = BUF(1 << 16);
    sqlite3_stmt *s = line && all >= LARGE ? rule_query(r, replaced_sql) : NULL;
    if (s)
        sqlite3_bind_int64(s, 1, r->device->device_id);
    if (s && sqlite3_step(s) == SQLITE_ROW) {
        rule_top_line(r, LINE_END_REPLACED_COUNT, &count);
        program_name(&name, db_text(s, 0));
        program_name(&next, db_text(s, 1));
        struct finding *f = begin_fact(r, "Live as another program was executed", all, count);
        finding_say(f, " of %s, as %s executed %s in its place", r->device->name, buf_text(&name), buf_text(&next));
        say_line(r, f, line, LINE_END_REPLACED_BYTES, all);
        f->next = "The kernel took it back then: nothing of it is a leak.";
    }
    sqlite3_finalize(s);
    buf_free(&name);
    buf_free(&next);
}

/* What other programs had at their ends (shells, compilers) is no leak of the one that ran them. */
static void find_others(struct rules *r)
{
    int64_t all, count;
    struct largest_process largest, own;
    const struct rule_line *line = rule_top_line(r, LINE_END_OTHER_BYTES, &all);
    if (!line)
        return;
    rule_top_line(r, LINE_END_OTHER_COUNT, &count);
    largest_process(r, 1, 1, &largest);
    largest_process(r, 1, 0, &own);
    if (strcmp(r->device->name, "host") == 0 && largest.there_bytes > own.there_bytes)
        r->findings->largest_id = largest.process_id;
    buf_free(&own.name);
    if (all >= LARGE)
        say_others(r, line, &largest, all, count);
    buf_free(&largest.name);
}
void find_leaks(struct rules *r)
{
    if (live_at_end_load(r))
        return;
    find_never_freed(r);
    find_torn(r);
    find_others(r);
    find_replaced(r);
}
