#include "cli.h"

#include "../common/buf.h"
#include "../common/db.h"
#include "../common/replace.h"
#include "../common/text.h"
#include "../profiler/collect/collect.h"
#include "../profiler/collect/program.h"
#include "../report/check/check.h"
#include "../report/query/ending.h"
#include "../report/query/estimate.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct command {
    struct check_rules rules;
    struct check_baseline baseline;
    struct suppressions suppressions;
    struct lens_options lens;
    struct check_options options;
    struct report_out out;
    char *const *program; /* NULL: a file is read */
    int64_t run_count;
    /* of each run */
    struct collect_result run[CHECK_RUNS_MAX];
    sqlite3 *db[CHECK_RUNS_MAX];
    int db_count;
    char *failed; /* what to say of it */
};

/* Options that only a program that is run has a use for. */
static const enum option_id of_runs[] = {OPTION_output,        OPTION_no_follow, OPTION_aggregate,
                                         OPTION_depth,         OPTION_source,    OPTION_python_allocators,
                                         OPTION_cuda_delivery, OPTION_deepbind,  OPTION_no_heap_sample,
                                         OPTION_repeat,        OPTION_quiet};

static int parse_words(const struct arguments *a, struct command *c)
{
    const int words = a->dashes < 0 ? a->rest_count : a->dashes;
    c->program = a->dashes < 0 ? NULL : a->rest + a->dashes;
    if (a->dashes == a->rest_count)
        return cli_usage("check: no program after --; expected: memprof check RULES -- PROGRAM [ARG...]");
    if (c->program && words)
        return cli_usage("check: a FILE or a PROGRAM, not '%s' and '%s'", a->rest[0], c->program[0]);
    if (words > 1)
        return cli_usage("check: one FILE at a time, not also '%s'; a program comes after --", a->rest[1]);
    for (size_t i = 0; !c->program && i < sizeof of_runs / sizeof *of_runs; i++)
        if (a->given[of_runs[i]])
            return cli_usage("check: --%s belongs to a program that is run: memprof check RULES -- PROGRAM [ARG...]",
                             option_infos[of_runs[i]].name);
    c->options.file = words ? a->rest[0] : "out.db";
    return 0;
}

static int parse_rules(const struct arguments *a, struct command *c)
{
    struct error err;
    for (int i = 0; i < a->use_count; i++) {
        const char *name = option_infos[a->use[i].id].name;
        char origin[64];
        int rc = 0;
        snprintf(origin, sizeof origin, "--%s", name);
        if (a->use[i].id == OPTION_rules)
            rc = check_rules_load(&c->rules, a->use[i].value, &err);
        else if (a->use[i].id == OPTION_suppressions)
            rc = suppressions_load(&c->suppressions, a->use[i].value, &err);
        else if (check_is_setting(name))
            rc = check_rules_add(&c->rules, name, a->use[i].value, origin, &err);
        if (rc)
            return check_is_setting(name) ? cli_usage("check: %s", err.text) : cli_usage("%s", err.text);
    }
    if (!c->rules.count && !a->given[OPTION_baseline] && !a->given[OPTION_write_baseline])
        return cli_usage(
            "check: no rule given; try --max-peak 2G, --max-leak 0 or --rules FILE ('memprof check --help')");
    if (!a->given[OPTION_baseline] && (a->given[OPTION_max_growth] || a->given[OPTION_growth_floor]))
        return cli_usage("check: --max-growth and --growth-floor are measured from a --baseline FILE");
    return 0;
}

static int parse(const struct arguments *a, struct command *c)
{
    struct check_options *o = &c->options;
    *o = (struct check_options){.device = a->value[OPTION_device],
                                .kind = a->value[OPTION_kind],
                                .lens = &c->lens,
                                .suppressions = &c->suppressions,
                                .all = a->given[OPTION_check_all],
                                .rules = &c->rules};
    if (cli_output(a, &c->out) || cli_lens(a, &c->lens) ||
        options_number(a, OPTION_check_top, 0, INT32_MAX, 3, &o->top) ||
        options_number(a, OPTION_check_frames, 0, INT32_MAX, 10, &o->frames) ||
        options_number(a, OPTION_repeat, 1, CHECK_RUNS_MAX, 1, &c->run_count) || parse_words(a, c) || parse_rules(a, c))
        return EXIT_USAGE;
    if (a->given[OPTION_github] && c->out.format != REPORT_TEXT)
        return cli_usage("check: --github and --%s both write to standard output; ask for one of them",
                         c->out.format == REPORT_JSON ? "json" : "csv");
    return 0;
}

/* --- files --- */

static int is_database(const char *path)
{
    static const char magic[] = "SQLite format 3";
    char head[sizeof magic] = "";
    struct stat st;
    FILE *file = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "re") : NULL; /* a pipe is read but once */
    size_t length = file ? fread(head, 1, sizeof head, file) : 0;
    if (file)
        fclose(file);
    return length == sizeof head && memcmp(head, magic, sizeof head) == 0;
}

/* Settings that the command line does not have are the file's. */
static void take_settings(struct check_rules *to, const struct check_rules *from)
{
    if (!to->has_percent && !to->has_growth_bytes) {
        to->has_percent = from->has_percent;
        to->percent = from->percent;
        to->has_growth_bytes = from->has_growth_bytes;
        to->growth_bytes = from->growth_bytes;
    }
    if (!to->has_floor)
        to->floor_bytes = from->floor_bytes;
    if (!to->has_warmup && from->has_warmup) {
        to->has_warmup = 1;
        to->warmup = from->warmup;
    }
}

/* Of a recording the numbers are those that --write-baseline would write. Before a program is run: what is wrong with
 * the file is then known at once. */
static int open_baseline(struct command *c, const char *path, struct error *err)
{
    struct check_baseline *b = &c->baseline;
    struct check_options options = c->options;
    if (!path)
        return 0;
    b->file = options.file = path;
    c->options.baseline = b;
    int rc = 0;
    if (access(path, R_OK) || !is_database(path)) {
        rc = check_rules_load(&b->values, path, err);
        if (rc == 0 && !b->values.count)
            rc = error_set(err, EINVAL,
                           "%s: no rule in it to measure growth from; 'memprof check FILE --write-baseline BASELINE' "
                           "writes some",
                           path);
    } else {
        struct lens_options lens = c->lens;
        uint64_t found = 0;
        lens.skips_found = &found; /* a wrapper may be new */
        rc = reader_open_still(path, &b->db, err);
        if (rc == 0)
            rc = estimate_refuse(b->db, path, "check holds exact numbers to bounds", err);
        if (rc == 0)
            rc = lens_apply(b->db, &lens, err);
        if (rc == 0 && c->options.device)
            options.device = NULL; /* it may be new, too; others are left out later */
        if (rc == 0)
            rc = check_rules_of(b->db, &options, &b->values, err);
    }
    take_settings(&c->rules, &b->values);
    return rc;
}

typedef int write_function(const struct command *c, FILE *file, struct error *err);

static int write_rules(const struct command *c, FILE *file, struct error *err)
{
    return check_write_rules(c->db, c->db_count, &c->options, file, err);
}

static struct check_results results;

static int write_junit(const struct command *c, FILE *file, struct error *err)
{
    return check_junit(c->db[0], &c->options, &results, file, err);
}

static int is_read(const struct command *c, const char *path)
{
    int is = db_same_file(path, c->options.file) || (c->baseline.db && db_same_file(path, c->baseline.file));
    for (int i = 0; i < c->db_count; i++)
        is |= c->run[i].output && db_same_file(path, c->run[i].output);
    return is;
}

/* Whatever else this check reads or runs. */
static int is_input(const struct arguments *a, const struct command *c, const char *path)
{
    char program[PATH_MAX];
    int is = a->given[OPTION_baseline] && db_same_file(path, a->value[OPTION_baseline]);
    for (int i = 0; i < a->use_count; i++)
        if (a->use[i].id == OPTION_rules || a->use[i].id == OPTION_suppressions)
            is |= db_same_file(path, a->use[i].value);
    return is || (c->program && program_find(c->program[0], program, NULL) == 0 && db_same_file(path, program));
}

/* Before anything runs. A device or a pipe is not replaced, and may be both. */
static int check_outputs(const struct arguments *a, const struct command *c)
{
    static const enum option_id outputs[] = {OPTION_write_baseline, OPTION_junit};
    struct error err;
    struct stat st;
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        const char *path = a->value[outputs[i]];
        if (!path || stat(path, &st) || !S_ISREG(st.st_mode))
            continue;
        if (!c->program && is_read(c, path))
            return cli_usage("check: %s: is the recording itself; give what is written another name", path);
        if (is_input(a, c, path))
            return cli_usage("check: %s: is read by this check; give what is written by --%s another name", path,
                             option_infos[outputs[i]].name);
        if (db_check_replaced(path, &err))
            return cli_usage("check: %s", err.text);
    }
    return 0;
}

/* path NULL: not asked for. */
static int write_file(const struct command *c, const char *path, write_function *write, struct error *err)
{
    struct replace replace;
    if (!path)
        return 0;
    if (is_read(c, path))
        return error_set(err, EINVAL, "check: %s: is the recording itself; give what is written another name", path);
    int rc = replace_open(&replace, path, err);
    return rc ? rc : replace_close(&replace, write(c, replace.out, err), err);
}

/* --- */

static int print_all(const struct arguments *a, struct command *c, struct error *err)
{
    int has_rules = c->rules.count || a->given[OPTION_baseline];
    int rc = write_file(c, a->value[OPTION_write_baseline], write_rules, err);
    if (rc == 0)
        rc = write_file(c, a->value[OPTION_junit], write_junit, err);
    if (rc == 0 && has_rules)
        rc = check_print(c->db[0], &c->options, &results, &c->out, err);
    if (rc == 0 && a->given[OPTION_github]) {
        const char *workspace = getenv("GITHUB_WORKSPACE");
        char *here = getcwd(NULL, 0);
        check_annotate(&c->options, &results, workspace && *workspace ? workspace : here, c->out.file);
        free(here);
    }
    return rc;
}

/* One recording, beside those of the runs before. */
static int measure(struct command *c, const char *file, struct error *err)
{
    struct check_results one = {0};
    sqlite3 **db = &c->db[c->db_count];
    int rc = reader_open_still(file, db, err);
    c->db_count++; /* to be closed */
    if (rc == 0)
        rc = estimate_refuse(*db, file, "check holds exact numbers to bounds", err);
    if (rc == 0)
        rc = lens_apply(*db, &c->lens, err);
    if (rc == 0)
        rc = check_measure(*db, &c->options, &one, err);
    if (rc == 0)
        check_results_join(&results, &one);
    check_results_free(&one);
    return rc;
}

/* "out-3.db": each run's recording stays, for 'memprof diff'. */
static char *name_of_run(const char *name, int64_t run)
{
    struct buf text = BUF(1 << 16);
    size_t length = strlen(name);
    int has_suffix = length > 3 && strcmp(name + length - 3, ".db") == 0;
    buf_printf(&text, "%.*s-%lld%s", (int)length - (has_suffix ? 3 : 0), name, (long long)run + 1,
               has_suffix ? ".db" : "");
    return buf_take(&text);
}

/* Runs the program: 0, or what to exit with. */
static int run(const struct arguments *a, struct command *c, int64_t number)
{
    struct collect_result *result = &c->run[number];
    struct arguments named = *a;
    char *name = NULL;
    if (c->run_count > 1) {
        name = name_of_run(a->given[OPTION_output] ? a->value[OPTION_output] : "out.db", number);
        named.given[OPTION_output] = 1;
        named.value[OPTION_output] = name;
    }
    int rc = run_program(&named, c->program, result);
    free(name);
    if (rc)
        return EXIT_USAGE;
    return result->recorded ? 0 : result->status ? result->status : EXIT_USAGE; /* why was said */
}

/* Of the last run: no other follows one that failed. */
static void look_at_end(struct command *c)
{
    struct buf text = BUF(1 << 12);
    char ended[ENDING_TEXT];
    sqlite3 *db = c->db[c->db_count - 1];
    const int status = c->run[c->db_count - 1].status;
    c->options.is_killed = ending_is_killed(db);
    if (!status && !c->options.is_killed)
        return;
    ending_text(db, ended);
    if (c->options.is_killed)
        buf_printf(&text, "The program was %s", ended);
    else
        buf_printf(&text, "The program ended with exit status %d", status);
    if (c->run_count > 1)
        buf_printf(&text, " in run %d of %lld", c->db_count, (long long)c->run_count);
    c->options.failed = c->failed = buf_take(&text);
}

/* The program's status, of the first run that failed, which is the last one; or what to exit with. */
static int run_all(const struct arguments *a, struct command *c, int *status, struct error *err)
{
    const off_t input =
        lseek(STDIN_FILENO, 0, SEEK_CUR); /* each run reads the same file; of a pipe the first has all */
    for (int64_t i = 0; i < c->run_count && *status == 0; i++) {
        if (i && input >= 0)
            lseek(STDIN_FILENO, input, SEEK_SET);
        int rc = run(a, c, i);
        if (rc)
            return rc;
        *status = c->run[i].status;
        c->options.file = c->run[0].output;
        if (measure(c, c->run[i].output, err)) {
            cli_fail(err);
            return *status ? *status : EXIT_USAGE;
        }
    }
    look_at_end(c);
    return 0;
}

static int check(const struct arguments *a, struct command *c, struct error *err)
{
    int program_status = 0;
    int status = c->program ? run_all(a, c, &program_status, err) : 0;
    if (status)
        return status;
    if ((!c->program && measure(c, c->options.file, err)) || print_all(a, c, err)) {
        cli_fail(err);
        status = EXIT_USAGE;
    } else {
        status = results.counts[CHECK_BROKEN] || results.counts[CHECK_UNKNOWN] ? EXIT_FAILED : EXIT_OK;
    }
    return program_status ? program_status : status;
}

int cmd_check(const struct arguments *a)
{
    static struct command c; /* the results of each run are in it */
    struct error err = {""};
    int status = parse(a, &c);
    if (status == 0)
        status = check_outputs(a, &c);
    if (status == 0 && open_baseline(&c, a->value[OPTION_baseline], &err)) {
        cli_fail(&err);
        status = EXIT_USAGE;
    }
    if (status == 0) {
        status = check(a, &c, &err);
        status = cli_close_output(status);
    }
    check_results_free(&results);
    check_rules_free(&c.rules);
    check_rules_free(&c.baseline.values);
    sqlite3_close(c.baseline.db);
    suppressions_free(&c.suppressions);
    free(c.failed);
    for (int i = 0; i < CHECK_RUNS_MAX; i++) {
        sqlite3_close(c.db[i]);
        free(c.run[i].output);
    }
    return status;
}
