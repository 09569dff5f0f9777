#include "lens_private.h"

#include "../../common/db.h"
#include "../../common/kind.h"

const char *const lens_scope_names[LENS_SCOPES] = {"line", "function", "file", "module", "op", "thread"};

/* --- sites ------------------------------------------------------------------------------------------------------- */

/* Whether the recorder's choice stands. */
static int is_kept(const struct lens *l, const struct tree_place *self)
{
    const struct tree *t = &l->tree;
    const struct tree_frame *f = self->frame ? &t->frames[self->frame] : NULL;
    if (f && t->functions[f->function].is_skipped)
        return 0;
    if (t->addresses[t->nodes[self->node].address].is_skipped)
        return 0;
    return tree_is_shown(t, self, l->options->language);
}

void lens_choose_self(struct lens *l, struct lens_site *site)
{
    struct tree *t = &l->tree;
    uint32_t node = tree_node(t, site->stack_id);
    enum tree_language language = l->options->language;
    site->self = tree_find(t, node, site->line);
    if (site->self.node && is_kept(l, &site->self))
        return;
    struct tree_place from = site->self;
    if (!from.node || !tree_is_shown(t, &from, language))
        from = tree_first(t, node);
    struct tree_place self = from.node ? tree_self(t, from, language) : from;
    if (self.node) {
        site->self = self;
        site->line = tree_place_line(t, &self);
    } else if (l->no_frame) {
        site->self = self;
        site->line = l->no_frame;
    }
}

/* --- accounts ---------------------------------------------------------------------------------------------------- */

#define NO_KEY   INT64_MIN
#define BARE_KEY (INT64_C(1) << 40) /* and the line: of a function without a symbol */

static uint64_t key_word(enum lens_scope scope, int inclusive, int64_t key)
{
    return (uint64_t)scope << 60 | (uint64_t)inclusive << 59 | ((uint64_t)key & ((UINT64_C(1) << 59) - 1));
}

static void add_to(struct lens *l, enum lens_scope scope, int inclusive, int64_t key, const struct lens_site *site)
{
    for (int all = 0; key != NO_KEY && all < 2; all++) {
        uint32_t kind = all ? 0 : site->kind;
        uint64_t a = key_word(scope, inclusive, key), b = (uint64_t)site->device_id << 8 | kind;
        uint32_t i = map_number(&l->row_of, a, b);
        if (i == MAP_NONE) {
            i = l->row_count;
            map_set_number(&l->row_of, a, b, i);
            struct lens_row *row = ARRAY_ADD(l->rows, l->row_count, l->row_capacity);
            *row = (struct lens_row){scope, inclusive, key, site->device_id, kind, 0, {.known = 0}};
        }
        struct lens_row *row = &l->rows[i];
        stat_add(&row->stats, &site->stats, row->site_count++ == 0);
    }
}

/* What a place counts for, by scope; the site's own counts for something in each, so that each adds up. */
static void keys_of(const struct lens *l, const struct tree_place *p, uint32_t line, int64_t keys[LENS_COUNT])
{
    const struct tree *t = &l->tree;
    const struct tree_frame *f = p->frame ? &t->frames[p->frame] : NULL;
    uint32_t address = t->nodes[p->node].address;
    uint32_t function = f ? f->function : p->node ? 0 : t->lines[line].function;
    keys[LENS_LINE] = line ? line : NO_KEY;
    keys[LENS_FUNCTION] = function ? function : line ? BARE_KEY | line : NO_KEY;
    keys[LENS_FILE] = f ? f->file_id : 0;
    keys[LENS_MODULE] = t->modules[t->addresses[address].module].key_id;
}

static void mark_changed(struct lens *l, const struct lens_site *site)
{
    const struct tree_place old = tree_find(&l->tree, tree_node(&l->tree, site->stack_id), site->old_line);
    int64_t keys[2][LENS_COUNT];
    keys_of(l, &site->self, site->line, keys[0]);
    keys_of(l, &old, site->old_line, keys[1]);
    for (int i = 0; i < 2; i++)
        for (int scope = 0; scope < LENS_COUNT; scope++)
            if (keys[i][scope] != NO_KEY)
                map_set_number(&l->changed, key_word((enum lens_scope)scope, 0, keys[i][scope]), 0, 1);
}

/* Everything on the stack, each key once: of the first so many scopes. */
static void add_callers(struct lens *l, uint32_t index, int scopes)
{
    const struct lens_site *site = &l->sites[index];
    struct tree *t = &l->tree;
    for (struct tree_place p = tree_first(t, tree_node(t, site->stack_id)); p.node; tree_next(t, &p)) {
        const struct tree_address *a = &t->addresses[t->nodes[p.node].address];
        int64_t keys[LENS_COUNT];
        if (t->modules[a->module].is_ours || !tree_is_shown(t, &p, l->options->language))
            continue;
        uint32_t line = p.frame ? t->frames[p.frame].line : 0;
        keys_of(l, &p, line ? line : tree_known_address_line(t, t->nodes[p.node].address), keys);
        for (int scope = 0; scope < scopes; scope++) {
            if (keys[scope] == NO_KEY || (scope == LENS_FILE && !keys[scope]))
                continue;
            uint64_t word = key_word((enum lens_scope)scope, 1, keys[scope]);
            if (map_number(&l->seen, word, 0) == index)
                continue;
            map_set_number(&l->seen, word, 0, index);
            add_to(l, (enum lens_scope)scope, 1, keys[scope], site);
        }
    }
}

void lens_account(struct lens *l)
{
    const int with_callees = l->options->window && l->options->window->is_by_line ? LENS_LINE + 1 : LENS_COUNT;
    for (uint32_t i = 0; i < l->site_count; i++) {
        struct lens_site *site = &l->sites[i];
        int64_t keys[LENS_COUNT];
        lens_choose_self(l, site);
        if (site->line != site->old_line)
            mark_changed(l, site);
        keys_of(l, &site->self, site->line, keys);
        for (int scope = 0; scope < LENS_COUNT; scope++)
            add_to(l, (enum lens_scope)scope, 0, keys[scope], site);
        if (!l->is_replayed)
            continue;
        if (site->op_id)
            add_to(l, LENS_OP, 0, site->op_id, site);
        if (l->options->window && l->options->window->is_self_only)
            continue;
        add_callers(l, i, with_callees);
        for (int scope = 0; scope < with_callees; scope++) /* of no frame of the stack */
            if (!site->self.node || (scope == LENS_FILE && !keys[scope]))
                add_to(l, (enum lens_scope)scope, 1, keys[scope], site);
    }
}

void lens_account_threads(struct lens *l)
{
    for (uint32_t i = 0; i < l->replay.thread_count; i++) {
        const struct replay_thread *t = &l->replay.threads[i];
        struct lens_row *row = ARRAY_ADD(l->rows, l->row_count, l->row_capacity);
        *row = (struct lens_row){LENS_THREAD, 0, t->id, t->device, lens_kind(l, kind_name(t->kind)), 1, t->stats};
    }
}

int64_t lens_row_key(const struct lens *l, const struct lens_row *row)
{
    if (row->scope == LENS_LINE)
        return l->tree.lines[row->key].id;
    if (row->scope == LENS_FUNCTION)
        return row->key & BARE_KEY ? -l->tree.lines[row->key - BARE_KEY].id : l->tree.functions[row->key].id;
    return row->key;
}

int lens_restore_own_peaks(struct lens *l, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(l->db,
                        "SELECT own_peak_bytes FROM main.account WHERE scope = ? AND inclusive = 0 AND device_id = ? "
                        "AND kind = ? AND key_id = ?",
                        &s, err);
    for (uint32_t i = 0; rc == 0 && !l->is_replayed && i < l->row_count; i++) {
        struct lens_row *row = &l->rows[i];
        if (map_number(&l->changed, key_word(row->scope, 0, row->key), 0) != MAP_NONE)
            continue;
        sqlite3_bind_text(s, 1, lens_scope_names[row->scope], -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, row->device_id);
        sqlite3_bind_text(s, 3, l->kinds[row->kind], -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 4, lens_row_key(l, row));
        if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) == SQLITE_INTEGER) {
            row->stats.value[STAT_own_peak_bytes] = sqlite3_column_int64(s, 0);
            row->stats.known |= 1u << STAT_own_peak_bytes;
        }
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return rc;
}
