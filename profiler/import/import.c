#include "import.h"

#include "../finish/finish.h"
#include "../store/output.h"
#include "../store/store.h"
#include "import_private.h"

#include "../../common/db.h"
#include "../../common/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first one that says that it is its own; the last is asked whatever it is, and says why not. */
static const struct import_form *const forms[] = {&import_heaptrack, &import_pprof, &import_torch};

struct file {
    const struct import_options *options;
    int fd;
    uint64_t total_bytes, read_bytes;
    int percent;
};

/* One import: what import_begin makes. */
struct import {
    struct importing importing; /* first: what forms see */
    struct output output;
    int is_begun;
};

void import_progress(const struct importing *i, const char *what, int percent)
{
    if (i->options->progress)
        i->options->progress(i->options->progress_context, what, percent);
}

static long read_file(void *context, void *data, size_t size)
{
    struct file *f = context;
    ssize_t got;
    do
        got = read(f->fd, data, size);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    f->read_bytes += (uint64_t)got;
    int percent = f->total_bytes ? (int)(f->read_bytes * 100 / f->total_bytes) : 0;
    if (percent != f->percent && f->options->progress)
        f->options->progress(f->options->progress_context, "reading", f->percent = percent);
    return got;
}

static int open_file(struct file *f, struct error *err)
{
    struct stat st;
    const char *path = f->options->path;
    f->fd = input_open(path, &st, err);
    if (f->fd == -EISDIR)
        return error_set(err, EISDIR, "%s: a directory; expected a file that PyTorch, heaptrack or pprof wrote", path);
    if (f->fd < 0)
        return f->fd;
    f->total_bytes = (uint64_t)st.st_size;
    return 0;
}

int import_begin(struct importing *i, struct error *err)
{
    struct import *import = (struct import *)i;
    if (i->store) /* the caller's, who is no import_file: a fuzzer */
        return 0;
    int rc = output_prepare(&import->output, i->options->output, err);
    if (rc)
        return rc;
    import->is_begun = 1;
    rc = store_create(import->output.path, &i->store, err);
    if (rc == 0)
        output_claim(&import->output);
    return rc;
}

static void read_result(sqlite3 *db, struct import_result *result)
{
    static const char devices[] =
        "SELECT count(*) FROM device WHERE device_id > 0 OR EXISTS(SELECT 1 FROM total t WHERE "
        "t.device_id = device.device_id AND t.alloc_count > 0)";
    result->event_count = (uint64_t)db_meta_int(db, "event_count", 0);
    result->devices = (uint32_t)db_int(db, devices, 0);
    result->peak_bytes = db_int(db, "SELECT max(peak_active_bytes) FROM total WHERE kind = 'all'", 0);
    result->peak_reserved_bytes =
        db_int(db, "SELECT coalesce(max(peak_reserved_bytes), -1) FROM total WHERE kind = 'all'", -1);
}

static int finish(const struct importing *i, const char *output, struct import_result *result, struct error *err)
{
    sqlite3 *db = NULL;
    struct stat st;
    struct finish_options options = {.with_source = i->options->with_source};
    import_progress(i, "adding up", 0);
    int rc = db_open_write(output, &db, err);
    if (rc == 0)
        rc = finish_database(db, &options, err);
    if (rc == 0 && i->form->after_sql)
        rc = db_exec(db, i->form->after_sql, err);
    if (rc == 0)
        read_result(db, result);
    sqlite3_close(db);
    if (rc == 0 && stat(output, &st) == 0)
        result->output_bytes = st.st_size;
    return rc;
}

/* Reads it as what it is. What is wrong with it is told with its name. */
static int read_form(struct importing *i, struct file *file, struct error *err)
{
    struct unpack_source source = {read_file, file};
    struct error why = {""};
    unsigned char head[16];
    size_t form = 0;
    i->unpack = unpack_open(&source);
    size_t length = unpack_peek(i->unpack, head, sizeof head);
    while (form + 1 < sizeof forms / sizeof *forms && !forms[form]->is(head, length))
        form++;
    i->form = forms[form];
    int rc = forms[form]->read(i, &why);
    if (rc && ((struct import *)i)->is_begun)
        *err = why;
    else if (rc && strncmp(why.text, i->options->output, strlen(i->options->output)) == 0)
        *err = why;
    else if (rc)
        error_set(err, -rc, "%s: %s", i->options->path, why.text);
    unpack_close(i->unpack);
    i->unpack = NULL;
    return rc;
}

int import_file(const struct import_options *options, struct import_result *result, struct error *err)
{
    struct import import = {.importing = {.options = options}};
    struct importing *i = &import.importing;
    struct file file = {.options = options, .fd = -1, .percent = -1};
    *result = (struct import_result){0};
    if (db_same_file(options->path, options->output))
        return error_set(err, EINVAL, "%s: is the file to import itself; give the database another name with -o",
                         options->output);
    int rc = open_file(&file, err);
    if (rc == 0)
        rc = read_form(i, &file, err);
    if (file.fd >= 0)
        close(file.fd);
    if (i->store) {
        int closed = store_close(i->store, rc ? NULL : err);
        rc = rc ? rc : closed;
    }
    if (rc == 0)
        rc = finish(i, import.output.path, result, err);
    if (import.is_begun && rc)
        output_remove(&import.output, 1);
    else if (import.is_begun)
        output_keep(&import.output);
    result->form = i->form ? i->form->text : NULL;
    result->note = i->note;
    result->output = rc ? NULL : xstrdup(import.output.path);
    if (import.is_begun)
        output_close(&import.output);
    return rc;
}
