/*
 * Which item of the new side is which of the old one. Equal keys are the same; of the others only those are matched
 * that have one candidate on each side.
 */
#include "diff_private.h"

#include "../../common/array.h"
#include "../../common/hash.h"
#include "../../common/match.h"
#include "../../common/text.h"

#include <stdlib.h>
#include <string.h>

enum { COMPONENTS_MOST = 32 };

static uint32_t find_function(struct diff_side *s, const char *name, const char *file)
{
    struct buf key = BUF(64 << 20);
    diff_key(&key, name);
    diff_key(&key, file);
    uint32_t number = *text_map_slot(&s->function_of, key.data, key.length) - 1;
    buf_free(&key);
    return number;
}

/* --- the ends of paths --- */

/* Who has a key: one of the old side and one of the new one, or it says nothing. */
struct candidate {
    uint32_t of[DIFF_SIDES], count[DIFF_SIDES];
};

struct candidates {
    struct map at;
    struct candidate *all;
    uint32_t count, capacity;
};

static void offer(struct candidates *c, uint64_t key, int side, uint32_t number)
{
    uint32_t at = map_number_or(&c->at, key, 0, c->count);
    if (at == c->count)
        ARRAY_ADD(c->all, c->count, c->capacity);
    c->all[at].of[side] = number;
    c->all[at].count[side]++;
}

static int is_one(const struct candidate *c)
{
    return c->count[DIFF_OLD] == 1 && c->count[DIFF_NEW] == 1;
}

static void candidates_close(struct candidates *c)
{
    map_close(&c->at);
    free(c->all);
}

static uint64_t hash_end(const char *path, int components)
{
    const char *end = diff_path_end(path, components);
    /* "__init__.py" is one with its directory */
    return end && strlen(end) >= strlen(text_filename(path)) ? hash_text(HASH_START, end) : 0;
}

/* --- files --- */

/* Whether a function of an old file is in the new one, too; one of those that every file has, if is_any. */
int diff_share_function(struct diff_state *d, uint32_t old, uint32_t new, int is_any)
{
    struct diff_side *o = &d->side[DIFF_OLD], *n = &d->side[DIFF_NEW];
    for (uint32_t f = o->files[old].first_function; f != DIFF_NONE; f = o->functions[f].next_of_file) {
        const char *name = o->functions[f].name;
        int is_common = strcmp(name, "<module>") == 0 || strcmp(name, "__init__") == 0 || strcmp(name, "main") == 0;
        if ((is_any || !is_common) && find_function(n, name, n->files[new].path) != DIFF_NONE)
            return 1;
    }
    return 0;
}

void diff_join_files(struct diff_state *d, uint32_t old, uint32_t new, enum diff_match match)
{
    d->side[DIFF_OLD].files[old].other = new;
    d->side[DIFF_NEW].files[new].other = old;
    d->side[DIFF_OLD].files[old].match = d->side[DIFF_NEW].files[new].match = match;
}

/* Equal hashes may be an enemy's. */
static int is_one_end(const struct diff_state *d, uint32_t old, uint32_t new, int components)
{
    const char *left = d->side[DIFF_OLD].files[old].path, *right = d->side[DIFF_NEW].files[new].path;
    return strcmp(diff_path_end(left, components), diff_path_end(right, components)) == 0;
}

static void match_files_by_end(struct diff_state *d, int components)
{
    struct candidates c = {0};
    for (int side = 0; side < DIFF_SIDES; side++)
        for (uint32_t i = 0; i < d->side[side].file_count; i++) {
            const struct diff_file *f = &d->side[side].files[i];
            uint64_t hash = f->other == DIFF_NONE ? hash_end(f->path, components) : 0;
            if (hash)
                offer(&c, hash, side, i);
        }
    for (uint32_t i = 0; i < c.count; i++) {
        uint32_t old = c.all[i].of[DIFF_OLD], new = c.all[i].of[DIFF_NEW];
        if (is_one(&c.all[i]) && is_one_end(d, old, new, components) &&
            diff_share_function(d, old, new, components > 1))
            diff_join_files(d, old, new, DIFF_RENAMED);
    }
    candidates_close(&c);
}

void diff_match_files(struct diff_state *d)
{
    struct diff_side *o = &d->side[DIFF_OLD];
    for (uint32_t i = 0; i < o->file_count; i++) {
        uint32_t new = diff_find_file(&d->side[DIFF_NEW], o->files[i].path);
        if (new != DIFF_NONE)
            diff_join_files(d, i, new, DIFF_SAME);
    }
    for (int components = COMPONENTS_MOST; components > 0; components--)
        match_files_by_end(d, components);
    diff_match_python(d);
}

/* --- functions --- */

static void join_functions(struct diff_state *d, uint32_t old, uint32_t new, enum diff_match match)
{
    struct diff_function *o = &d->side[DIFF_OLD].functions[old], *n = &d->side[DIFF_NEW].functions[new];
    if (match == DIFF_SAME && o->raw_name && strcmp(o->raw_name, n->raw_name) != 0)
        match = DIFF_CLONE;
    o->other = new;
    n->other = old;
    o->match = n->match = match;
}

static int is_exe(const struct diff_side *s, const char *module)
{
    return s->exe && strcmp(s->exe, module) == 0;
}

static int is_in_one_module(const struct diff_state *d, const struct diff_function *old,
                            const struct diff_function *new)
{
    if (!old->module || !new->module || strcmp(old->name, new->name) != 0)
        return 0;
    return strcmp(text_basename(old->module), text_basename(new->module)) == 0 ||
           (is_exe(&d->side[DIFF_OLD], old->module) && is_exe(&d->side[DIFF_NEW], new->module));
}

/* Functions whose file was renamed otherwise, or that lost or gained their source position: by their name alone. */
static void match_functions_by_name(struct diff_state *d)
{
    struct candidates c = {0};
    for (int side = 0; side < DIFF_SIDES; side++)
        for (uint32_t i = 0; i < d->side[side].function_count; i++) {
            const struct diff_function *f = &d->side[side].functions[i];
            if (f->other == DIFF_NONE && f->name && f->module)
                offer(&c, hash_text(HASH_START, f->name), side, i);
        }
    for (uint32_t i = 0; i < c.count; i++) {
        uint32_t old = c.all[i].of[DIFF_OLD], new = c.all[i].of[DIFF_NEW];
        if (is_one(&c.all[i]) &&
            is_in_one_module(d, &d->side[DIFF_OLD].functions[old], &d->side[DIFF_NEW].functions[new]))
            join_functions(d, old, new, DIFF_RENAMED);
    }
    candidates_close(&c);
}

/* In the file that theirs is now. */
static void match_functions_in_files(struct diff_state *d)
{
    struct diff_side *o = &d->side[DIFF_OLD], *n = &d->side[DIFF_NEW];
    for (uint32_t i = 0; i < o->function_count; i++) {
        const struct diff_function *f = &o->functions[i];
        if (f->other != DIFF_NONE || f->file == DIFF_NONE || o->files[f->file].other == DIFF_NONE)
            continue;
        uint32_t new = find_function(n, f->name, n->files[o->files[f->file].other].path);
        if (new != DIFF_NONE)
            join_functions(d, i, new, o->files[f->file].match);
    }
}

/* The name without call arguments. Returns whether it is the whole one: what gcc inlined of a function local to a file
 * has none (symbols_scopes.c). */
static int without_arguments(const char *name, struct buf *bare)
{
    buf_reset(bare);
    match_bare_name(name, 1, bare);
    return strcmp(buf_text(bare), name) == 0;
}

/* Functions of a file that were inlined in one program alone, if no other one of theirs has that name. */
static void match_inlined_functions(struct diff_state *d)
{
    struct candidates c = {0};
    struct buf old = BUF(1 << 20), new = BUF(1 << 20);
    struct diff_side *sides = d->side;
    for (int side = 0; side < DIFF_SIDES; side++)
        for (uint32_t i = 0; i < sides[side].function_count; i++) {
            const struct diff_function *f = &sides[side].functions[i];
            if (f->other != DIFF_NONE || f->file == DIFF_NONE || sides[side].files[f->file].other == DIFF_NONE)
                continue;
            without_arguments(f->name, &old);
            uint32_t file = side == DIFF_NEW ? f->file : sides[side].files[f->file].other;
            offer(&c, hash_text(file + HASH_START, buf_text(&old)), side, i);
        }
    for (uint32_t i = 0; i < c.count; i++) {
        uint32_t o = c.all[i].of[DIFF_OLD], n = c.all[i].of[DIFF_NEW];
        int is_bare = is_one(&c.all[i]) && (without_arguments(sides[DIFF_OLD].functions[o].name, &old) !=
                                            without_arguments(sides[DIFF_NEW].functions[n].name, &new));
        if (is_bare && strcmp(buf_text(&old), buf_text(&new)) == 0)
            join_functions(d, o, n, sides[DIFF_OLD].files[sides[DIFF_OLD].functions[o].file].match);
    }
    candidates_close(&c);
    buf_free(&old);
    buf_free(&new);
}

static void match_equal_functions(struct diff_state *d)
{
    struct diff_side *o = &d->side[DIFF_OLD], *n = &d->side[DIFF_NEW];
    for (uint32_t i = 0; i < o->function_count; i++) {
        const struct diff_function *f = &o->functions[i];
        uint32_t new = *text_map_slot(&n->function_of, f->key, f->key_length) - 1;
        if (new != DIFF_NONE)
            join_functions(d, i, new, DIFF_SAME);
    }
}

/* The one file that the functions of a file went to; DIFF_NONE where they are in none or in several. */
static uint32_t file_of_functions(const struct diff_side *from, const struct diff_side *to, uint32_t file)
{
    uint32_t found = DIFF_NONE;
    for (uint32_t f = from->files[file].first_function; f != DIFF_NONE; f = from->functions[f].next_of_file) {
        uint32_t other = from->functions[f].other;
        uint32_t its = other == DIFF_NONE ? DIFF_NONE : to->functions[other].file;
        if (its == DIFF_NONE)
            continue;
        if (found != DIFF_NONE && found != its)
            return DIFF_NONE;
        found = its;
    }
    return found;
}

static void match_files_by_functions(struct diff_state *d)
{
    const struct diff_side *o = &d->side[DIFF_OLD], *n = &d->side[DIFF_NEW];
    for (uint32_t i = 0; i < o->file_count; i++) {
        uint32_t new = o->files[i].other == DIFF_NONE ? file_of_functions(o, n, i) : DIFF_NONE;
        if (new != DIFF_NONE && n->files[new].other == DIFF_NONE &&file_of_functions(n, o, new) == i)
            diff_join_files(d, i, new, DIFF_RENAMED);
    }
}

static void match_functions(struct diff_state *d)
{
    diff_match_files(d);
    match_equal_functions(d);
    match_functions_in_files(d);
    match_inlined_functions(d);
    match_functions_by_name(d);
    match_files_by_functions(d);
    match_functions_in_files(d);
}

/* --- items --- */

void diff_join_items(struct diff_state *d, uint32_t old, uint32_t new, enum diff_match match)
{
    struct diff_item *o = &d->side[DIFF_OLD].items[old], *n = &d->side[DIFF_NEW].items[new];
    if (o->match == DIFF_MODULE || n->match == DIFF_MODULE)
        match = DIFF_MODULE;
    o->other = new + 1;
    n->other = old + 1;
    o->match = n->match = match;
}

static void match_equal_items(struct diff_state *d)
{
    struct diff_side *o = &d->side[DIFF_OLD], *n = &d->side[DIFF_NEW];
    for (uint32_t i = 0; i < o->item_count; i++) {
        if (d->options.by == ROW_LINE && !o->items[i].is_rest)
            continue;
        uint32_t new = *text_map_slot(&n->item_of, o->items[i].key, o->items[i].key_length) - 1;
        if (new != DIFF_NONE)
            diff_join_items(d, i, new, DIFF_SAME);
    }
}

static void match_function_items(struct diff_state *d)
{
    const struct diff_side *o = &d->side[DIFF_OLD], *n = &d->side[DIFF_NEW];
    for (uint32_t i = 0; i < o->function_count; i++) {
        const struct diff_function *f = &o->functions[i];
        if (f->other != DIFF_NONE && f->item != DIFF_NONE && n->functions[f->other].item != DIFF_NONE)
            diff_join_items(d, f->item, n->functions[f->other].item, f->match);
    }
}

static void match_file_items(struct diff_state *d)
{
    const struct diff_side *o = &d->side[DIFF_OLD], *n = &d->side[DIFF_NEW];
    for (uint32_t i = 0; i < o->file_count; i++) {
        const struct diff_file *f = &o->files[i];
        if (f->other != DIFF_NONE && f->item != DIFF_NONE && n->files[f->other].item != DIFF_NONE)
            diff_join_items(d, f->item, n->files[f->other].item, f->match);
    }
}

/* The part of a library's name that its versions share. */
static uint64_t hash_stem(const char *path)
{
    const char *name = text_basename(path), *end = strstr(name, ".so");
    uint64_t hash = HASH_START;
    for (; end && name < end; name++)
        hash = hash_byte(hash, (unsigned char)*name);
    return end ? hash : 0;
}

/* components 0: by what versions of a library share; -1: the program. */
static void match_modules_by(struct diff_state *d, int components)
{
    struct candidates c = {0};
    for (int side = 0; side < DIFF_SIDES; side++)
        for (uint32_t i = 0; i < d->side[side].item_count; i++) {
            const struct diff_item *item = &d->side[side].items[i];
            uint64_t hash = !item->module || item->other ? 0
                            : components > 0             ? hash_end(item->module, components)
                            : components == 0            ? hash_stem(item->module)
                                                         : (uint64_t)is_exe(&d->side[side], item->module);
            if (hash)
                offer(&c, hash, side, i);
        }
    for (uint32_t i = 0; i < c.count; i++)
        if (is_one(&c.all[i]))
            diff_join_items(d, c.all[i].of[DIFF_OLD], c.all[i].of[DIFF_NEW], DIFF_RENAMED);
    candidates_close(&c);
}

void diff_match_items(struct diff_state *d)
{
    const enum row_key by = d->options.by;
    if (by == ROW_LINE || by == ROW_FUNCTION || by == ROW_FILE)
        match_functions(d);
    match_equal_items(d);
    if (by == ROW_FUNCTION)
        match_function_items(d);
    if (by == ROW_FILE)
        match_file_items(d);
    for (int components = COMPONENTS_MOST; by == ROW_MODULE && components >= -1; components--)
        match_modules_by(d, components);
    if (by == ROW_LINE)
        diff_match_lines(d);
}
