#include "cli.h"

#include "../common/beside.h"
#include "../common/db.h"
#include "../common/units.h"
#include "../profiler/merge/merge.h"
#include "../report/query/common_peak.h"
#include "../report/query/ending.h"
#include "../report/query/estimate.h"
#include "../report/query/marks.h"
#include "../report/query/merged.h"
#include "../report/query/recordings.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHIFT_MAX (INT64_C(1) << 61) /* some 70 years; what is farther away has no time that makes sense */

struct merging {
    const struct arguments *arguments;
    struct recordings list;
    int64_t *mark_ns; /* by recording.number */
    int64_t *shift_ns;
    struct merge_options options;
    struct merge *merge;
    int on_terminal, done, readable, damaged, running, merged_before;
    int inheriting; /* later parts of rotated recordings */
    char *output;   /* where it is */
    int rc;         /* of what ends all */
    struct error err;
};

/* --- what ^C would leave ----------------------------------------------------------------------------------------- */

/* The file, its log, the log's index, and the journal that it has instead of these at its end. */
static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
enum { UNFINISHED = sizeof suffixes / sizeof *suffixes };
static char unfinished[UNFINISHED][PATH_MAX + 32];

static void remove_unfinished(int number)
{
    for (int i = 0; i < UNFINISHED; i++)
        unlink(unfinished[i]);
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_signals(const char *output)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    char *path = merge_file(output);
    for (int i = 0; i < UNFINISHED; i++)
        snprintf(unfinished[i], sizeof unfinished[i], "%s%s", path, suffixes[i]);
    free(path);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (signal(numbers[i], remove_unfinished) == SIG_IGN)
            signal(numbers[i], SIG_IGN);
}

/* --- the first look: what each recording says of itself ---------------------------------------------------------- */

static int look(void *arg, struct recording *r, int index, sqlite3 *db, struct error *err)
{
    struct merging *m = arg;
    const char *mark = m->arguments->value[OPTION_align];
    (void)index;
    m->readable++;
    m->damaged += r->problem != NULL;
    m->merged_before += merged_count(db) > 0;
    m->inheriting += db_meta_int(db, "part", 1) > 1;
    char *partial = db_meta_text(db, "partial");
    if (partial)
        cli_note("%s: partial recording: %s; taken as far as it goes", r->path, partial);
    free(partial);
    char *running = ending_running_text(db);
    if (running)
        cli_note("%s: %s; taken as far as it goes", r->path, running);
    m->running += running != NULL;
    free(running);
    if (m->arguments->given[OPTION_align] && m->rc == 0) {
        m->rc = marks_find_instant(db, "--align", mark, &m->mark_ns[r->number], &m->err);
        if (m->rc)
            error_set(err, EINVAL, "%s", m->err.text);
    }
    return 0;
}

static int is_same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* Whether all times are of one machine's clock. */
static int is_one_clock(const struct recordings *list)
{
    const struct recording *first = NULL;
    int is_one_boot = 1, is_one_host = 1;
    for (int i = 0; i < list->count; i++) {
        const struct recording *r = &list->recording[i];
        if (!r->is_read)
            continue;
        if (!r->start_unix_ns)
            return 0;
        first = first ? first : r;
        is_one_boot &= is_same(r->boot_id, first->boot_id) && r->start_monotonic_ns;
        is_one_host &= is_same(r->host, first->host);
    }
    return is_one_boot || is_one_host;
}

/* The wall clock may have been set between two recordings of one boot: the machine's own clock says how they lie to the
 * first of them. */
static int64_t start_of(const struct recordings *list, const struct recording *r)
{
    for (const struct recording *first = list->recording; first < r; first++) {
        int64_t between, start;
        if (first->is_read && is_same(first->boot_id, r->boot_id) && first->start_monotonic_ns &&
            r->start_monotonic_ns && first->start_unix_ns &&
            !__builtin_sub_overflow(r->start_monotonic_ns, first->start_monotonic_ns, &between) &&
            !__builtin_add_overflow(first->start_unix_ns, between, &start))
            return start;
    }
    return r->start_unix_ns;
}

/* From 0 on, the first recording's beginning. */
static void lay_out(struct merging *m)
{
    int64_t first_ns = INT64_MAX;
    struct recordings *list = &m->list;
    int is_aligned = m->arguments->given[OPTION_align];
    for (int i = 0; i < list->count; i++) {
        const struct recording *r = &list->recording[i];
        int64_t start = is_aligned ? -m->mark_ns[r->number] : start_of(list, r);
        if (!r->is_read)
            continue;
        m->shift_ns[r->number] = start;
        first_ns = start < first_ns && (is_aligned || start > 0) ? start : first_ns;
    }
    for (int i = 0; i < list->count; i++) {
        const struct recording *r = &list->recording[i];
        int64_t *shift = &m->shift_ns[r->number], end;
        if (!r->is_read)
            continue;
        if (__builtin_sub_overflow(*shift, first_ns, shift) || *shift < 0 || *shift > SHIFT_MAX)
            *shift = 0;
        if (!__builtin_add_overflow(*shift, r->duration_ns, &end) && end > m->options.span_ns && end <= SHIFT_MAX)
            m->options.span_ns = end;
        if (*shift == 0 && !m->options.start_unix_ns)
            m->options.start_unix_ns = r->start_unix_ns;
    }
    m->options.is_part = m->damaged > 0;
    m->options.is_one_clock = is_aligned || is_one_clock(list);
    m->options.align = is_aligned ? m->arguments->value[OPTION_align] : NULL;
}

/* --- the second one: what it has --------------------------------------------------------------------------------- */

/* A merged file does not say what its recordings left out. */
static int refuse_thinned(sqlite3 *db, const char *path, struct error *err)
{
    if (db_meta_int(db, "least_bytes", 0) > 0)
        return error_set(err, ENOTSUP,
                         "%s: lacks small blocks (--min-size) and merge adds exact numbers; record it "
                         "without --min-size",
                         path);
    return estimate_refuse(db, path, "merge adds exact numbers", err);
}

static int take(void *arg, struct recording *r, int index, sqlite3 *db, struct error *err)
{
    struct merging *m = arg;
    char *running = ending_running_text(db);
    struct merge_source source = {.path = r->path,
                                  .rank = r->rank,
                                  .shift_ns = m->shift_ns[r->number],
                                  .start_unix_ns = r->start_unix_ns,
                                  .duration_ns = r->duration_ns,
                                  .problem = r->problem,
                                  .running = running};
    (void)index;
    if (m->on_terminal) {
        fprintf(stderr, "\rmemprof: merging %d/%d\x1b[K", ++m->done, m->readable);
        fflush(stderr);
    }
    int rc = 0;
    m->rc = refuse_thinned(db, r->path, &m->err);
    if (m->rc)
        ;
    else if (!m->merge)
        m->rc = merge_copy(db, m->options.output, &m->output, &m->err);
    else
        rc = merge_add(m->merge, db, &source, err);
    free(running);
    return rc;
}

/* --- what all held at one instant -------------------------------------------------------------------------------- */

/* When each of many began, as the merged file has it. 0: not all of what was merged can be read whole, or it is no
 * longer there. */
static int starts_of(const struct merging *m, const struct many *many, int64_t *starts_ns)
{
    int at = 0;
    if (many->read_count < m->readable)
        return 0;
    for (int i = 0; i < many->list.count; i++) {
        while (at < m->list.count && strcmp(m->list.recording[at].path, many->list.recording[i].path) != 0)
            at++;
        if (at == m->list.count || many->list.recording[i].problem)
            return 0;
        starts_ns[i] = m->shift_ns[m->list.recording[at].number];
    }
    return 1;
}

/* As 'memprof report FILE...' has it, from the events. */
static void find_common_peaks(struct merging *m)
{
    const struct many_options options = {.is_by_uuid = 1};
    const char **paths = xcalloc((size_t)m->list.count + 1, sizeof *paths);
    int64_t *starts_ns = xcalloc((size_t)m->list.count + 1, sizeof *starts_ns);
    struct recordings list = {.recording = NULL};
    struct many many = {.files = NULL};
    struct error err;
    int count = 0;
    for (int i = 0; i < m->list.count; i++)
        if (m->list.recording[i].is_read)
            paths[count++] = m->list.recording[i].path;
    if (recordings_find(paths, count, &list, &err) == 0 &&
        many_load(&list, reader_open_some, &options, &many, &err) == 0 && starts_of(m, &many, starts_ns))
        for (int i = 0; i < many.device_count; i++) {
            struct common_peak peak = {.time_ns = -1};
            common_peak_find_at(&many, i, starts_ns, &peak);
            merge_common_peak(m->merge, many.devices[i], peak.least_bytes, peak.most_bytes, peak.time_ns);
        }
    many_free(&many);
    recordings_free(&list);
    free(starts_ns);
    free(paths);
}

static int merge_all(struct merging *m)
{
    watch_signals(m->options.output);
    if (m->readable > 1 || m->damaged || m->running) { /* a copy would pass for a file that is being written */
        lay_out(m);
        m->rc = merge_open(&m->options, &m->merge, &m->err);
        if (m->rc)
            return m->rc;
    }
    recordings_each(&m->list, reader_open_some, take, m);
    if (m->rc == 0 && m->merge && m->options.is_one_clock && !m->merged_before)
        find_common_peaks(m);
    if (m->rc == 0 && m->merge)
        m->rc = merge_close(m->merge, &m->output, &m->err);
    if (m->on_terminal)
        fputs("\r\x1b[K", stderr);
    merge_drop(m->merge);
    return m->rc;
}

/* --- the command ------------------------------------------------------------------------------------------------- */

/* The output may be named by the same pattern as the inputs, from the time before; so may what that one becomes, and
 * the files beside both. */
static const char *input_as_output(const struct merging *m)
{
    static const char *const becomes[] = {"", ".old", ".old~"};
    for (size_t k = 0; k < sizeof becomes / sizeof *becomes; k++) {
        char name[PATH_MAX + 8];
        snprintf(name, sizeof name, "%s%s", m->options.output, becomes[k]);
        for (int i = 0; i < m->list.count; i++)
            if (db_same_file(m->list.recording[i].path, name) || beside_is_name(name, m->list.recording[i].path))
                return m->list.recording[i].path;
    }
    return NULL;
}

static void say(const struct merging *m)
{
    struct stat st = {0};
    char count[UNITS_TEXT], size[UNITS_TEXT];
    stat(m->output, &st);
    cli_note("%s recording%s merged into %s (%s); 'memprof report %s' shows it", units_count(count, m->readable),
             m->readable == 1 ? "" : "s", m->output, units_bytes(size, st.st_size), m->output);
}

static int run(struct merging *m)
{
    recordings_each(&m->list, reader_open_some, look, m);
    recordings_sort(&m->list);
    if (m->rc)
        return m->rc == -EINVAL ? cli_usage("merge: %s", m->err.text) : cli_fail(&m->err);
    int rc = m->readable ? merge_all(m) : 0;
    for (int i = 0; i < m->list.count; i++) {
        char *problem = m->list.recording[i].problem ? recordings_problem(&m->list.recording[i]) : NULL;
        if (problem)
            cli_note("%s%s", problem, m->list.recording[i].is_read && rc == 0 ? "; taken as far as it goes" : "");
        free(problem);
    }
    if (rc)
        return cli_fail_output(rc, &m->err);
    if (m->inheriting)
        cli_note("%d of these began with what a part before had live: allocations and frees add up to the run's, but "
                 "peaks and what is live at the ends hold such blocks once for each part",
                 m->inheriting);
    if (!m->readable) {
        cli_note("merge: none of the files could be read");
        return EXIT_FAILED;
    }
    if (!m->arguments->given[OPTION_quiet])
        say(m);
    return EXIT_OK;
}

int cmd_merge(const struct arguments *a)
{
    struct merging m = {.arguments = a, .on_terminal = isatty(STDERR_FILENO) && !a->given[OPTION_quiet]};
    if (!a->rest_count)
        return cli_usage("merge: no recording given; expected: memprof merge -o ALL.db FILE...");
    if (!a->given[OPTION_merge_output])
        return cli_usage("merge: no output given; name it with -o");
    char *output = output_name(a->value[OPTION_merge_output], &m.err);
    m.options.output = output;
    int status = output ? EXIT_OK : (cli_fail(&m.err), EXIT_USAGE);
    if (status == EXIT_OK && recordings_find((const char *const *)a->rest, a->rest_count, &m.list, &m.err))
        status = cli_fail(&m.err);
    const char *same = status == EXIT_OK ? input_as_output(&m) : NULL;
    if (same)
        status = cli_usage(
            "%s: is one of the recordings and would be replaced; give the merged file another name with -o", same);
    m.mark_ns = xcalloc((size_t)m.list.count + 1, sizeof *m.mark_ns);
    m.shift_ns = xcalloc((size_t)m.list.count + 1, sizeof *m.shift_ns);
    if (status == EXIT_OK)
        status = run(&m);
    recordings_free(&m.list);
    free(m.mark_ns);
    free(m.shift_ns);
    free(m.output);
    free(output);
    return status;
}
