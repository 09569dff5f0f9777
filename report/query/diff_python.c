/*
 * Files of Python that were renamed. Code of Python has no module that a name could be looked for in, so what a file
 * has in it tells: all of its functions that are in a stack, also those that allocated nothing themselves.
 */
#include "diff_private.h"

#include "../../common/db.h"
#include "../../common/hash.h"
#include "../../common/text.h"
#include "program_name.h"

#include <stdlib.h>
#include <string.h>

enum { FILES_OF_NAME_MOST = 32 }; /* a name that more files have tells nothing */

/* --- loading --- */

static void find_script(struct diff_side *side)
{
    char *command = db_meta_text(side->dbs[0], "command");
    struct buf script = BUF(1 << 16);
    if (command && program_script(&script, command) && !script.failed)
        side->script = buf_take(&script);
    buf_free(&script);
    free(command);
}

static int load_functions(struct diff_side *side, sqlite3 *db, struct error *err)
{
    struct buf key = BUF(64 << 20);
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db,
                        "SELECT name, path FROM function JOIN file USING(file_id) WHERE function_id IN (SELECT "
                        "function_id FROM frame WHERE language = 'python')",
                        &s, err);
    while (db_next(s, &rc, err)) {
        char *name = db_own_text(s, 0), *path = db_own_text(s, 1);
        const struct diff_item item = {.function = name, .name = name, .file = path};
        buf_reset(&key);
        diff_key(&key, name);
        diff_key(&key, path);
        diff_add_function(side, &item, &key);
        free(name);
        free(path);
    }
    sqlite3_finalize(s);
    buf_free(&key);
    return rc;
}

int diff_load_python(struct diff_state *d, struct error *err)
{
    int rc = 0;
    for (int side = 0; side < DIFF_SIDES; side++) {
        find_script(&d->side[side]);
        for (int i = 0; rc == 0 && i < d->side[side].count; i++)
            rc = load_functions(&d->side[side], d->side[side].dbs[i], err);
    }
    return rc;
}

const char *diff_new_path(struct diff_state *d, int side, const char *path)
{
    uint32_t file = side == DIFF_OLD ? diff_find_file(&d->side[DIFF_OLD], path) : DIFF_NONE;
    uint32_t other = file == DIFF_NONE ? DIFF_NONE : d->side[DIFF_OLD].files[file].other;
    return other == DIFF_NONE ? path : d->side[DIFF_NEW].files[other].path;
}

/* --- matching --- */

struct naming { /* which open files of the new side have a name: a list a name */
    struct map first;
    struct entry {
        uint32_t file, next, count; /* count: of the list, at its first one */
    } * entries;
    uint32_t entry_count;
};

static int is_open(const struct diff_side *s, uint32_t file)
{
    uint32_t first = s->files[file].first_function;
    return s->files[file].other == DIFF_NONE && first != DIFF_NONE && !s->functions[first].module;
}

/* What every file may have. */
static int is_common(const char *name)
{
    return name[0] == '<' || strncmp(name, "__", 2) == 0 || strcmp(name, "main") == 0;
}

static void index_names(const struct diff_side *s, struct naming *n)
{
    n->entries = xcalloc((size_t)s->function_count + 1, sizeof *n->entries);
    for (uint32_t i = 0; i < s->function_count; i++) {
        const struct diff_function *f = &s->functions[i];
        if (f->file == DIFF_NONE || !is_open(s, f->file))
            continue;
        uint64_t hash = hash_text(HASH_START, f->name);
        uint32_t was = map_number(&n->first, hash, 0);
        n->entries[n->entry_count] = (struct entry){f->file, was, was == MAP_NONE ? 1 : n->entries[was].count + 1};
        map_set_number(&n->first, hash, 0, n->entry_count++);
    }
}

struct likeness { /* of an old file to a new one */
    uint32_t file, shared, union_count;
    int is_telling, is_tied;
};

static uint32_t count_functions(const struct diff_side *s, uint32_t file)
{
    uint32_t count = 0;
    for (uint32_t f = s->files[file].first_function; f != DIFF_NONE; f = s->functions[f].next_of_file)
        count++;
    return count;
}

/* -1, 0, 1: which is more alike. */
static int compare(const struct likeness *a, const struct likeness *b)
{
    uint64_t left = (uint64_t)a->shared * b->union_count, right = (uint64_t)b->shared * a->union_count;
    return left < right ? -1 : left > right;
}

/* How many of a file's names each open file of the new side has. A name that is in no other one tells which is meant,
 * but that of the common ones. */
static void count_shared(const struct diff_side *o, uint32_t old, const struct naming *names, struct likeness *found,
                         uint32_t *touched, uint32_t *touched_count)
{
    *touched_count = 0;
    for (uint32_t f = o->files[old].first_function; f != DIFF_NONE; f = o->functions[f].next_of_file) {
        const char *name = o->functions[f].name;
        uint32_t at = map_number(&names->first, hash_text(HASH_START, name), 0);
        const int is_only = at != MAP_NONE && names->entries[at].count == 1 && !is_common(name);
        if (at == MAP_NONE || names->entries[at].count > FILES_OF_NAME_MOST)
            continue;
        for (; at != MAP_NONE; at = names->entries[at].next) {
            struct likeness *l = &found[names->entries[at].file];
            if (!l->shared++)
                touched[(*touched_count)++] = names->entries[at].file;
            l->is_telling |= is_only;
        }
    }
}

/* The file of the new side that is most like an old one, with half of all names of both or more. found: all-zero. */
static struct likeness best_of(struct diff_state *d, uint32_t old, const struct naming *names, struct likeness *found,
                               uint32_t *touched)
{
    const struct diff_side *o = &d->side[DIFF_OLD], *n = &d->side[DIFF_NEW];
    const uint32_t own = count_functions(o, old);
    struct likeness best = {.file = DIFF_NONE, .union_count = 1};
    uint32_t count;
    count_shared(o, old, names, found, touched, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct likeness l = found[touched[i]];
        found[touched[i]] = (struct likeness){.file = 0};
        l.file = touched[i];
        l.union_count = own + count_functions(n, l.file) - l.shared;
        int order = compare(&l, &best);
        best.is_tied |= order == 0;
        if (order > 0)
            best = l;
    }
    if (best.is_tied || !best.is_telling || best.shared * 2ull < best.union_count)
        best.file = DIFF_NONE;
    return best;
}

/* Where two old files are most like one new file, none of them is it unless it is more like it. */
static void join_best(struct diff_state *d, const struct likeness *best, uint32_t count)
{
    const struct diff_side *n = &d->side[DIFF_NEW];
    uint32_t *old_of = xcalloc((size_t)n->file_count + 1, sizeof *old_of); /* + 1; 0: none yet */
    uint8_t *is_tied = xcalloc((size_t)n->file_count + 1, 1);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t new = best[i].file;
        if (new == DIFF_NONE)
            continue;
        int order = old_of[new] ? compare(&best[i], &best[old_of[new] - 1]) : 1;
        is_tied[new] = order == 0 || (order < 0 && is_tied[new]);
        if (order > 0)
            old_of[new] = i + 1;
    }
    for (uint32_t new = 0; new < n->file_count; new ++)
        if (old_of[new] && !is_tied[new])
            diff_join_files(d, old_of[new] - 1, new, DIFF_RENAMED);
    free(old_of);
    free(is_tied);
}

static uint32_t find_script_file(const struct diff_side *s)
{
    uint32_t found = DIFF_NONE;
    for (uint32_t i = 0; s->script && i < s->file_count; i++)
        if (is_open(s, i) && strcmp(text_basename(s->files[i].path), text_basename(s->script)) == 0) {
            if (found != DIFF_NONE)
                return DIFF_NONE;
            found = i;
        }
    return found;
}

/* The program itself, as that of C is one whatever its name is: what was run. */
static void join_scripts(struct diff_state *d)
{
    uint32_t old = find_script_file(&d->side[DIFF_OLD]), new = find_script_file(&d->side[DIFF_NEW]);
    if (old != DIFF_NONE && new != DIFF_NONE && diff_share_function(d, old, new, 1))
        diff_join_files(d, old, new, DIFF_RENAMED);
}

void diff_match_python(struct diff_state *d)
{
    const struct diff_side *o = &d->side[DIFF_OLD], *n = &d->side[DIFF_NEW];
    struct naming names = {.entries = NULL};
    struct likeness *best = xcalloc((size_t)o->file_count + 1, sizeof *best);
    struct likeness *found = xcalloc((size_t)n->file_count + 1, sizeof *found);
    uint32_t *touched = xcalloc((size_t)n->file_count + 1, sizeof *touched);
    join_scripts(d);
    index_names(n, &names);
    for (uint32_t i = 0; i < o->file_count; i++)
        best[i] = is_open(o, i) ? best_of(d, i, &names, found, touched) : (struct likeness){.file = DIFF_NONE};
    join_best(d, best, o->file_count);
    map_close(&names.first);
    free(names.entries);
    free(best);
    free(found);
    free(touched);
}
