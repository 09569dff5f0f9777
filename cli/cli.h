/*
 * cli.h: what the subcommands share: messages on stderr, exit codes, opening a database, the output's properties.
 */
#ifndef MEMPROF_CLI_H
#define MEMPROF_CLI_H

#include "../common/error.h"
#include "../report/live/site_names.h"
#include "../report/print/out.h"
#include "../report/query/lens.h"
#include "options.h"

#include <sqlite3.h>

#ifndef MEMPROF_CUDA
#define MEMPROF_CUDA 1
#endif

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* "memprof: TEXT" on stderr; control characters never get through. Return EXIT_FAILED and EXIT_USAGE. */
int cli_fail(const struct error *err);
/* The same, of a run or an import: EXIT_USAGE where it refused the output's name (-EEXIST). */
int cli_fail_output(int rc, const struct error *err);
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A database for reading: finishes what a killed collector or --no-symbols left (in place where it can, else in a
 * temporary copy), and uses memprof's own view definitions. Close with sqlite3_close. 0 or -errno with err. */
int reader_open(const char *path, sqlite3 **db, struct error *err);
/* The same as one state, also of a file that is being written: all queries are one transaction, which saves each of
 * them its locks (half the time of a report by stack). */
int reader_open_still(const char *path, sqlite3 **db, struct error *err);
/* One that is being written, as it lies there: without symbols, and without accounts. 1; 0: it is not, nothing is open.
 */
int reader_open_running(const char *path, sqlite3 **db, struct error *err);
/* The same, for who asks for no account of what a row calls: of a running recording none is made, which is less work.
 */
int reader_open_self(const char *path, sqlite3 **db, struct error *err);
/* The same, for one of several files: 1 with err where only a part of it can be read, as one that was cut off. */
int reader_open_some(const char *path, sqlite3 **db, struct error *err);

/* The FILE argument, default out.db; NULL after a usage message when there is more than one. */
const char *cli_file(const struct arguments *a);
/* The PID or FILE argument of a command that looks at a recording while it is made: its file, to free. Without one: the
 * only one that is made in this directory, or else at all, or else out.db. 0, or an exit status after a message. */
int cli_running(const struct arguments *a, char **file);
/* How such a command opens it for the names of lines: with --skip. 0 or EXIT_USAGE after a message. */
int cli_running_names(const struct arguments *a, site_names_open **open);
/* Whether several recordings are named, by words or a pattern; their report. */
int cli_is_many(const struct arguments *a);
int cli_report_many(const struct arguments *a);
/* The options as typed, for meta 'options'. To free. */
char *cli_options_text(const struct arguments *a);
/* --json, --csv, --color, the terminal. 0 or EXIT_USAGE after a message. */
int cli_output(const struct arguments *a, struct report_out *out);
/* --skip, --process, --native, --python-only. 0 or EXIT_USAGE after a message. */
int cli_lens(const struct arguments *a, struct lens_options *lens);
struct report_options;
/* --at. 0 or EXIT_USAGE after a message. */
int cli_at(const struct arguments *a, const char *command, struct report_options *o);
/* --sort of a command: the number of a statistic. 0 or EXIT_USAGE after a message. */
int cli_sort(const char *command, const char *text, int *stat);
/* --stat: the same; *stat stays what it is where it was not given. */
int cli_stat(const struct arguments *a, int *stat);
/* Whether --sort help or --stat help was asked for, which is then printed. */
int cli_stat_help(const struct arguments *a, const struct report_out *out);
/* The same of mark:NAME, once the recording is open. -EINVAL with err. */
int cli_at_mark(const struct arguments *a, sqlite3 *db, struct report_options *o, struct error *err);

/* --also-json: file NULL where it is not given. 0, or -errno with err; -EINVAL: it is the recording. */
int cli_also_open(const struct arguments *a, const char *recording, const struct report_out *out,
                  struct report_out *also, struct error *err);
/* Around the first time that the report is made. */
int cli_also_first(sqlite3 *db, const struct report_out *also, struct error *err);
int cli_also_second(sqlite3 *db, struct error *err);
/* rc, that of the report so far, or what went wrong with the second file. */
int cli_also_close(struct report_out *also, const struct arguments *a, int rc, struct error *err);

struct cli_window {
    struct lens_window lens;
    struct window_range *ranges;
    char *name, *options;
};
/* --from, --to, --during: the lens gets the window, which stays the caller's to free. Whole runs are no window. 0, or
 * -errno with err; -EINVAL: the user's mistake. */
int cli_window_open(const struct arguments *a, sqlite3 *db, struct lens_options *lens, struct cli_window *w,
                    struct error *err);
void cli_window_close(struct cli_window *w);
static inline int cli_has_window(const struct arguments *a)
{
    return a->given[OPTION_from] || a->given[OPTION_to] || a->given[OPTION_during];
}
/* Of a pass over the events, on the terminal: one line that is rewritten, and goes away at 100. context is ignored. */
void cli_show_progress(void *context, int percent);
/* Flushes stdout; status, or EXIT_FAILED with a message when it could not be written. */
int cli_close_output(int status);

/* Absolute path of libmemprof.so, to free; NULL with err. */
char *cli_library(struct error *err);
/* The directory of the Python module, beside it; NULL where it is not. The caller frees it. */
char *cli_python_path(struct error *err);
/* Replaces %p, %h, %q{NAME} and %% in the name of an output; to free; NULL with err. */
char *output_name(const char *pattern, struct error *err);
/* Which rank of a job this is: of a %q{NAME} in the name, where NAME says that it is one, else of what launchers set.
 * 1 with the variable's name and its value, or 0. */
enum { OUTPUT_RANK_NAME = 128 };
int output_rank(const char *pattern, char name[OUTPUT_RANK_NAME], int64_t *rank);

/* Records a program as the command's options say. 0: it ran, and result (whose output is to free) says the rest; else
 * minus the exit status, after a message. */
struct collect_result;
int run_program(const struct arguments *a, char *const program[], struct collect_result *result);

struct torch_run;
/* After a run with --torch-snapshot: imports what PyTorch left, compares it with the recording and says so. */
void torch_check(const struct torch_run *t, const char *output, int quiet);

#define COMMAND(id, name, args, help, text) int cmd_##id(const struct arguments *a);
#include "commands.def"
#undef COMMAND

#endif
