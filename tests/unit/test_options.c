/* The command line: parsing, suggestions, output names. */
#include "../../cli/cli.h"
#include "../../common/near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct arguments arguments;
static char errors[4096];

/* Parses words (NULL at the end) with stderr caught in errors. */
static int parse(enum command_index command, ...)
{
    static char *argv[32];
    int argc = 0;
    va_list words;
    argv[argc++] = (char *)(uintptr_t)command_infos[command].name;
    va_start(words, command);
    while ((argv[argc] = va_arg(words, char *)))
        argc++;
    va_end(words);
    fflush(stderr);
    int saved = dup(2);
    FILE *file = tmpfile();
    dup2(fileno(file), 2);
    int rc = options_parse(command, argc, argv, &arguments);
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    rewind(file);
    errors[fread(errors, 1, sizeof errors - 1, file)] = 0;
    fclose(file);
    return rc;
}

static void test_run(void **state)
{
    (void)state;
    assert_int_equal(parse(COMMAND_run, "-o", "a.db", "--depth=64", "ls", "-l", "--json", NULL), 0);
    assert_string_equal(arguments.value[OPTION_output], "a.db");
    assert_string_equal(arguments.value[OPTION_depth], "64");
    assert_int_equal(arguments.rest_count, 3); /* options after the program are the program's */
    assert_string_equal(arguments.rest[0], "ls");
    assert_int_equal(parse(COMMAND_run, "-q", "--", "-odd", NULL), 0);
    assert_true(arguments.given[OPTION_quiet]);
    assert_string_equal(arguments.rest[0], "-odd");
}

static void test_report(void **state)
{
    (void)state;
    assert_int_equal(parse(COMMAND_report, "a.db", "--by", "line", "--html", NULL), 0);
    assert_int_equal(arguments.rest_count, 1); /* in any order */
    assert_true(arguments.given[OPTION_html]);
    assert_null(arguments.value[OPTION_html]);
    assert_int_equal(parse(COMMAND_report, "--html=p.html", "-i", "-n5", NULL), 0);
    assert_string_equal(arguments.value[OPTION_html], "p.html");
    assert_string_equal(arguments.value[OPTION_top], "5");
    assert_true(arguments.given[OPTION_inclusive]);
    assert_int_equal(parse(COMMAND_report, "--help", NULL), -1);
    assert_int_equal(parse(COMMAND_leaks, "--suppressions", "a", "--suppressions=b", NULL), 0);
    assert_int_equal(arguments.use_count, 2);
    assert_string_equal(arguments.use[0].value, "a");
}

static void bad(int rc, const char *expected)
{
    assert_int_equal(rc, 2);
    if (!strstr(errors, expected))
        fail_msg("expected '%s' in: %s", expected, errors);
    assert_int_equal(strncmp(errors, "memprof: ", 9), 0);
    assert_ptr_equal(strchr(errors, '\n'), errors + strlen(errors) - 1); /* one line */
}

static void test_bad(void **state)
{
    (void)state;
    bad(parse(COMMAND_report, "--devise", "x", NULL), "did you mean '--device'?");
    bad(parse(COMMAND_report, "--zzz", NULL), "unknown option '--zzz'");
    bad(parse(COMMAND_report, "-Z", NULL), "unknown option '-Z'");
    bad(parse(COMMAND_report, "--top", NULL), "option '--top' needs N");
    bad(parse(COMMAND_report, "-n", NULL), "option '--top' needs N");
    bad(parse(COMMAND_report, "--json=x", NULL), "'--json' takes no argument");
    bad(parse(COMMAND_report, "--o", "x", NULL), "ambiguous");
    bad(parse(COMMAND_leaks, "--inclusive", NULL), "unknown option");
    bad(parse(COMMAND_report, "--\033[31m", NULL), "\\x1b");
}

static void test_number(void **state)
{
    (void)state;
    int64_t value;
    assert_int_equal(parse(COMMAND_report, "--top", "12", NULL), 0);
    assert_int_equal(options_number(&arguments, OPTION_top, 0, 100, 7, &value), 0);
    assert_int_equal(value, 12);
    assert_int_equal(options_number(&arguments, OPTION_frames, 0, 100, 7, &value), 0);
    assert_int_equal(value, 7);
    static const char *const wrong[] = {"", "x", "1x", "-1", "101", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(parse(COMMAND_report, "--top", wrong[i], NULL), 0);
        assert_int_equal(options_number(&arguments, OPTION_top, 0, 100, 7, &value), 2);
    }
}

static void test_nearest(void **state)
{
    (void)state;
    static const char *const names[] = {"run", "report", "lines", "leaks", "info", "sql"};
    assert_string_equal(near_name("reprot", names, 6), "report");
    assert_string_equal(near_name("leak", names, 6), "leaks");
    assert_null(near_name("ls", names, 6));
    assert_null(near_name("gawk", names, 6));
    assert_null(near_name("averyveryverylongnamethatisnotnearanythingatall", names, 6));
}

static void name_is(const char *pattern, const char *expected)
{
    struct error err;
    char *name = output_name(pattern, &err);
    if (!expected) {
        assert_null(name);
        assert_int_equal(strncmp(err.text, "-o", 2), 0);
    } else if (!name || strcmp(name, expected) != 0) {
        fail_msg("'%s': expected '%s', got '%s'", pattern, expected, name ? name : err.text);
    }
    free(name);
}

static void test_output_name(void **state)
{
    (void)state;
    char pid[64];
    setenv("RANK", "7", 1);
    setenv("UP", "..", 1);
    setenv("DOT", ".", 1);
    setenv("PATHS", "../../etc/x\n", 1);
    unsetenv("NONE");
    snprintf(pid, sizeof pid, "a.%ld.db", (long)getpid());
    name_is("out.db", "out.db");
    name_is("a.%p.db", pid);
    name_is("%q{RANK}%%.db", "7%.db");
    name_is("dir/%q{PATHS}.db", "dir/.._.._etc_x_.db");
    name_is("dir/%q{UP}/a.db", "dir/__/a.db");
    name_is("dir/%q{UP}", "dir/__");
    name_is(".%q{DOT}/a.db", "__/a.db");
    name_is("../a.db", "../a.db"); /* what the user typed is the user's */
    name_is("%q{NONE}", NULL);
    name_is("%q", NULL);
    name_is("%q{}", NULL);
    name_is("%q{RANK", NULL);
    name_is("%z", NULL);
    name_is("a%", NULL);
    name_is("", NULL);
    char *longest = malloc(10000);
    memset(longest, 'a', 9999);
    longest[9999] = 0;
    name_is(longest, NULL);
    free(longest);
}

static void rank_is(const char *pattern, const char *name, int64_t expected)
{
    char found[OUTPUT_RANK_NAME];
    int64_t rank = -1;
    int has = output_rank(pattern, found, &rank);
    if (has != (name != NULL))
        fail_msg("%s: %s", pattern, has ? found : "no rank");
    if (name) {
        assert_string_equal(found, name);
        assert_int_equal(rank, expected);
    }
}

static void test_output_rank(void **state)
{
    (void)state;
    static const char *const names[] = {"RANK",     "LOCAL_RANK",          "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                        "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID",         "SHARD"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    rank_is("run.%q{RANK}.db", NULL, 0);
    setenv("SHARD", "5", 1);
    rank_is("run.%q{SHARD}.db", NULL, 0); /* a number, but of what? */
    setenv("SLURM_PROCID", "11", 1);
    rank_is("out.db", "SLURM_PROCID", 11);
    setenv("RANK", "3", 1);
    rank_is("out.db", "RANK", 3);
    setenv("LOCAL_RANK", "1", 1);
    rank_is("%h.%q{LOCAL_RANK}.db", "LOCAL_RANK", 1); /* as the user says */
    rank_is("%%q{LOCAL_RANK}.db", "RANK", 3);
    setenv("RANK", "3x", 1);
    rank_is("run.%q{RANK}.db", "SLURM_PROCID", 11);
    setenv("RANK", "-1", 1);
    rank_is("run.%q{RANK}.db", "SLURM_PROCID", 11);
    setenv("RANK", "99999999999999999999", 1);
    rank_is("run.%q{RANK}.db", "SLURM_PROCID", 11);
    rank_is("%q{", "SLURM_PROCID", 11);
    unsetenv("SLURM_PROCID");
    unsetenv("LOCAL_RANK");
    setenv("RANK", "7", 1);
}

/* The descriptions hold together: letters are unique within a command, every option has a help. */
static void test_table(void **state)
{
    (void)state;
    for (int i = 0; i < OPTION_COUNT; i++) {
        assert_true(strlen(option_infos[i].help) > 5);
        for (int k = i + 1; k < OPTION_COUNT; k++) {
            if (!(option_infos[i].commands & option_infos[k].commands))
                continue;
            assert_false(option_infos[i].letter && option_infos[i].letter == option_infos[k].letter);
            assert_string_not_equal(option_infos[i].name, option_infos[k].name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),         cmocka_unit_test(test_report),  cmocka_unit_test(test_bad),
        cmocka_unit_test(test_number),      cmocka_unit_test(test_nearest), cmocka_unit_test(test_output_name),
        cmocka_unit_test(test_output_rank), cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
