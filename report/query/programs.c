#include "programs.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/search.h"
#include "program_name.h"
#include "recorded.h"

#include <stdlib.h>
#include <string.h>

#define RAN_SHARE "9" /* times what the shell has, or more: nearly all */

/* What starts a command as a process of its own and waits for it: what is meant is the command. env, nice and nohup
 * become theirs. */
#define LAUNCHERS                                                                                                      \
    "('dbus-run-session', 'flock', 'mpiexec', 'mpirun', 'orterun', 'setsid', 'time', 'timeout', 'unshare', 'xargs')"

#define REACHED_IS_RECORDED NOT_RECORDED("reached.process_id") " IS NULL"

/* The images of the first process but for the last ended where they executed the next: what was live then is no leak.
 * A program that executes itself goes on, as workers do that Python's multiprocessing spawns. A launcher stands for
 * what its children end as, unless it started nothing. */
static const char sql[] =
    "WITH RECURSIVE launcher(process_id) AS MATERIALIZED (SELECT process_id FROM process WHERE replace(exe, rtrim(exe, "
    "replace(exe, '/', '')), '') IN " LAUNCHERS "), reached(process_id) AS (SELECT " LAST_RECORDED_FIRST
    " UNION SELECT p.process_id "
    "FROM reached r JOIN process q ON q.process_id = r.process_id JOIN process p ON p.parent_id = q.process_id WHERE "
    "q.process_id IN (SELECT process_id FROM launcher) OR (q.end_kind = 'exec' AND p.pid = q.pid)), "
    "started(process_id) "
    "AS (SELECT process_id FROM reached JOIN process USING(process_id) WHERE process_id NOT IN (SELECT process_id FROM "
    "launcher) AND end_kind IS NOT 'exec' AND " REACHED_IS_RECORDED
    "), subject(process_id) AS (SELECT process_id FROM started UNION SELECT " LAST_RECORDED_FIRST
    " WHERE NOT EXISTS (SELECT 1 FROM started)), named(process_id) AS (SELECT process_id FROM process WHERE exe IN "
    "(SELECT exe FROM process WHERE process_id IN (SELECT process_id FROM subject)) UNION SELECT p.process_id FROM "
    "named n JOIN process p ON p.parent_id = n.process_id WHERE p.start_kind = 'fork') SELECT process_id, pid, exe, "
    "command_line, process_id IN (SELECT process_id FROM named) AND coalesce(end_kind, '') <> 'exec', process_id IN "
    "(SELECT process_id FROM subject), end_kind IS 'signal', process_id IN (SELECT process_id FROM teardown), "
    "end_kind IS 'exec' FROM "
    "process ORDER BY process_id";

static int is_shell(const char *exe)
{
    static const char *const names[] = {"sh", "ash", "bash", "busybox", "dash", "fish", "ksh", "mksh", "rbash", "zsh"};
    const char *slash = strrchr(exe, '/'), *name = slash ? slash + 1 : exe;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return 1;
    return 0;
}

/* A shell that ran nothing else is itself what was to be recorded. */
static void take_shells(struct programs *p)
{
    int others = 0;
    for (uint32_t i = 0; i < p->count; i++)
        others |= !is_shell(p->item[i].exe);
    for (uint32_t i = 0; i < p->count && others; i++)
        p->item[i].is_named = !is_shell(p->item[i].exe);
}

int programs_load(sqlite3 *db, struct programs *p, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int is_of_shell = 0, step = SQLITE_DONE;
    *p = (struct programs){0};
    int rc = db_prepare(db, sql, &s, err);
    while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
        *ARRAY_ADD(p->item, p->count, p->capacity) = (struct programs_process){.process_id = sqlite3_column_int64(s, 0),
                                                                               .pid = sqlite3_column_int64(s, 1),
                                                                               .exe = xstrdup(db_text(s, 2)),
                                                                               .command = xstrdup(db_text(s, 3)),
                                                                               .is_named = sqlite3_column_int(s, 4),
                                                                               .is_killed = sqlite3_column_int(s, 6),
                                                                               .is_torn = sqlite3_column_int(s, 7),
                                                                               .is_replaced = sqlite3_column_int(s, 8)};
        is_of_shell |= sqlite3_column_int(s, 5) && is_shell(db_text(s, 2));
    }
    if (rc == 0 && step != SQLITE_DONE)
        rc = db_error(db, err);
    sqlite3_finalize(s);
    if (is_of_shell)
        take_shells(p);
    return rc;
}

void programs_free(struct programs *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        free(p->item[i].exe);
        free(p->item[i].command);
    }
    free(p->item);
    *p = (struct programs){0};
}

struct programs_process *programs_find(const struct programs *p, int64_t process_id)
{
    const uint32_t low = SEARCH_FIRST(p->count, i, p->item[i].process_id < process_id);
    return low < p->count && p->item[low].process_id == process_id ? &p->item[low] : NULL;
}

int64_t programs_other_pid(sqlite3 *db, int64_t largest_id, struct buf *name)
{
    static const char ends[] =
        "SELECT process_id, CAST(total(a.end_bytes) AS INTEGER) FROM account a JOIN thread t ON t.thread_id = a.key_id "
        "JOIN process p USING(process_id) WHERE a.scope = 'thread' AND a.inclusive = 0 AND a.kind = 'all' AND "
        "p.end_kind "
        "IS NOT 'exec' GROUP BY process_id";
    struct programs programs = {0};
    struct error err;
    sqlite3_stmt *s = NULL;
    double bytes[2] = {0}; /* of others, of the program */
    const struct programs_process *largest = NULL;
    int64_t most = 0;
    int rc = programs_load(db, &programs, &err);
    if (rc == 0)
        rc = db_prepare(db, ends, &s, &err);
    while (rc == 0 && sqlite3_step(s) == SQLITE_ROW) {
        const struct programs_process *p = programs_find(&programs, sqlite3_column_int64(s, 0));
        if (!p)
            continue;
        bytes[p->is_named != 0] += sqlite3_column_double(s, 1);
        if (sqlite3_column_int64(s, 1) > most) {
            most = sqlite3_column_int64(s, 1);
            largest = p;
        }
    }
    sqlite3_finalize(s);
    if (largest_id)
        largest = programs_find(&programs, largest_id);
    int64_t pid = largest && !largest->is_named && bytes[0] > bytes[1] ? largest->pid : 0;
    if (pid)
        program_name(name, largest->command);
    programs_free(&programs);
    return pid;
}

#define LAST_OF_SHELL     LAST_RECORDED("v_image", "?1")
#define LAST_OF_CHILD     LAST_RECORDED("v_image", "(SELECT first_id FROM child)")
#define CHILD_IS_RECORDED NOT_RECORDED("(SELECT process_id FROM named)") " IS NULL"

/* Of a process, by its first image: what it is at last, what its one child is, if anything of that was recorded, and
 * whether that and its own children had nearly all at the peak, beside the process itself. */
static const char ran_only_sql[] =
    "WITH shell AS MATERIALIZED (SELECT process_id FROM v_image WHERE first_id = ?1), child AS (SELECT DISTINCT "
    "i.first_id FROM process p JOIN v_image i ON i.first_id = p.process_id WHERE p.parent_id IN (SELECT process_id "
    "FROM "
    "shell)), held AS (SELECT t.process_id IN (SELECT process_id FROM shell) AS is_shell, total(a.at_peak_bytes) AS "
    "bytes FROM account a JOIN thread t ON t.thread_id = a.key_id WHERE a.scope = 'thread' AND a.inclusive = 0 AND "
    "a.kind = 'all' GROUP BY 1), last(exe) AS (SELECT exe FROM process WHERE process_id = " LAST_OF_SHELL
    "), named(process_id) AS (SELECT " LAST_OF_CHILD
    ") SELECT exe, replace(exe, rtrim(exe, replace(exe, '/', '')), '') IN " LAUNCHERS
    ", (SELECT total(bytes) FROM held WHERE NOT is_shell) > (SELECT total(bytes) FROM held WHERE is_shell) "
    "* " RAN_SHARE ", (SELECT first_id FROM child), (SELECT command_line FROM process WHERE process_id = "
    "(SELECT process_id FROM named)) FROM last WHERE (SELECT count(*) FROM child) = 1 AND " CHILD_IS_RECORDED;

enum { RAN_DEPTH = 8 }; /* timeout sh -c 'time ./a' */

/* The child's command, and its number in *first_id; NULL: the process is what is meant. */
static char *ran_by(sqlite3 *db, int64_t *first_id)
{
    sqlite3_stmt *s = NULL;
    struct error err;
    char *command = NULL;
    if (db_prepare(db, ran_only_sql, &s, &err) == 0) {
        sqlite3_bind_int64(s, 1, *first_id);
        if (sqlite3_step(s) == SQLITE_ROW &&
            (sqlite3_column_int(s, 1) || (is_shell(db_text(s, 0)) && sqlite3_column_int(s, 2)))) {
            *first_id = sqlite3_column_int64(s, 3);
            command = xstrdup(db_text(s, 4));
        }
    }
    sqlite3_finalize(s);
    return command;
}

char *programs_ran_only(sqlite3 *db)
{
    int64_t first_id = db_int(db, "SELECT min(process_id) FROM process", 0);
    char *command = NULL, *next;
    int is_script = 0;
    for (int i = 0; i < RAN_DEPTH && !is_script && (next = ran_by(db, &first_id)); i++) {
        struct buf name = BUF(1u << 16);
        free(command);
        command = next;
        is_script = program_name(&name, command);
        buf_free(&name);
    }
    return command;
}
