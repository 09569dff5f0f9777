/* run --torch-snapshot, after the run: what PyTorch recorded becomes a recording of its own, and is compared with ours.
 */
#include "cli.h"

#include "../common/buf.h"
#include "../common/db.h"
#include "../common/units.h"
#include "../profiler/collect/torch_run.h"
#include "../profiler/import/import.h"
#include "../report/text/torch_compare.h"

#include <stdlib.h>
#include <string.h>

struct check {
    const char *output;
    int quiet, snapshots, problems;
    struct buf told; /* for meta 'torch_check' */
};

/* out.db -> out-torch.db; of further processes out-torch-PID.db */
static char *name_of(const struct check *c, long pid)
{
    struct buf name = BUF(1 << 16);
    buf_add(&name, c->output, db_stem(c->output));
    buf_puts(&name, "-torch");
    if (c->snapshots > 1)
        buf_printf(&name, "-%ld", pid);
    buf_puts(&name, ".db");
    return name.data;
}

static void tell(struct check *c, long pid, const char *name, const struct torch_comparison *r)
{
    char blocks[UNITS_TEXT], frees[UNITS_TEXT];
    struct buf line = BUF(1 << 12);
    buf_printf(&line, "PyTorch's own history of process %ld: %s allocations and %s frees agree", pid,
               units_count(blocks, r->blocks), units_count(frees, r->frees));
    if (r->only_ours || r->only_theirs)
        buf_printf(&line, ", %lld of ours and %lld of PyTorch's do not; the first is %s", (long long)r->only_ours,
                   (long long)r->only_theirs, r->first);
    else
        buf_puts(&line, ", block by block");
    if (r->ours_outside)
        buf_printf(&line, " (%lld of ours came after it)", (long long)r->ours_outside);
    if (line.data && (!c->quiet || r->only_ours || r->only_theirs))
        cli_note("%s; it is in %s", line.data, name);
    buf_printf(&c->told, "%s%s", c->told.length ? ". " : "", buf_text(&line));
    buf_free(&line);
}

static int compare(struct check *c, long pid, const char *name, struct error *err)
{
    sqlite3 *ours = NULL, *theirs = NULL;
    struct torch_comparison result;
    int rc = reader_open(c->output, &ours, err);
    if (rc == 0)
        rc = reader_open(name, &theirs, err);
    if (rc == 0)
        rc = torch_compare(ours, theirs, pid, &result, err);
    sqlite3_close(ours);
    sqlite3_close(theirs);
    if (rc == 0)
        tell(c, pid, name, &result);
    return rc;
}

static void visit(void *context, long pid, const char *path, const char *problem)
{
    struct check *c = context;
    struct error err = {""};
    struct import_result result = {0};
    if (problem) {
        c->problems++;
        cli_note("PyTorch in process %ld, %s", pid, problem);
        return;
    }
    c->snapshots++;
    char *name = name_of(c, pid);
    struct import_options options = {.path = path, .output = name};
    if (import_file(&options, &result, &err) || compare(c, pid, result.output, &err))
        cli_note("PyTorch's own history of process %ld: %s", pid, err.text);
    free(result.note);
    free(result.output);
    free(name);
}

void torch_check(const struct torch_run *t, const char *output, int quiet)
{
    struct check c = {.output = output, .quiet = quiet, .told = BUF(1 << 14)};
    sqlite3 *db = NULL;
    torch_run_each(t, visit, &c);
    if (!c.snapshots && !c.problems)
        cli_note(
            "--torch-snapshot: no process wrote one: none imported torch and used CUDA, or it did not come to its end");
    if (c.told.data && db_open_write(output, &db, NULL) == 0)
        db_meta_set_text(db, "torch_check", c.told.data);
    sqlite3_close(db);
    buf_free(&c.told);
}
