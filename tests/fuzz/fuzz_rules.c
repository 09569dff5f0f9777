/*
 * fuzz_rules.c: files of rules, which are taken from whoever writes them: what one says is held against a recording
 * ($FUZZ_DATABASE), as rules and as a baseline, and written in every form.
 */
#include "../../cli/cli.h"
#include "../../report/check/check.h"
#include "input.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RULES_MOST = 200 }; /* of them one measures as others do: a thousand would only be slower */

static sqlite3 *db;
static FILE *null_file;

static void hold(const struct check_rules *rules, unsigned form)
{
    struct suppressions none = {0};
    struct lens_options lens = {0};
    struct check_baseline baseline = {.file = "rules", .values = *rules};
    struct check_options o = {.file = "seed.db",
                              .lens = &lens,
                              .suppressions = &none,
                              .rules = rules,
                              .baseline = form & 8 ? &baseline : NULL,
                              .top = form & 16 ? 0 : 3,
                              .frames = 10};
    const struct report_out out = {
        .file = null_file, .format = (enum report_format)(form % 3), .width = form & 4 ? 80 : 0, .color = 1, .utf8 = 1};
    struct check_results results;
    struct error err;
    if (check_measure(db, &o, &results, &err) == 0) {
        check_print(db, &o, &results, &out, &err);
        check_junit(db, &o, &results, null_file, &err);
        check_annotate(&o, &results, "/", null_file);
    }
    check_results_free(&results);
}

/* FUZZ_DATABASE may name several. */
static const char *first_seed(void)
{
    static char first[4096];
    const char *names = getenv("FUZZ_DATABASE");
    snprintf(first, sizeof first, "%.*s", names ? (int)strcspn(names, ":") : 0, names ? names : "");
    return first;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct check_rules rules = {0};
    struct error err = {""};
    unsigned form = input_take(&in);
    if (!db && reader_open(first_seed(), &db, &err)) {
        fputs("fuzz_rules: FUZZ_DATABASE names no recording\n", stderr);
        exit(2);
    }
    if (!null_file)
        null_file = fopen("/dev/null", "w");
    int rc = check_rules_parse(&rules, "rules", (const char *)in.data, in.size, &err);
    if (rc && (strncmp(err.text, "rules:", 6) != 0 || strchr(err.text, '\n')))
        abort();
    if (rc == 0 && rules.count <= RULES_MOST)
        hold(&rules, form);
    check_rules_free(&rules);
    return 0;
}
