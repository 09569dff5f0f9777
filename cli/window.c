/* --from, --to, --during and --at mark:NAME: what they mean of a recording. */
#include "cli.h"

#include "../common/db.h"
#include "../common/units.h"
#include "../common/wallclock.h"
#include "../report/findings/notes.h"
#include "../report/query/at.h"
#include "../report/query/device.h"
#include "../report/query/marks.h"
#include "../report/query/merged.h"
#include "../report/query/rotated_part.h"
#include "../report/text/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The instant behind the peak of the device that is meant: what is live there is what was live at the peak. */
static int peak_ns(const struct arguments *a, sqlite3 *db, const char *option, int64_t *time_ns, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int count = 0;
    int rc =
        db_prepare(db,
                   "SELECT peak_active_ns FROM v_total WHERE kind = 'all' AND peak_active_bytes > 0 AND " DEVICE_IS(
                       "device", "?1"),
                   &s, err);
    if (rc == 0)
        sqlite3_bind_text(s, 1, a->value[OPTION_device], -1, SQLITE_STATIC);
    for (; db_next(s, &rc, err); count++)
        *time_ns = sqlite3_column_int64(s, 0) + (sqlite3_column_int64(s, 0) < INT64_MAX);
    sqlite3_finalize(s);
    if (rc == 0 && count != 1)
        rc = error_set(err, EINVAL, "%s peak: %s", option,
                       count ? "several devices have one; --device says of which" : "there is none in this recording");
    return rc;
}

/* A time of the clock on the wall as one since the start. What the clock was set to meanwhile is not known. */
static int wall_ns(sqlite3 *db, const char *option, const char *text, int64_t *time_ns, struct error *err)
{
    const int64_t start_ns = db_meta_int(db, "start_unix_ns", 0);
    int64_t at_ns = 0, end_ns;
    char dates[2][32];
    if (start_ns <= 0)
        return error_set(err, EINVAL, "%s %s: the recording does not say when it began; give a time since its start",
                         option, text);
    int rc = wallclock_parse(text, start_ns, &at_ns);
    if (rc == -ERANGE)
        return error_set(err, EINVAL, "%s '%s': there was no such time", option, text);
    if (rc)
        return error_set(
            err, EINVAL,
            "%s '%s': expected a local time such as 14:03, 14:03:10.5 or 2026-11-23T14:03:10, or with Z or "
            "+01:00 behind it",
            option, text);
    if (__builtin_add_overflow(start_ns, at_end_ns(db), &end_ns))
        end_ns = INT64_MAX;
    if (at_ns / 1000000000 < start_ns / 1000000000 || at_ns > end_ns)
        return error_set(err, EINVAL, "%s %s: the run was from %s to %s", option, text, notes_date(dates[0], start_ns),
                         notes_date(dates[1], end_ns));
    *time_ns = at_ns > start_ns ? at_ns - start_ns : 0;
    return 0;
}

static int parse_time(const struct arguments *a, sqlite3 *db, enum option_id id, const char *option, int64_t *time_ns,
                      struct error *err)
{
    const char *text = a->value[id];
    int rc = 0;
    if (!a->given[id])
        return 0;
    if (strcmp(text, "peak") == 0)
        return peak_ns(a, db, option, time_ns, err);
    if (id == OPTION_to && strcmp(text, "end") == 0)
        return 0;
    if (strncmp(text, "mark:", 5) == 0)
        rc = marks_find_instant(db, option, text + 5, time_ns, err);
    else if (wallclock_is(text))
        rc = wall_ns(db, option, text, time_ns, err);
    else if (units_parse_ns(text, time_ns))
        rc = error_set(err, EINVAL,
                       "%s '%s': expected a time since the start such as 1.5s, 300ms or 2m, a time of day such as "
                       "14:03:10, peak%s, or mark:NAME",
                       option, text, id == OPTION_to ? ", end" : "");
    return rc ? rc : at_check(db, *time_ns, option, err);
}

/* For the next command. */
static char *given_options(const struct arguments *a)
{
    static const struct {
        enum option_id id;
        const char *text;
    } options[] = {
        {OPTION_every, " --every "}, {OPTION_during, " --during "}, {OPTION_from, " --from "}, {OPTION_to, " --to "}};
    struct buf text = BUF(1 << 16);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (a->given[options[i].id]) {
            buf_puts(&text, options[i].text);
            buf_shell(&text, a->value[options[i].id]);
        }
    return buf_take(&text);
}

/* Of ranges that had begun before a rotated recording's part, what is in it. */
static void clip(struct window_range *ranges, size_t count, int64_t first_ns)
{
    for (size_t i = 0; i < count; i++)
        if (ranges[i].from_ns < first_ns && ranges[i].to_ns > first_ns)
            ranges[i].from_ns = first_ns;
}

/* All executions of a range together. */
static int open_every(const struct arguments *a, sqlite3 *db, struct cli_window *w, struct error *err)
{
    struct executions e;
    int rc = marks_find_executions(db, "--every", a->value[OPTION_every], &e, err);
    w->ranges = xcalloc(e.count + 1ul, sizeof *w->ranges);
    for (uint32_t i = 0; i < e.count; i++)
        w->ranges[i] = (struct window_range){e.execution[i].start_ns, e.execution[i].end_ns};
    w->name = xstrdup(a->value[OPTION_every]);
    w->lens = (struct lens_window){
        .ranges = w->ranges, .count = window_unite(w->ranges, e.count), .name = w->name, .of = e.count};
    clip(w->ranges, w->lens.count, rotated_part(db).start_ns);
    executions_free(&e);
    return rc;
}

int cli_window_open(const struct arguments *a, sqlite3 *db, struct lens_options *lens, struct cli_window *w,
                    struct error *err)
{
    const int64_t first_ns = rotated_part(db).start_ns;
    struct window_range range = {first_ns, WINDOW_END};
    struct marks_found found = {0};
    int rc = 0;
    *w = (struct cli_window){.ranges = NULL};
    if (a->given[OPTION_every] && a->command == COMMAND_lines) {
        if (cli_has_window(a))
            return error_set(err, EINVAL, "--every is a window of its own; leave out --from, --to and --during");
        rc = open_every(a, db, w, err);
        w->lens.options = w->options = given_options(a);
        if (rc == 0)
            lens->window = &w->lens;
        return rc;
    }
    if (!cli_has_window(a))
        return 0;
    if ((rc = merged_refuse(db, a->given[OPTION_during] ? "--during" : "--from, --to", err)))
        return rc;
    if (a->given[OPTION_during] && (a->given[OPTION_from] || a->given[OPTION_to]))
        return error_set(err, EINVAL, "--during is a window of its own; leave out --from and --to");
    if (a->given[OPTION_during]) {
        rc = marks_find_ranges(db, a->value[OPTION_during], &found, err);
        clip(found.ranges, found.count, first_ns);
        w->ranges = found.ranges;
        w->name = found.name;
        w->lens = (struct lens_window){
            .ranges = found.ranges, .count = found.count, .name = found.name, .nth = found.nth, .of = found.of};
    } else {
        rc = parse_time(a, db, OPTION_from, "--from", &range.from_ns, err);
        if (rc == 0)
            rc = parse_time(a, db, OPTION_to, "--to", &range.to_ns, err);
        if (rc == 0 && range.from_ns >= range.to_ns)
            rc = error_set(err, EINVAL, "--from %s is not before --to %s", a->value[OPTION_from],
                           a->given[OPTION_to] ? a->value[OPTION_to] : "end");
        w->ranges = xcalloc(1, sizeof *w->ranges);
        *w->ranges = range;
        w->lens = (struct lens_window){.ranges = w->ranges, .count = 1};
    }
    w->lens.options = w->options = given_options(a);
    int is_whole = w->lens.count == 1 && w->ranges->from_ns == first_ns && w->ranges->to_ns == WINDOW_END;
    if (rc == 0 && !is_whole)
        lens->window = &w->lens;
    return rc;
}

void cli_window_close(struct cli_window *w)
{
    free(w->ranges);
    free(w->name);
    free(w->options);
    *w = (struct cli_window){.ranges = NULL};
}

/* --at now: of a recording that has ended there is no such thing. */
static int check_now(const struct arguments *a, sqlite3 *db, struct error *err)
{
    if (!a->given[OPTION_at] || strcmp(a->value[OPTION_at], "now") != 0)
        return 0;
    char *state = db_meta_text(db, "state");
    int is_recording = state && strcmp(state, "recording") == 0;
    free(state);
    return is_recording ? 0 : error_set(err, EINVAL, "--at now: the recording has ended; --at end is its last instant");
}

int cli_at_mark(const struct arguments *a, sqlite3 *db, struct report_options *o, struct error *err)
{
    int now_rc = check_now(a, db, err);
    if (now_rc)
        return now_rc;
    if (a->given[OPTION_at] && wallclock_is(a->value[OPTION_at])) {
        int rc = merged_refuse(db, "--at", err);
        return rc ? rc : wall_ns(db, "--at", a->value[OPTION_at], &o->at_ns, err);
    }
    if (!a->given[OPTION_at] || strncmp(a->value[OPTION_at], "mark:", 5) != 0)
        return 0;
    return marks_find_instant(db, "--at", a->value[OPTION_at] + 5, &o->at_ns, err);
}
