#include "one_process.h"

#include "../../common/db.h"
#include "../../common/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED_MOST = 5 }; /* in a message */

struct found {
    struct one_process *one;
    int64_t wanted;     /* pid; 0: any */
    int64_t pids;       /* different ones that allocated */
    int64_t last_pid;   /* rows come by pid, */
    int64_t most_bytes; /* of the chosen one's images */
    struct buf names;   /* "4242 (gawk)", those that allocated */
};

static void name_process(struct found *f, int64_t pid, const char *exe)
{
    if (f->pids < NAMED_MOST)
        buf_printf(&f->names, "%s%lld (%.60s)", f->pids ? ", " : "", (long long)pid, text_basename(exe));
    else if (f->pids == NAMED_MOST)
        buf_puts(&f->names, ", ...");
    f->pids++;
}

static void take_image(struct found *f, sqlite3_stmt *s)
{
    int64_t pid = sqlite3_column_int64(s, 0), bytes = sqlite3_column_int64(s, 3);
    if (!f->pids || pid != f->last_pid)
        name_process(f, pid, db_text(s, 2));
    f->last_pid = pid;
    if (f->wanted && pid != f->wanted)
        return;
    f->one->images++;
    if (f->one->process_id && bytes <= f->most_bytes)
        return;
    f->most_bytes = bytes;
    f->one->pid = pid;
    f->one->process_id = sqlite3_column_int64(s, 1);
    free(f->one->command);
    f->one->command = xstrdup(db_text(s, 4));
}

static int choose(struct found *f, struct error *err)
{
    struct one_process *one = f->one;
    if (f->wanted && !one->process_id && f->pids)
        return error_set(err, EINVAL, "export: process %lld allocated nothing there; these did: %s",
                         (long long)f->wanted, buf_text(&f->names));
    if (!f->wanted && f->pids > 1)
        return error_set(err, EINVAL,
                         "export: several processes allocated, and this format holds one; name it with "
                         "--process: %s",
                         buf_text(&f->names));
    one->is_only = f->pids <= 1 && one->images <= 1;
    if (!one->command)
        one->command = xstrdup("");
    return 0;
}

int one_process_find(sqlite3 *db, const struct export_options *options, const char *device, struct one_process *one,
                     struct error *err)
{
    static const char sql[] =
        "SELECT p.pid, p.process_id, p.exe, sum(a.alloc_bytes), p.command_line FROM account a JOIN device d "
        "USING(device_id) JOIN thread t ON t.thread_id = a.key_id JOIN process p USING(process_id) WHERE a.scope = "
        "'thread' AND d.name = ?1 AND a.kind = 'all' AND a.alloc_count > 0 GROUP BY p.process_id ORDER BY 1, 2";
    struct found f = {.one = one, .wanted = options->lens ? options->lens->pid : 0, .names = BUF(800)};
    sqlite3_stmt *s = NULL;
    *one = (struct one_process){0};
    int rc = db_prepare(db, sql, &s, err);
    if (rc == 0)
        sqlite3_bind_text(s, 1, device, -1, SQLITE_TRANSIENT);
    while (rc == 0 && db_next(s, &rc, err))
        take_image(&f, s);
    sqlite3_finalize(s);
    if (rc == 0)
        rc = choose(&f, err);
    buf_free(&f.names);
    return rc;
}

void one_process_close(struct one_process *one)
{
    free(one->command);
    *one = (struct one_process){0};
}
