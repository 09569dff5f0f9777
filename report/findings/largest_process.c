#include "../../common/db.h"
#include "../../common/sum.h"
#include "../query/process_end.h"
#include "../query/program_name.h"
#include "live_at_end.h"
#include "own_ends.h"

#include <stdlib.h>
#include <string.h>

#define PROCESSES_MOST 16  /* that are asked for what they had: each costs a chunk of events */
#define ONCE_MOST      512 /* that are compared with each other */

/* What each process had at its end, and the part of it that can have been there: no more than its peak RSS, where the
 * kernel said that. Sums over processes that ended one after another were never in memory. */
#define ENDS                                                                                                           \
    "(SELECT i.first_id, max(process_id) AS process_id, CAST(total(a.end_bytes) AS INTEGER) AS bytes, CASE WHEN "      \
    "count(*) = count(a.own_peak_bytes) THEN CAST(total(a.own_peak_bytes) AS INTEGER) END AS peak FROM account a "     \
    "JOIN thread t ON t.thread_id = a.key_id JOIN v_image i USING(process_id) JOIN process USING(process_id) WHERE "   \
    "a.scope = 'thread' AND a.inclusive = 0 AND a.kind = 'all' AND a.device_id = ?1 AND end_kind IS NOT 'exec' GROUP " \
    "BY i.first_id HAVING bytes > 0)"
static const char largest_sql[] =
    "SELECT first_id, bytes, CASE WHEN peak_rss_sampled = 0 AND ?1 = 0 THEN coalesce(peak_rss_bytes, bytes) ELSE bytes "
    "END AS most, command_line, peak, p.process_id, " PROGRAM_TITLE(
        "p.process_id") ", p.start_ns, coalesce(p.end_ns, 9223372036854775807) FROM " ENDS
                        " JOIN process p USING(process_id) ORDER BY min(bytes, most) DESC, p.process_id";

static const char all_sql[] =
    "SELECT count(DISTINCT first_id) FROM v_image JOIN process USING(process_id) WHERE not_recorded IS NULL";

static const char torn_sql[] =
    "SELECT count(*) FROM teardown WHERE process_id IN (SELECT process_id FROM v_image WHERE first_id = ?1)";

/* A title that a program gave itself begins with its name and says which one it is: "nginx: worker process". */
static void name_process(struct buf *name, const char *title, const char *command)
{
    size_t length = strcspn(title, " ");
    if (length > 1 && title[length] && title[length - 1] == ':')
        buf_puts(name, title);
    else
        program_name(name, command);
}

/* One process's part of what lines have at the end. */
struct part {
    struct rules *r;
    int64_t all_bytes, bytes; /* with what libraries keep, and without */
    struct {
        int64_t bytes, count;
    } * lines; /* as r->lines */
};

static void take_part(void *arg, uint32_t site_id, uint64_t bytes, uint64_t count)
{
    struct part *p = arg;
    const struct rule_site *site = rule_site_of(p->r, site_id);
    if (!site || p->r->lines[site->line].device_id != p->r->device->device_id)
        return;
    sum_add(&p->all_bytes, rule_sane((int64_t)bytes));
    if (!site->has_ends)
        return;
    sum_add(&p->bytes, rule_sane((int64_t)bytes));
    sum_add(&p->lines[site->line].bytes, rule_sane((int64_t)bytes));
    sum_add(&p->lines[site->line].count, rule_sane((int64_t)count));
}

/* Leaves out what libraries keep, where the events have all of the process's end: not of what Python tore down, which
 * was the end before that. What was left of it after that they do have: none of what it freed weighs. */
static void refine(struct rules *r, int64_t first_id, struct largest_process *l)
{
    struct error err = {0};
    struct part part = {.r = r, .lines = xcalloc(r->line_count + 1ul, sizeof *part.lines)};
    int rc = process_end_each(r->db, first_id, take_part, &part, &err);
    l->has_beside = rc != 0 || part.all_bytes != l->bytes;
    const int has_left = rc == 0 && l->is_torn && part.all_bytes && part.bytes < l->bytes;
    l->weighs_bytes = !l->has_beside || has_left ? part.bytes : l->bytes;
    l->bytes = l->has_beside ? l->bytes : part.bytes;
    for (uint32_t i = 0; !l->has_beside && i < r->line_count; i++)
        if (part.lines[i].bytes > l->line_bytes) {
            l->line = &r->lines[i];
            l->line_bytes = part.lines[i].bytes;
            l->line_count = part.lines[i].count;
        }
    free(part.lines);
}

static int64_t count_processes(sqlite3_stmt *s, const struct own_ends *own, int is_other)
{
    int64_t count = 0;
    while (sqlite3_step(s) == SQLITE_ROW)
        count += own_ends_is_other(own, sqlite3_column_int64(s, 5)) == is_other;
    sqlite3_reset(s);
    return count;
}

static int64_t lower(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct life {
    int64_t start_ns, end_ns, bytes;
};

static int is_torn(struct rules *r, sqlite3_stmt *s)
{
    return rule_query_amount(r, torn_sql, (int64_t[]){sqlite3_column_int64(s, 0)}, 1, 0) > 0;
}

/* The part, of what processes left, that those had which lived at one instant, at most. Not of interpreters that took
 * themselves down: what they had then is not what they left. */
static double left_at_once(struct rules *r, sqlite3_stmt *s, const struct own_ends *own, int is_other)
{
    struct life *lives = xcalloc(ONCE_MOST, sizeof *lives);
    int count = 0;
    double most = 0, all = 0;
    while (count < ONCE_MOST && sqlite3_step(s) == SQLITE_ROW)
        if (own_ends_is_other(own, sqlite3_column_int64(s, 5)) == is_other && !is_torn(r, s))
            lives[count++] = (struct life){sqlite3_column_int64(s, 7), sqlite3_column_int64(s, 8),
                                           lower(rule_amount(s, 1), rule_amount(s, 2))};
    sqlite3_reset(s);
    for (int i = 0; i < count; i++) {
        double sum = 0;
        for (int k = 0; k < count; k++)
            if (lives[k].start_ns < lives[i].end_ns && lives[k].end_ns >= lives[i].end_ns)
                sum += (double)lives[k].bytes;
        most = sum > most ? sum : most;
        all += (double)lives[i].bytes;
    }
    free(lives);
    return all > 0 ? most / all : 0;
}

/* Once a process cannot have had more, even with that, no other has. */
static void find_largest(struct rules *r, sqlite3_stmt *s, const struct own_ends *own, int has_beside, int is_other,
                         struct largest_process *largest)
{
    const int64_t all = db_int(r->db, all_sql, 0), count = count_processes(s, own, is_other);
    int64_t weighs = 0;
    for (int seen = 0; seen < PROCESSES_MOST && sqlite3_step(s) == SQLITE_ROW;) {
        struct largest_process l = {.bytes = rule_amount(s, 1),
                                    .peak_bytes = rule_amount(s, 4),
                                    .process_id = sqlite3_column_int64(s, 5),
                                    .process_count = count,
                                    .all_count = all > count ? all : count,
                                    .name = BUF(4096)};
        int64_t most = rule_amount(s, 2);
        if (own_ends_is_other(own, l.process_id) != is_other)
            continue;
        if (seen++ && lower(l.bytes, most) <= weighs)
            break;
        l.is_torn = is_torn(r, s);
        l.weighs_bytes = l.bytes;
        if (count > 1)
            refine(r, sqlite3_column_int64(s, 0), &l);
        l.there_bytes = lower(l.bytes, most);
        l.weighs_bytes = lower(l.weighs_bytes, most);
        weighs = l.weighs_bytes > weighs ? l.weighs_bytes : weighs;
        l.has_beside &= has_beside;
        if (largest->process_count && l.there_bytes <= largest->there_bytes)
            continue;
        buf_free(&largest->name);
        name_process(&l.name, db_text(s, 6), db_text(s, 3));
        *largest = l;
    }
    largest->weighs_bytes = weighs;
}

void largest_process(struct rules *r, int has_beside, int is_other, struct largest_process *largest)
{
    struct own_ends own = {.has_others = 0};
    *largest = (struct largest_process){.name = BUF(4096)};
    sqlite3_stmt *s = rule_query(r, largest_sql);
    if (!s)
        return;
    sqlite3_bind_int64(s, 1, r->device->device_id);
    if (own_ends_programs(r->db, &own, r->err) == 0) {
        const double once_part = left_at_once(r, s, &own, is_other);
        find_largest(r, s, &own, has_beside, is_other, largest);
        largest->once_part = once_part;
    }
    own_ends_close(&own);
    sqlite3_finalize(s);
}
