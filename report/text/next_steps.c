/* What a reader may do next, below the tables of `memprof report`. */
#include "next_steps.h"

#include "../../common/db.h"
#include "../../common/module_kind.h"
#include "../print/command.h"
#include "../query/file_holds.h"
#include "../query/noise.h"
#include "../query/program_name.h"
#include "../query/programs.h"
#include "../query/source.h"
#include "../query/wrapper.h"
#include "folded.h"
#include "nothing.h"

#include <stdlib.h>
#include <string.h>

/* The script that an interpreter ran, where its lines are in the recording and hold something (a wrapper may only start
 * the program that does): they are the reader's own, while the line
 * that holds most is often a library's. */
static int find_script(const struct summary *s, struct buf *script)
{
    /* of a running recording there may be no account of what a file calls: then file_holds says it */
    static const char sql[] =
        "WITH held AS (SELECT key_id, at_peak_bytes FROM account WHERE scope = 'file' AND inclusive = 1 AND kind = "
        "'all') SELECT path, file_id, NOT EXISTS (SELECT 1 FROM held), EXISTS (SELECT 1 FROM held h WHERE h.key_id = "
        "f.file_id AND h.at_peak_bytes > (SELECT max(at_peak_bytes) FROM held) / 100) FROM file f WHERE substr(path, "
        "-length(?1) - 1) = '/' || ?1";
    sqlite3_stmt *q = NULL;
    char *command = db_meta_text(s->db, "command");
    int found = 0;
    program_name(script, command ? command : "");
    if (script->length && db_prepare(s->db, sql, &q, NULL) == 0) {
        sqlite3_bind_text(q, 1, script->data, -1, SQLITE_STATIC);
        while (!found && sqlite3_step(q) == SQLITE_ROW)
            found = (sqlite3_column_int(q, 2) ? file_holds(s->db, sqlite3_column_int64(q, 1), 100)
                                              : sqlite3_column_int(q, 3)) &&
                    source_is_there(s->db, db_text(q, 0));
    }
    sqlite3_finalize(q);
    free(command);
    return found;
}

/* A build, a pipeline: more than one program and the shell or wrapper that started it. */
static int has_programs(const struct summary *s)
{
    return !(s->options->lens && s->options->lens->pid) &&
           db_int(s->db, "SELECT count(DISTINCT exe) FROM process", 0) > 2;
}

/* Whether `memprof leaks` has anything to list, as it leaves out what libraries keep for themselves; of a window it has
 * to be asked. */
static int has_ends(const struct summary *s)
{
    int is_all = !(s->options->lens && s->options->lens->pid);
    int64_t count = db_int(s->db, "SELECT CAST(total(end_count) AS INTEGER) FROM total WHERE kind = 'all'", 1);
    for (int noise = NOISE_NONE + 1; noise < NOISE_KINDS && is_all; noise++)
        count -= folded_kept(s, noise).count;
    return report_window(s->options) || count > 0;
}

/* Of a build's or a pipeline's processes, the one where most is to be seen. */
static void print_leaks_hint(const struct summary *s, const char *head, const char *file)
{
    struct buf line = BUF(1 << 16), name = BUF(1 << 16);
    int is_all = !(s->options->lens && s->options->lens->pid) && !report_window(s->options);
    int64_t pid = is_all ? programs_other_pid(s->db, s->findings.largest_id, &name) : 0;
    buf_printf(&line, "%smemprof leaks%s", head, file);
    if (pid)
        buf_printf(&line, " --process %lld   (%s, which had most live at its end)", (long long)pid, buf_text(&name));
    table_line(s->out, TABLE_DIM, buf_text(&line));
    buf_free(&line);
    buf_free(&name);
}

/* <module>, <lambda>, <listcomp>: their file is offered, if it is the program's. */
static int is_in_every_file(const char *name)
{
    return *name == '<' && strchr(name, '>') == name + strlen(name) - 1;
}

void next_steps_print(const struct summary *s)
{
    if (nothing_was_recorded(s->db)) {
        fputc('\n', s->out->file);
        nothing_say(&(struct report_options){.by = ROW_LINE}, s->out);
        return;
    }
    struct buf file = BUF(1 << 16), line = BUF(1 << 16);
    command_add_file(&file, s->options->file);
    if (report_window(s->options) && report_window(s->options)->options)
        buf_puts(&file, report_window(s->options)->options);
    const char *name = buf_text(&file), *head = "Next: ";
    struct buf skip = BUF(1 << 16);
    wrapper_add_options(buf_text(&s->skip), &skip);
    findings_skips(&s->findings, &skip);
    fputc('\n', s->out->file);
    struct buf script = BUF(1 << 16);
    if (find_script(s, &script)) {
        buf_printf(&line, "%smemprof lines%s --file ", head, name);
        buf_shell(&line, script.data);
        table_line(s->out, TABLE_DIM, buf_text(&line));
        head = "      ";
    } else if (s->hint.plain_name && is_in_every_file(s->hint.plain_name)) {
        if (!module_is_python_library(s->hint.file)) {
            buf_printf(&line, "%smemprof lines%s --file ", head, name);
            buf_shell(&line, text_basename(s->hint.file));
            table_line(s->out, TABLE_DIM, buf_text(&line));
            head = "      ";
        }
    } else if (s->hint.plain_name && !text_is_endless(s->hint.plain_name)) {
        buf_printf(&line, "%smemprof lines%s --func ", head, name);
        buf_shell(&line, s->hint.plain_name);
        table_line(s->out, TABLE_DIM, buf_text(&line));
        head = "      ";
    }
    if (skip.length) {
        const struct lens_options *lens = s->options->lens;
        buf_reset(&line);
        buf_printf(&line, "%smemprof report%s", head, name);
        for (int i = 0; lens && i < lens->skip_count; i++) {
            buf_puts(&line, " --skip ");
            buf_shell(&line, lens->skips[i]);
        }
        buf_printf(&line, "%s   (counts what these only pass on to their callers)", skip.data);
        table_line(s->out, TABLE_DIM, buf_text(&line));
        head = "      ";
    }
    /* of code without lines, and behind wrappers, whole stacks say who it is */
    if (skip.length || !s->hint.file) {
        buf_reset(&line);
        buf_printf(&line, "%smemprof report%s --by stack --top 3", head, name);
        table_line(s->out, TABLE_DIM, buf_text(&line));
        head = "      ";
    }
    if (has_programs(s)) {
        buf_reset(&line);
        buf_printf(&line, "%smemprof report%s --by process", head, name);
        table_line(s->out, TABLE_DIM, buf_text(&line));
        head = "      ";
    }
    static const char *const forms[] = {"%smemprof report%s --by function --inclusive", "%smemprof report%s --html"};
    if (has_ends(s)) {
        print_leaks_hint(s, head, name);
        head = "      ";
    }
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++, head = "      ") {
        buf_reset(&line);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        buf_printf(&line, forms[i], head, name);
#pragma GCC diagnostic pop
        table_line(s->out, TABLE_DIM, buf_text(&line));
    }
    buf_free(&skip);
    buf_free(&script);
    buf_free(&file);
    buf_free(&line);
}
