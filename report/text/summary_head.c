/* The head of the report without --by: what was run, when, how it ended, notes and findings. */
#include "../../common/db.h"
#include "../../common/units.h"
#include "../../common/wrap.h"
#include "../findings/advice.h"
#include "../findings/finding.h"
#include "../findings/notes.h"
#include "../print/record.h"
#include "../print/table.h"
#include "../query/ending.h"
#include "../query/program_name.h"
#include "../query/recorded.h"
#include "../query/resident.h"
#include "../query/rotated_part.h"
#include "../query/threads.h"
#include "forked.h"
#include "summary.h"

#include <stdlib.h>
#include <string.h>

/* What was run; of one process, what that was last. */
struct subject {
    char *command, *title; /* NULL: not known */
};

static struct subject subject_of(const struct summary *s)
{
    struct subject subject = {NULL, NULL};
    sqlite3_stmt *q = NULL;
    if (!s->options->lens || !s->options->lens->pid)
        return (struct subject){.command = db_meta_text(s->db, "command")};
    if (db_prepare(s->db,
                   "SELECT command_line, " PROGRAM_TITLE("p.process_id") " FROM process p" ORDER_BY_LAST_RECORDED, &q,
                   NULL) == 0 &&
        sqlite3_step(q) == SQLITE_ROW) {
        subject.command = xstrdup(db_text(q, 0));
        subject.title = sqlite3_column_type(q, 1) == SQLITE_NULL ? NULL : xstrdup(db_text(q, 1));
    }
    sqlite3_finalize(q);
    return subject;
}

static void subject_free(struct subject *subject)
{
    free(subject->command);
    free(subject->title);
}

/* One line at most on a terminal: a command may be a whole script. */
static void print_subject(const struct summary *s)
{
    struct buf line = BUF(1 << 20), fitted = BUF(1 << 20), name = BUF(1u << 16);
    struct subject subject = subject_of(s);
    const char *command = subject.command ? subject.command : "(unknown command)";
    if (!subject.title && program_name(&name, command))
        buf_printf(&line, "%s: ", name.data);
    program_process(&line, subject.title, command);
    subject_free(&subject);
    for (char *p = line.data; p && *p; p++)
        if (*p == '\n' || *p == '\t')
            *p = ' ';
    if (line.data && s->out->width > 0)
        text_fit(&fitted, line.data, s->out->width, TEXT_CUT_RIGHT, s->out->utf8);
    table_line(s->out, TABLE_STRONG, fitted.data ? fitted.data : buf_text(&line));
    buf_free(&line);
    buf_free(&fitted);
    buf_free(&name);
}

static void peak_rss(sqlite3 *db, struct buf *line)
{
    struct buf text = BUF(256);
    resident_peak_rss_text(db, &text);
    if (text.length)
        buf_printf(line, ", peak RSS %s", buf_text(&text));
    buf_free(&text);
}

#define SAMPLES_NS 100000000 /* of a run that is as long as some samples, the last one was close to its end */

/* What was resident when the last process was sampled last; 0: not known. */
static int64_t last_rss_bytes(sqlite3 *db)
{
    return db_int(db, "SELECT used_bytes FROM v_layer WHERE device = 'host' AND instant = 'last'", 0);
}

static void last_rss(sqlite3 *db, int64_t lasted_ns, struct buf *line)
{
    char text[UNITS_TEXT];
    int64_t last = last_rss_bytes(db);
    if (last > 0 && lasted_ns >= SAMPLES_NS)
        buf_printf(line, ", %s at the last sample", units_bytes(text, last));
}

static void print_ending(const struct summary *s)
{
    char ending[ENDING_TEXT], line[ENDING_TEXT + 16];
    if (!ending_text(s->db, ending))
        return;
    snprintf(line, sizeof line, "Ended: %s", ending);
    table_line(s->out, TABLE_STRONG, line);
}

void summary_head_print(const struct summary *s)
{
    struct buf line = BUF(1 << 16);
    char *host = db_meta_text(s->db, "host"), date[32], duration[UNITS_TEXT];
    int64_t threads = db_int(s->db, THREADS_SEEN, 0);
    const struct rotated_part part = rotated_part(s->db);
    print_subject(s);
    buf_puts(&line, notes_date(date, wrap_add(db_meta_int(s->db, "start_unix_ns", 0), part.start_ns)));
    if (host) /* an imported snapshot does not say */
        buf_printf(&line, " on %s", host);
    const int64_t lasted_ns = db_meta_int(s->db, "duration_ns", 0) - part.start_ns;
    buf_printf(&line, ", %s, ", units_ns(duration, lasted_ns));
    summary_plural(&line, db_int(s->db, "SELECT count(DISTINCT first_id) FROM v_image", 0), "process", "processes");
    int64_t missing = db_int(s->db, PROCESSES_NOT_RECORDED, 0);
    if (missing)
        buf_printf(&line, " (%s not recorded)", units_count(duration, missing));
    buf_puts(&line, ", ");
    summary_plural(&line, threads, "thread seen", "threads seen"); /* without those that never allocate */
    buf_puts(&line, ", ");
    summary_plural(&line, part.event_count, "event", "events");
    if (!report_is_part(s->options)) {
        peak_rss(s->db, &line);
        last_rss(s->db, lasted_ns, &line);
    }
    table_prose(s->out, TABLE_PLAIN, buf_text(&line));
    print_ending(s);
    if (s->options->lens && s->options->lens->pid)
        forked_print(s->db, s->out);
    notes_print(s->db, s->out);
    advice_print(s->db, s->out);
    findings_print(&s->findings, s->out);
    buf_free(&line);
    free(host);
}

void summary_head_record(const struct summary *s, struct record *document)
{
    record_document_begin(document);
    notes_record(s->db, s->options->file, document);
    if (s->options->lens && s->options->lens->pid) {
        struct subject subject = subject_of(s);
        record_member_int(document, "pid", s->options->lens->pid);
        record_member_text(document, "process_command", subject.command);
        record_member_text(document, "process_title", subject.title);
        subject_free(&subject);
    } else if (resident_peak_rss(s->db) > 0) {
        record_member_int(document, "peak_rss_bytes", resident_peak_rss(s->db));
        record_member_int(document, "peak_rss_sampled", !resident_peak_rss_is_exact(s->db));
        record_member_int(document, "last_rss_bytes", last_rss_bytes(s->db));
    }
    advice_record(s->db, document);
    findings_record(&s->findings, document);
}
