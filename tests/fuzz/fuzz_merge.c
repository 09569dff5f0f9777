/*
 * A merge of a good recording, and of one or two that somebody else changed (change.h), in any order and with any
 * times; then a report on what came of it.
 */
#include "../../cli/cli.h"
#include "../../common/db.h"
#include "../../profiler/merge/merge.h"
#include "../../report/text/info.h"
#include "../../report/text/report.h"
#include "change.h"

static char merged_path[64];
static FILE *null_file;

static void remove_files(void)
{
    unlink(path);
    unlink(merged_path);
}

static void start(void)
{
    change_start();
    snprintf(merged_path, sizeof merged_path, "/dev/shm/memprof-fuzz-%d-all.db", (int)getpid());
    atexit(remove_files);
    null_file = fopen("/dev/null", "w");
}

static void add(struct merge *m, const char *file, int64_t shift_ns, int is_changed)
{
    struct error err;
    sqlite3 *db = NULL;
    struct merge_source source = {.path = file, .rank = shift_ns % 5 - 1, .shift_ns = shift_ns};
    if (reader_open_still(file, &db, &err))
        return;
    if (merge_add(m, db, &source, &err) && !is_changed)
        abort();
    sqlite3_close(db);
}

static void read_merged(const char *output, unsigned by)
{
    struct error err;
    struct report_out out = {.file = null_file, .format = by & 1 ? REPORT_JSON : REPORT_TEXT, .width = 100};
    struct lens_options lens = {.pid = 0};
    struct report_options o = {.top = -1, .frames = 30, .sort = -1, .callers = -1, .lens = &lens};
    sqlite3 *db = NULL;
    if (reader_open(output, &db, &err))
        abort(); /* what a merge writes is sound */
    o.by = (enum row_key)(by / 4 % ROW_KEY_COUNT);
    if (by % 4 == 0)
        report_summary(db, &o, &out, &err);
    else if (by % 4 == 1)
        info_report(db, output, &out, &err);
    else
        report_by(db, &o, &out, &err);
    sqlite3_close(db);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!seed_count)
        start();
    struct input choice = {data, size < 24 ? size : 24}, in = {data + choice.size, size - choice.size};
    unsigned how = input_take(&choice), by = input_take(&choice);
    int64_t span = take_integer(&choice), shift = take_integer(&choice);
    struct merge_options options = {.output = merged_path,
                                    .span_ns = span < 0 ? 0 : span,
                                    .is_one_clock = how & 1,
                                    .start_unix_ns = take_integer(&choice)};
    struct merge *m = NULL;
    struct error err;
    char *output = NULL;
    unlink(merged_path);
    if (merge_open(&options, &m, &err))
        abort();
    if (how & 2)
        add(m, seeds[0].path, 0, 0);
    for (unsigned i = 0; i < 1 + (how >> 4 & 1); i++) {
        change_write(&in, how >> 5);
        add(m, path, shift, 1);
    }
    if (how & 4)
        add(m, seeds[0].path, 1000000, 0);
    int rc = merge_close(m, &output, &err);
    merge_drop(m);
    if (rc == 0)
        read_merged(output, by);
    else if (how & 8)
        fprintf(stderr, "%s\n", err.text);
    free(output);
    return 0;
}
