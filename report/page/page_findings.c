/*
 * Findings: sentences that the data bears out, each with its numbers and a link to the place. A rule says nothing when
 * its case is not there; the thresholds stand with the rules.
 */
#include "page_data.h"

#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/units.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum severity { BAD, WARN, INFO, SEVERITIES };

struct finding {
    struct page *page;
    struct buf lists[SEVERITIES]; /* the worst come first */
    struct buf *out;
    char a[UNITS_TEXT], b[UNITS_TEXT], c[UNITS_TEXT], d[UNITS_TEXT];
};

/* A size, count or time of the database: a damaged one may be anything, and sums of sane ones must fit. */
static int64_t amount(sqlite3_stmt *s, int column)
{
    const int64_t most = INT64_C(1) << 52;
    int64_t value = sqlite3_column_int64(s, column);
    return value < 0 ? 0 : value > most ? most : value;
}

static int percent(int64_t part, int64_t whole)
{
    return whole > 0 ? (int)(100.0 * (double)part / (double)whole + 0.5) : 0;
}

/* device: NULL where there is no need to say it */
static void begin(struct finding *f, enum severity severity, const char *title, const char *device)
{
    static const char *const classes[] = {"bad", "warn", "info"};
    f->out = &f->lists[severity];
    buf_printf(f->out, "<li class=\"finding %s\"><h3>%s", classes[severity], title);
    if (device && f->page->device_count > 1) {
        buf_puts(f->out, " <span class=\"device\">");
        buf_html(f->out, device);
        buf_puts(f->out, "</span>");
    }
    buf_puts(f->out, "</h3><p>");
}

static void end(struct finding *f, const char *next)
{
    buf_printf(f->out, "</p>%s%s%s</li>\n", next ? "<p class=\"next\">" : "", next ? next : "", next ? "</p>" : "");
}

static void html(struct finding *f, const char *text)
{
    buf_html(f->out, text);
}

/* <a href="#device=NAME: the page's script selects it; the caller adds what of it, and what the link says. */
static void device_link(struct finding *f, const char *class, const char *device)
{
    buf_printf(f->out, "<a%s href=\"#device=", class);
    for (const char *p = device; *p; p++)
        if (isalnum((unsigned char)*p) || strchr(":-_.", *p))
            buf_putc(f->out, *p);
        else
            buf_printf(f->out, "%%%02X", (unsigned char)*p);
}

/* A line as a link: the page's script shows its stacks and source. */
static void line_link(struct finding *f, const char *device, int32_t line, const char *view)
{
    const struct page *page = f->page;
    const struct page_line *l = &page->lines[line];
    device_link(f, " class=\"fn\"", device);
    buf_printf(f->out, "&amp;at=%s&amp;line=%d\">", view, line);
    char *name = page_short_name(l->function >= 0 ? page->functions[l->function].name : "?");
    html(f, name);
    free(name);
    buf_puts(f->out, "</a>");
    if (l->file >= 0) {
        buf_puts(f->out, " (");
        html(f, page_basename(page->files[l->file]));
        buf_printf(f->out, ":%d)", l->line);
    }
}

/* Sums a statistic by line on one device; returns the line with most, its value, and the sum of all. */
static int32_t top_line(const struct page *page, int32_t device, enum page_stat stat, int64_t *value, int64_t *sum,
                        int64_t *other, enum page_stat also)
{
    int64_t *sums = xcalloc(page->line_count + 1ul, sizeof *sums),
            *others = xcalloc(page->line_count + 1ul, sizeof *others);
    int32_t best = -1;
    *sum = 0;
    for (uint32_t i = 0; i < page->site_count; i++) {
        const struct page_site *s = &page->sites[i];
        if (s->device != device)
            continue;
        __builtin_add_overflow(sums[s->line], s->stats[stat], &sums[s->line]);
        __builtin_add_overflow(others[s->line], s->stats[also], &others[s->line]);
        __builtin_add_overflow(*sum, s->stats[stat], sum);
    }
    for (uint32_t i = 0; i < page->line_count; i++)
        if (sums[i] > 0 && (best < 0 || sums[i] > sums[best]))
            best = (int32_t)i;
    *value = best < 0 ? 0 : sums[best];
    if (other)
        *other = best < 0 ? 0 : others[best];
    free(sums);
    free(others);
    return best;
}

struct totals {
    int32_t device;
    const char *name;
    int64_t alloc_count, temporary_count, peak_active, peak_ns, peak_count, peak_reserved, peak_reserved_ns, end_bytes,
        end_count;
};

static void find_peak(struct finding *f, const struct totals *t)
{
    int64_t value, sum, blocks;
    int32_t line = top_line(f->page, t->device, STAT_at_peak_bytes, &value, &sum, &blocks, STAT_at_peak_count);
    if (line < 0)
        return;
    begin(f, INFO, "What the peak is made of", t->name);
    buf_printf(f->out, "At its peak, %s into the run, ", units_ns(f->a, t->peak_ns));
    html(f, t->name);
    buf_printf(f->out, " held %s. ", units_bytes(f->b, t->peak_active));
    line_link(f, t->name, line, "peak");
    buf_printf(f->out, " held %s of it (%d %%) in %s block%s.", units_bytes(f->c, value),
               percent(value, t->peak_active), units_count(f->d, blocks), blocks == 1 ? "" : "s");
    end(f, percent(value, t->peak_active) >= 30
               ? "Making this one line hold less, or hold it for less time, lowers the peak most."
               : NULL);
}

static void find_leaks(struct finding *f, const struct totals *t)
{
    int64_t value, sum, blocks;
    int32_t line = top_line(f->page, t->device, STAT_end_bytes, &value, &sum, &blocks, STAT_end_count);
    if (line < 0 || t->end_count <= 0)
        return;
    int large = t->end_bytes >= 1 << 20 || percent(t->end_bytes, t->peak_active) >= 5;
    begin(f, large ? WARN : INFO, "Never freed", t->name);
    buf_printf(f->out, "%s in %s block%s of ", units_bytes(f->a, t->end_bytes), units_count(f->b, t->end_count),
               t->end_count == 1 ? "" : "s");
    html(f, t->name);
    buf_printf(f->out, " %s still live at the end. %s: ", t->end_count == 1 ? "was" : "were",
               line >= 0 && value < sum ? "The largest part" : "All of it");
    line_link(f, t->name, line, "end");
    buf_printf(f->out, ", %s in %s block%s.", units_bytes(f->c, value), units_count(f->d, blocks),
               blocks == 1 ? "" : "s");
    end(f, "Blocks kept on purpose until exit show here too: see the leaks table for each stack.");
}

static void find_churn(struct finding *f, const struct totals *t)
{
    int64_t value, sum, allocs;
    if (t->temporary_count < 1000 || t->temporary_count < t->alloc_count / 10)
        return;
    int32_t line = top_line(f->page, t->device, STAT_temporary_count, &value, &sum, &allocs, STAT_alloc_count);
    if (line < 0)
        return;
    begin(f, INFO, "Short-lived blocks", t->name);
    buf_printf(f->out,
               "%s of %s allocations (%d %%) were freed before their thread allocated again. Most of them, %s, in ",
               units_count(f->a, t->temporary_count), units_count(f->b, t->alloc_count),
               percent(t->temporary_count, t->alloc_count), units_count(f->c, value));
    line_link(f, t->name, line, "run");
    buf_puts(f->out, ".");
    end(f, "They cost time rather than memory: a buffer that is kept and reused would save them.");
}

/* What another allocator than the C library's mapped: it takes addresses at once, memory when it is touched. */
static void find_mapped(struct finding *f, const struct totals *t)
{
    int64_t rss = db_int(f->page->db, "SELECT max(rss_max_bytes) FROM timeline WHERE device_id = 0", 0);
    begin(f, INFO, "Mapped by the allocator", t->name);
    buf_printf(f->out,
               "An allocator mapped %s by %s, while the program never had more than %s in use. What it has not touched "
               "takes addresses only",
               units_bytes(f->a, t->peak_reserved), units_ns(f->b, t->peak_reserved_ns),
               units_bytes(f->c, t->peak_active));
    if (rss > 0)
        buf_printf(f->out, ": the peak RSS, with code and libraries, was %s", units_bytes(f->d, rss));
    buf_puts(f->out, ". <a href=\"#timeline\">See the timeline</a>.");
    end(f, NULL);
}

/* What Python's arenas held at the peak of what was reserved: objects are in them that nobody sees. Where some have no
 * row it is the most that they ever held. */
static int64_t in_arenas(struct finding *f, const struct totals *t)
{
    sqlite3_stmt *s = page_query(
        f->page, "SELECT CASE WHEN count(*) < ?3 THEN CAST(total(size_bytes) FILTER (WHERE alloc_ns <= ?2 AND "
                 "coalesce(free_ns > ?2, p.end_ns >= ?2, 1)) AS INTEGER) ELSE (SELECT peak_reserved_bytes "
                 "FROM total WHERE device_id = ?1 AND kind = 'arena') END FROM segment LEFT JOIN process p "
                 "USING(process_id) WHERE kind = 'arena' AND device_id = ?1");
    int64_t bytes = 0;
    if (!s)
        return 0;
    sqlite3_bind_int64(s, 1, f->page->devices[t->device].device_id);
    sqlite3_bind_int64(s, 2, t->peak_reserved_ns);
    sqlite3_bind_int64(s, 3, SEGMENT_ROWS_MAX);
    if (sqlite3_step(s) == SQLITE_ROW)
        bytes = amount(s, 0);
    sqlite3_finalize(s);
    return bytes < t->peak_reserved ? bytes : t->peak_reserved;
}

/* At least a quarter above what was ever in use, and enough to care. */
static void find_gap(struct finding *f, const struct totals *t)
{
    int64_t arenas = in_arenas(f, t), reserved = t->peak_reserved - arenas, gap = reserved - t->peak_active;
    if (gap < 4 << 20 || reserved < t->peak_active / 4 * 5)
        return;
    if (strcmp(t->name, "host") == 0 &&
        db_int(f->page->db, "SELECT 1 FROM segment WHERE device_id = 0 AND kind IN ('heap', 'map') LIMIT 1", 0)) {
        find_mapped(f, t);
        return;
    }
    begin(f, WARN, "Reserved, but not in use", t->name);
    buf_puts(f->out, "The allocators of ");
    html(f, t->name);
    buf_printf(f->out,
               " held %s%s at %s, yet the program never had more than %s in use: at least %s (%d %%) lay idle "
               "or in fragments. ",
               units_bytes(f->a, reserved), arenas ? " beside Python's arenas" : "",
               units_ns(f->b, t->peak_reserved_ns), units_bytes(f->c, t->peak_active), units_bytes(f->d, gap),
               percent(gap, reserved));
    device_link(f, "", t->name);
    buf_printf(f->out, "&amp;time=%lld\">Look at that moment</a>.", (long long)t->peak_reserved_ns);
    end(f, "Look for a peak before this one that left holes, and for long-lived blocks among short-lived ones.");
}

/* Half of the peak or less for nine tenths of the run. */
static void find_spike(struct finding *f, const struct totals *t)
{
    sqlite3_stmt *s = page_query(
        f->page,
        "SELECT sum(active_max_bytes > ?2 / 2), count(*), max(width_ns) FROM timeline WHERE device_id = ?1 AND "
        "level = (SELECT level FROM timeline WHERE device_id = ?1 GROUP BY level HAVING count(*) <= 4096 "
        "ORDER BY level LIMIT 1)");
    if (!s)
        return;
    sqlite3_bind_int64(s, 1, f->page->devices[t->device].device_id);
    sqlite3_bind_int64(s, 2, t->peak_active);
    int64_t high = 0, all = 0;
    if (sqlite3_step(s) == SQLITE_ROW) {
        high = amount(s, 0);
        all = amount(s, 1);
    }
    sqlite3_finalize(s);
    if (all < 100 || high * 10 > all || t->peak_active < 1 << 20)
        return;
    begin(f, INFO, "The peak is short", t->name);
    html(f, t->name);
    buf_printf(f->out, " held more than half of its peak for about %s only, in %.1f %% of the run. ",
               units_ns(f->a, (int64_t)((double)f->page->duration_ns * (double)high / (double)all)),
               100.0 * (double)high / (double)all);
    device_link(f, "", t->name);
    buf_printf(f->out, "&amp;at=peak\">Look at that moment</a>.");
    end(f, "What is live only then decides how much memory the program needs.");
}

#define GROWTH_POINTS 12

/* Live bytes by line at GROWTH_POINTS instants spread over the run past its first tenth. */
static int64_t *line_growth(const struct page *page, int32_t device, int64_t times[GROWTH_POINTS])
{
    int64_t *live = xcalloc((page->line_count + 1ul) * GROWTH_POINTS, sizeof *live);
    uint64_t *now = xcalloc(page->line_count + 1ul, sizeof *now); /* wraps in a damaged file */
    int point = 0;
    for (uint32_t i = 0; i < page->instant_count && point < GROWTH_POINTS; i++) {
        const struct page_instant *instant = &page->instants[i];
        for (uint32_t k = instant->first_entry; k < instant->first_entry + instant->entry_count; k++) {
            const struct page_entry *e = &page->entries[k];
            if (page->sites[e->site].device == device)
                now[page->sites[e->site].line] += (uint64_t)e->alloc_bytes - (uint64_t)e->gone_bytes;
        }
        /* the last point well before the end, where programs clean up */
        double due = (double)page->duration_ns * (0.1 + 0.85 * point / (GROWTH_POINTS - 1));
        if ((double)instant->time_ns < due)
            continue;
        for (uint32_t line = 0; line < page->line_count; line++)
            live[(size_t)line * GROWTH_POINTS + (size_t)point] = now[line] >> 52 ? 0 : (int64_t)now[line];
        times[point++] = instant->time_ns;
    }
    free(now);
    if (point == GROWTH_POINTS)
        return live;
    free(live);
    return NULL;
}

/* Grows in at least ten of eleven steps, as much in the second half as a quarter of all, and by a part of the peak that
 * matters. */
static int grows(const int64_t *live, int64_t least)
{
    int up = 0;
    for (int i = 1; i < GROWTH_POINTS; i++)
        up += live[i] > live[i - 1];
    int64_t all = live[GROWTH_POINTS - 1] - live[0], late = live[GROWTH_POINTS - 1] - live[GROWTH_POINTS / 2];
    return up >= GROWTH_POINTS - 2 && all >= least && late >= all / 4;
}

static void find_growth(struct finding *f, const struct totals *t)
{
    int64_t times[GROWTH_POINTS];
    int64_t *live = f->page->duration_ns > 20000000 ? line_growth(f->page, t->device, times) : NULL;
    int64_t least = t->peak_active / 50 > 65536 ? t->peak_active / 50 : 65536;
    for (int round = 0; live && round < 3; round++) {
        int32_t best = -1;
        int64_t most = 0;
        for (uint32_t line = 0; line < f->page->line_count; line++) {
            const int64_t *l = &live[(size_t)line * GROWTH_POINTS];
            if (grows(l, least) && l[GROWTH_POINTS - 1] - l[0] > most) {
                most = l[GROWTH_POINTS - 1] - l[0];
                best = (int32_t)line;
            }
        }
        if (best < 0)
            break;
        int64_t *l = &live[(size_t)best * GROWTH_POINTS];
        double seconds = (double)(times[GROWTH_POINTS - 1] - times[0]) / 1e9;
        begin(f, WARN, "Growth that does not stop", t->name);
        line_link(f, t->name, best, "end");
        buf_printf(f->out, " held %s at %s and %s at %s, growing nearly all the way: about %s a second.",
                   units_bytes(f->a, l[0]), units_ns(f->b, times[0]), units_bytes(f->c, l[GROWTH_POINTS - 1]),
                   units_ns(f->d, times[GROWTH_POINTS - 1]),
                   units_bytes((char[UNITS_TEXT]){0}, seconds > 0 ? (int64_t)((double)most / seconds) : 0));
        end(f, "A cache without a limit, or a list that is only added to, looks like this.");
        memset(l, 0, GROWTH_POINTS * sizeof *l);
    }
    free(live);
}

/* The last ones: what the program ended on is among them. */
static void find_failures(struct finding *f)
{
    enum { SHOWN = 3 };
    int64_t count = db_int(f->page->db, "SELECT count(*) FROM v_oom WHERE NOT is_handled", 0);
    sqlite3_stmt *s = page_query(f->page, "SELECT time_ns, size_bytes, active_bytes, device, device_free_bytes, "
                                          "device_total_bytes, function, file, line FROM v_oom WHERE NOT is_handled "
                                          "ORDER BY time_ns DESC, oom_id DESC LIMIT ?");
    if (s)
        sqlite3_bind_int(s, 1, SHOWN);
    for (int nth = 0; s && sqlite3_step(s) == SQLITE_ROW; nth++) {
        begin(f, BAD, "Out of memory", db_text(s, 3));
        buf_printf(f->out, "At %s an allocation of %s on ", units_ns(f->a, sqlite3_column_int64(s, 0)),
                   units_bytes(f->b, sqlite3_column_int64(s, 1)));
        html(f, db_text(s, 3));
        if (sqlite3_column_type(s, 7) != SQLITE_NULL) {
            char *name = page_short_name(db_text(s, 6));
            buf_puts(f->out, " by <code>");
            html(f, name);
            buf_puts(f->out, "</code> (");
            html(f, page_basename(db_text(s, 7)));
            buf_printf(f->out, ":%d)", page_line_number(s, 8));
            free(name);
        }
        buf_printf(f->out, " failed, with %s in use", units_bytes(f->c, sqlite3_column_int64(s, 2)));
        if (sqlite3_column_type(s, 5) != SQLITE_NULL)
            buf_printf(f->out, " of the device's %s", units_bytes(f->d, sqlite3_column_int64(s, 5)));
        if (sqlite3_column_type(s, 4) != SQLITE_NULL)
            buf_printf(f->out, " (%s free)", units_bytes((char[UNITS_TEXT]){0}, sqlite3_column_int64(s, 4)));
        buf_puts(f->out, ". ");
        device_link(f, "", db_text(s, 3));
        buf_printf(f->out, "&amp;time=%lld\">Who held it then</a>.", (long long)sqlite3_column_int64(s, 0));
        if (!nth && count > SHOWN)
            buf_printf(f->out, " <a href=\"#failures\">All %s that failed</a>.", units_count(f->a, count));
        end(f, NULL);
    }
    sqlite3_finalize(s);
}

/* A probe with a fallback, or another try that went well: nothing was missing. */
static void find_handled(struct finding *f)
{
    sqlite3_stmt *s = page_query(f->page, "SELECT count(*), max(size_bytes), time_ns FROM v_oom WHERE is_handled");
    if (s && sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int64(s, 0) > 0) {
        int64_t count = sqlite3_column_int64(s, 0);
        begin(f, INFO, "Failed and made good", "host");
        buf_printf(f->out, "%s allocation%s failed on the host, %s%s at %s, and as much was had afterwards.",
                   units_count(f->a, count), count == 1 ? "" : "s", count == 1 ? "of " : "the largest of ",
                   units_bytes(f->b, sqlite3_column_int64(s, 1)), units_ns(f->c, sqlite3_column_int64(s, 2)));
        end(f, NULL);
    }
    sqlite3_finalize(s);
}

/* A segment whose last phase is one line's: only where every block of the run is known one by one. */
static void find_pins(struct finding *f)
{
    struct page *page = f->page;
    if (db_int(page->db,
               "SELECT (SELECT count(*) FROM block) < (SELECT sum(alloc_count) FROM total WHERE kind = 'all')", 1))
        return;
    sqlite3_stmt *s = page_query(
        page,
        "SELECT g.size_bytes, coalesce(g.free_ns, ?1), count(*), sum(b.size_bytes), min(s.site_id), count(DISTINCT "
        "coalesce(sl.line_id, s.site_id)), d.name "
        "FROM (SELECT * FROM segment ORDER BY size_bytes DESC LIMIT 200) g JOIN device d ON d.device_id = g.device_id "
        "JOIN block b ON b.device_id = g.device_id AND b.process_id = g.process_id AND b.address >= g.address AND "
        "b.address < g.address + g.size_bytes AND b.alloc_ns < coalesce(g.free_ns, ?1) AND coalesce(b.free_ns, ?1) >= "
        "coalesce(g.free_ns, ?1) "
        "JOIN site s ON s.stack_id = b.stack_id AND s.device_id = b.device_id AND s.kind = b.kind LEFT JOIN site_line "
        "sl ON sl.site_id = s.site_id "
        "WHERE g.size_bytes >= 1048576 GROUP BY g.segment_id "
        "HAVING sum(b.size_bytes) * 4 < g.size_bytes AND count(DISTINCT coalesce(sl.line_id, s.site_id)) = 1 ORDER BY "
        "g.size_bytes - sum(b.size_bytes) DESC LIMIT 2");
    if (s)
        sqlite3_bind_int64(s, 1, page->duration_ns);
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        uint32_t site = page_site(page, sqlite3_column_int64(s, 4));
        if (site == MAP_NONE)
            continue;
        begin(f, WARN, "A nearly empty segment is pinned", db_text(s, 6));
        buf_printf(f->out, "A segment of %s on ", units_bytes(f->a, sqlite3_column_int64(s, 0)));
        html(f, db_text(s, 6));
        buf_printf(f->out, " could not be given back at %s because of %s in %s block%s of ",
                   units_ns(f->b, sqlite3_column_int64(s, 1)), units_bytes(f->c, sqlite3_column_int64(s, 3)),
                   units_count(f->d, sqlite3_column_int64(s, 2)), sqlite3_column_int64(s, 2) == 1 ? "" : "s");
        line_link(f, db_text(s, 6), page->sites[site].line, "end");
        buf_puts(f->out, ".");
        end(f, NULL);
    }
    sqlite3_finalize(s);
}

int page_make_findings(struct page *page)
{
    page->findings = (struct buf)BUF(4u << 20);
    struct finding f = {.page = page, .lists = {BUF(1u << 20), BUF(1u << 20), BUF(1u << 20)}};
    sqlite3_stmt *s = page_query(
        page, "SELECT device_id, alloc_count, temporary_count, peak_active_bytes, peak_active_ns, peak_active_count, "
              "peak_reserved_bytes, peak_reserved_ns, end_active_bytes, end_count FROM total WHERE kind = 'all' "
              "ORDER BY device_id <> ?, device_id LIMIT 16");
    if (!s)
        return -EIO;
    if (page->device_count)
        sqlite3_bind_int64(s, 1, page->devices[page->open_device].device_id);
    find_failures(&f);
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        struct totals t = {.device = page_device_index(page, sqlite3_column_int64(s, 0))};
        int64_t *values[] = {&t.alloc_count,   &t.temporary_count,  &t.peak_active, &t.peak_ns,  &t.peak_count,
                             &t.peak_reserved, &t.peak_reserved_ns, &t.end_bytes,   &t.end_count};
        for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
            *values[i] = amount(s, (int)i + 1);
        if (t.device < 0)
            continue;
        t.name = page->devices[t.device].name;
        find_peak(&f, &t);
        find_growth(&f, &t);
        find_leaks(&f, &t);
        find_gap(&f, &t);
        find_churn(&f, &t);
        find_spike(&f, &t);
    }
    find_pins(&f);
    find_handled(&f);
    for (int i = 0; i < SEVERITIES; i++) {
        if (f.lists[i].length)
            buf_add(&page->findings, f.lists[i].data, f.lists[i].length);
        buf_free(&f.lists[i]);
    }
    return page_query_end(page, s, rc);
}
