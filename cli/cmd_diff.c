#include "cli.h"

#include "../report/page/diff_page.h"
#include "../report/query/estimate.h"
#include "../report/query/recordings.h"
#include "../report/text/diff.h"
#include "../report/text/row_columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* In the order of its words (values.def). */
static const enum row_key keys[] = {
#define ROW_KEY(id, name) ROW_##id,
#define ROW_KEY_OF_RUN(id, name)
#include "../report/query/row_keys.def"
};

static int parse_by(const struct arguments *a, enum row_key *by)
{
    int word = 0;
    int status = options_choose(a, OPTION_diff_by, &word);
    if (status == 0)
        *by = keys[word];
    return status;
}

struct files { /* of both sides, the old one's first */
    const char **paths;
    int count, old_count;
    struct recordings found[DIFF_SIDES]; /* where a side has a pattern: who owns its paths */
};

static void close_files(struct files *f)
{
    for (int side = 0; side < DIFF_SIDES; side++)
        recordings_free(&f->found[side]);
    free(f->paths);
}

/* All must be there, so that a pattern without a match is an error. */
static int expand(const char *const *words, int count, struct recordings *found, struct error *err)
{
    int rc = recordings_find(words, count, found, err);
    for (int i = 0; rc == 0 && i < found->count; i++)
        if (found->recording[i].problem)
            rc = error_set(err, ENOENT, "%s", found->recording[i].problem);
    return rc;
}

/* Names stay in their order; where one of a side is a pattern, all of it are sorted as 'memprof report' does. */
static int add_side(struct files *f, int side, const char *const *words, int count, struct error *err)
{
    struct recordings *found = &f->found[side];
    int is_pattern = 0, rc = 0;
    for (int i = 0; i < count; i++)
        is_pattern |= recordings_is_pattern(words[i]);
    if (is_pattern)
        rc = expand(words, count, found, err);
    const int all = is_pattern ? found->count : count;
    const char **paths = xcalloc((size_t)(f->count + all) + 1, sizeof *paths);
    for (int i = 0; i < f->count + all; i++)
        paths[i] = i < f->count ? f->paths[i] : is_pattern ? found->recording[i - f->count].path : words[i - f->count];
    free(f->paths);
    f->paths = paths;
    f->count += all;
    return rc;
}

/* OLD NEW, or OLD... --new NEW... */
static int split_words(const struct arguments *a, int *old_words)
{
    int old = a->rest_count == 2 ? 1 : -1, uses = 0;
    for (int i = 0; i < a->use_count; i++) {
        if (a->use[i].id != OPTION_new)
            continue;
        if (uses++)
            return cli_usage("diff: --new once: all files after it are the new side");
        old = a->use[i].rest_before;
    }
    if (old < 0 && a->rest_count > 2)
        return cli_usage("diff: %d files; which are the new side? memprof diff OLD... --new NEW...", a->rest_count);
    if (old < 1 || old == a->rest_count)
        return cli_usage("diff: two recordings expected: memprof diff OLD NEW");
    *old_words = old;
    return 0;
}

static int find_files(const struct arguments *a, struct files *f, struct diff_report *report)
{
    const char *const *words = (const char *const *)a->rest;
    struct error err;
    int old = 0, status = split_words(a, &old);
    if (status)
        return status;
    int rc = add_side(f, DIFF_OLD, words, old, &err);
    f->old_count = f->count;
    if (rc == 0)
        rc = add_side(f, DIFF_NEW, words + old, a->rest_count - old, &err);
    if (rc)
        return cli_fail(&err);
    report->files[DIFF_OLD] = f->paths;
    report->files[DIFF_NEW] = f->paths + f->old_count;
    report->counts[DIFF_OLD] = f->old_count;
    report->counts[DIFF_NEW] = f->count - f->old_count;
    return 0;
}

static int is_html(const struct arguments *a)
{
    return a->given[OPTION_diff_html] || a->given[OPTION_html_output];
}

/* What does not go with a page of so many recordings. */
static int check_html(const struct arguments *a, int count)
{
    static const enum option_id others[] = {OPTION_diff_by, OPTION_sort, OPTION_stat, OPTION_top,
                                            OPTION_frames,  OPTION_json, OPTION_csv};
    for (size_t i = 0; is_html(a) && i < sizeof others / sizeof *others; i++)
        if (a->given[others[i]])
            return cli_usage("diff: --html writes one page of everything; leave out --%s",
                             option_infos[others[i]].name);
    if (is_html(a) && count > DIFF_SIDES)
        return cli_usage("diff: --html compares two recordings, not %d", count);
    if (!is_html(a) && a->given[OPTION_open])
        return cli_usage("diff: --open belongs to --html");
    return 0;
}

static int write_page(const struct arguments *a, const struct diff_report *report, const struct lens_options *lens,
                      struct error *err)
{
    sqlite3 *const dbs[DIFF_SIDES] = {report->dbs[DIFF_OLD][0], report->dbs[DIFF_NEW][0]};
    struct diff_page_options page = {
        .database_paths = {report->files[DIFF_OLD][0], report->files[DIFF_NEW][0]},
        .page_path = a->value[a->given[OPTION_html_output] ? OPTION_html_output : OPTION_diff_html],
        .open = a->given[OPTION_open],
        .skips = lens->skips,
        .skip_count = lens->skip_count,
        .device = a->value[OPTION_device],
    };
    page.to_stdout = page.page_path && strcmp(page.page_path, "-") == 0;
    return diff_page_write(dbs, &page, err);
}

static int parse(const struct arguments *a, struct files *files, struct diff_report *report)
{
    *report =
        (struct diff_report){.what = {.by = ROW_LINE, .sort = STAT_at_peak_bytes, .device = a->value[OPTION_device]}};
    if (parse_by(a, &report->what.by))
        return EXIT_USAGE;
    report->what.is_sorted = a->given[OPTION_sort] || a->given[OPTION_stat];
    if (a->given[OPTION_sort] && a->given[OPTION_stat])
        return cli_usage("diff: --sort and --stat say the same; leave out one");
    if (a->given[OPTION_sort] && cli_sort("diff", a->value[OPTION_sort], &report->what.sort))
        return EXIT_USAGE;
    if (cli_stat(a, &report->what.sort))
        return EXIT_USAGE;
    if (options_number(a, OPTION_top, 0, INT32_MAX, -1, &report->top) ||
        options_number(a, OPTION_frames, 0, INT32_MAX, 30, &report->frames))
        return EXIT_USAGE;
    int status = find_files(a, files, report);
    return status ? status : check_html(a, files->count);
}

/* Medians of estimates have no error that could be stated, and the page states none. */
static int refuse_sampled(const struct diff_report *report, int is_page, sqlite3 *db, const char *file,
                          struct error *err)
{
    if (report->counts[DIFF_OLD] + report->counts[DIFF_NEW] > DIFF_SIDES)
        return estimate_refuse(db, file, "several recordings of a side are compared by exact numbers", err);
    return is_page
               ? estimate_refuse(db, file, "the page compares exact numbers, while diff without --html has errors", err)
               : 0;
}

static int open_all(struct diff_report *report, int is_page, sqlite3 **dbs, struct error *err)
{
    int rc = 0, at = 0;
    for (int side = 0; side < DIFF_SIDES; side++) {
        report->dbs[side] = dbs + at;
        for (int i = 0; rc == 0 && i < report->counts[side]; i++) {
            rc = reader_open_still(report->files[side][i], &dbs[at++], err);
            if (rc == 0)
                rc = refuse_sampled(report, is_page, dbs[at - 1], report->files[side][i], err);
        }
    }
    return rc;
}

/* --skip: a wrapper may be new, so it need not be in all recordings. */
static int apply_lens(const struct files *files, sqlite3 **dbs, struct lens_options *lens, struct error *err)
{
    uint64_t found = 0;
    int rc = 0;
    lens->skips_found = &found;
    for (int i = 0; rc == 0 && i < files->count; i++)
        rc = lens_apply(dbs[i], lens, err);
    for (int i = 0; rc == 0 && i < lens->skip_count; i++)
        if (!(found >> i & 1))
            rc = error_set(err, EINVAL, "diff: --skip '%s': no such function in these recordings", lens->skips[i]);
    return rc;
}

/* What the command line asks for, of files that were found. */
static int compare(const struct arguments *a, struct diff_report *report, const struct files *files,
                   const struct report_out *out)
{
    struct lens_options lens;
    struct error err = {""};
    int status = cli_lens(a, &lens);
    if (status)
        return status;
    lens.hides_skipped = is_html(a);
    sqlite3 **dbs = xcalloc((size_t)files->count, sizeof(sqlite3 *));
    int rc = open_all(report, is_html(a), dbs, &err), is_open = rc == 0;
    if (is_open)
        rc = apply_lens(files, dbs, &lens, &err);
    if (rc == 0)
        rc = is_html(a) ? write_page(a, report, &lens, &err) : diff_report(report, out, &err);
    status = rc == 0 ? EXIT_OK : rc == -EINVAL && is_open ? cli_usage("%s", err.text) : cli_fail(&err);
    for (int i = 0; i < files->count; i++)
        sqlite3_close(dbs[i]);
    free(dbs);
    return cli_close_output(status);
}

int cmd_diff(const struct arguments *a)
{
    struct diff_report report;
    struct files files = {.paths = NULL};
    struct report_out out;
    int status = cli_output(a, &out);
    if (status == 0 && cli_stat_help(a, &out))
        return cli_close_output(EXIT_OK);
    if (status == 0)
        status = parse(a, &files, &report);
    if (status == 0)
        status = compare(a, &report, &files, &out);
    close_files(&files);
    return status;
}
