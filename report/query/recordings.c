#include "recordings.h"

#include "../../common/array.h"
#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/text.h"
#include "ending.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int recordings_is_pattern(const char *word)
{
    return strpbrk(word, "*?[") && access(word, F_OK) != 0;
}

static void add(struct recordings *list, const char *path)
{
    struct recording *r = ARRAY_ADD(list->recording, list->count, list->capacity);
    r->path = xstrdup(path);
    r->rank = -1;
}

static char *no_match(const char *word)
{
    struct buf text = BUF(1 << 16);
    buf_printf(&text, "%s: no such file, and none that matches", word);
    return text.failed ? xstrdup("no such file, and none that matches") : buf_take(&text);
}

static int add_pattern(struct recordings *list, const char *word, struct error *err)
{
    glob_t found;
    int code = glob(word, GLOB_NOSORT, NULL, &found), rc = 0;
    if (code == GLOB_NOMATCH && list->count < RECORDINGS_MAX) { /* as a name that is not there */
        add(list, word);
        list->recording[list->count - 1].problem = no_match(word);
        return 0;
    }
    if (code)
        return error_set(err, code == GLOB_NOSPACE ? ENOMEM : EIO, "%s: the directory cannot be read", word);
    if (found.gl_pathc > (size_t)(RECORDINGS_MAX - list->count))
        rc = error_set(err, E2BIG, "%s: more than %d files; name fewer", word, RECORDINGS_MAX);
    for (size_t i = 0; rc == 0 && i < found.gl_pathc; i++)
        add(list, found.gl_pathv[i]);
    globfree(&found);
    return rc;
}

/* Numbers within names by value; names of one value ("1", "01") as text. */
static int compare_paths(const char *a, const char *b)
{
    int order = strverscmp(a, b);
    return order ? order : strcmp(a, b);
}

static int by_path(const void *a, const void *b)
{
    return compare_paths(((const struct recording *)a)->path, ((const struct recording *)b)->path);
}

static int by_rank(const void *a, const void *b)
{
    const struct recording *x = a, *y = b;
    uint64_t of_x = (uint64_t)x->rank, of_y = (uint64_t)y->rank; /* -1 comes last */
    return of_x != of_y ? (of_x < of_y ? -1 : 1) : by_path(a, b);
}

static void clear(struct recording *r)
{
    free(r->path);
    free(r->problem);
    free(r->host);
    free(r->boot_id);
    free(r->command);
    free(r->events_kept);
}

struct name {
    char *real;
    int index;
};

static int by_real(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    int order = strcmp(x->real, y->real);
    return order ? order : x->index - y->index;
}

/* A file that was named twice, by a pattern and by its name, would count twice. */
static void drop_repeated(struct recordings *list)
{
    struct name *names = xcalloc((size_t)list->count + 1, sizeof *names);
    for (int i = 0; i < list->count; i++) {
        char *real = realpath(list->recording[i].path, NULL);
        names[i] = (struct name){real ? real : xstrdup(list->recording[i].path), i};
    }
    qsort(names, (size_t)list->count, sizeof *names, by_real);
    for (int i = 1; i < list->count; i++)
        if (strcmp(names[i].real, names[i - 1].real) == 0) {
            clear(&list->recording[names[i].index]);
            list->recording[names[i].index].path = NULL;
            list->repeated_count++;
        }
    int kept = 0;
    for (int i = 0; i < list->count; i++) {
        free(names[i].real);
        if (list->recording[i].path)
            list->recording[kept++] = list->recording[i];
    }
    list->count = kept;
    for (int i = 0; i < kept; i++)
        list->recording[i].number = i;
    free(names);
}

int recordings_find(const char *const *words, int count, struct recordings *list, struct error *err)
{
    int rc = 0;
    *list = (struct recordings){.recording = NULL};
    for (int i = 0; rc == 0 && i < count; i++) {
        if (recordings_is_pattern(words[i]))
            rc = add_pattern(list, words[i], err);
        else if (list->count == RECORDINGS_MAX)
            rc = error_set(err, E2BIG, "more than %d files; name fewer", RECORDINGS_MAX);
        else
            add(list, words[i]);
    }
    if (list->count) {
        qsort(list->recording, (size_t)list->count, sizeof *list->recording, by_path);
        drop_repeated(list);
    }
    return rc;
}

void recordings_free(struct recordings *list)
{
    for (int i = 0; i < list->count; i++)
        clear(&list->recording[i]);
    free(list->recording);
    *list = (struct recordings){.recording = NULL};
}

/* Of hostile files, too, times can be added. */
static int64_t bounded(int64_t value)
{
    return value < 0 ? 0 : value > INT64_MAX / 4 ? INT64_MAX / 4 : value;
}

static void look(struct recording *r, sqlite3 *db)
{
    r->is_read = 1;
    r->rank = db_meta_int(db, "rank", -1);
    if (r->rank < 0)
        r->rank = -1;
    r->host = db_meta_text(db, "host");
    r->boot_id = db_meta_text(db, "boot_id");
    r->command = db_meta_text(db, "command");
    r->events_kept = db_meta_text(db, "events_kept");
    r->start_unix_ns = bounded(db_meta_int(db, "start_unix_ns", 0));
    r->start_monotonic_ns = bounded(db_meta_int(db, "start_monotonic_ns", 0));
    r->duration_ns = bounded(ending_duration_ns(db, 0));
}

static void set_problem(struct recording *r, const struct error *err)
{
    if (!r->problem)
        r->problem = xstrdup(err->text);
}

int recordings_one(struct recordings *list, int index, recordings_open *open, recordings_take *take, void *arg)
{
    struct recording *r = &list->recording[index];
    struct error err = {""};
    sqlite3 *db = NULL;
    if (r->problem && !r->is_read)
        return 0;
    int rc = open(r->path, &db, &err);
    if (rc)
        set_problem(r, &err);
    if (rc < 0)
        return 0;
    if (!r->is_read)
        look(r, db);
    if (take && take(arg, r, index, db, &err))
        set_problem(r, &err);
    sqlite3_close(db);
    return 1;
}

int recordings_each(struct recordings *list, recordings_open *open, recordings_take *take, void *arg)
{
    int opened = 0;
    for (int i = 0; i < list->count; i++)
        opened += recordings_one(list, i, open, take, arg);
    return opened;
}

void recordings_sort(struct recordings *list)
{
    if (list->count)
        qsort(list->recording, (size_t)list->count, sizeof *list->recording, by_rank);
}

const char *recordings_reason(const struct recording *r)
{
    return text_without_path(r->problem, r->path);
}

char *recordings_problem(const struct recording *r)
{
    struct buf text = BUF(1 << 16);
    buf_printf(&text, "%s: %s", r->path, recordings_reason(r));
    return buf_take(&text);
}
