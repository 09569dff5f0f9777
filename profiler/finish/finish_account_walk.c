/*
 * The sums of the accounts. Inclusive ones come from one walk over the stack tree: what a key holds is the sum of the
 * subtrees of its outermost occurrences, so that recursion counts once and no stack is expanded.
 */
#include "finish_account.h"

#include "../../common/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- rows -------------------------------------------------------------------------------------------------------- */

struct row *account_row_of(struct account_pass *p, int inclusive, uint32_t key, uint32_t group)
{
    uint32_t *head = &p->heads[inclusive][key];
    for (uint32_t at = *head; at; at = p->rows[at].next)
        if (p->rows[at].group == group)
            return &p->rows[at];
    struct row *r = ARRAY_ADD(p->rows, p->row_count, p->row_capacity);
    *r = (struct row){.key = key, .next = *head, .group = group};
    *head = (uint32_t)p->row_count - 1;
    return r;
}

static void row_add(struct account_pass *p, struct row *r, const int64_t *stat, uint32_t first, uint32_t end)
{
    account_combine(r->stat, stat);
    r->site_count += end - first;
    if (!p->salt) /* no own peak is looked for */
        return;
    r->salt += p->salt[end] - p->salt[first];
    if (r->last_link && p->links[r->last_link].range.end == first) {
        p->links[r->last_link].range.end = end;
        return;
    }
    uint32_t at = (uint32_t)p->link_count;
    *ARRAY_ADD(p->links, p->link_count, p->link_capacity) = (struct link){{first, end}, 0};
    if (r->last_link)
        p->links[r->last_link].next = at;
    else
        r->first_link = at;
    r->last_link = at;
    r->link_count++;
}

/* --- what sites are for themselves ------------------------------------------------------------------------------- */

/* Code without a symbol counts as a function by its line. */
static uint32_t function_key(const struct account_pass *p, uint32_t function, uint32_t line_key)
{
    return p->base[SCOPE_FUNCTION] + (function ? function : (uint32_t)p->m->function_count + line_key);
}

/* Every site counts for one key of each scope, so that each scope adds up to the totals. */
void account_self_keys(const struct account_pass *p, const struct model_site *site, uint32_t keys[SCOPE_COUNT])
{
    const struct model_frame *f = &p->m->frames[site->self_frame];
    keys[SCOPE_FILE] = p->base[SCOPE_FILE] + f->file;
    keys[SCOPE_FUNCTION] = function_key(p, f->function, site->line_key);
    keys[SCOPE_LINE] = p->base[SCOPE_LINE] + site->line_key;
    keys[SCOPE_MODULE] = p->base[SCOPE_MODULE] + p->m->addresses[site->self_address].module;
}

static void add_self(struct account_pass *p, uint32_t i, const int64_t *stat)
{
    const struct model *m = p->m;
    const struct model_site *s = &m->sites[i];
    uint32_t keys[SCOPE_COUNT];
    account_self_keys(p, s, keys);
    for (int k = 0; k < SCOPE_COUNT; k++) {
        row_add(p, account_row_of(p, 0, keys[k], s->group), stat, i, i + 1);
        /* An unknown stack, or one all in memprof, is in no node: what it holds is what it holds itself. And nearly
         * every stack has a frame without a file: as a caller it says nothing. */
        if (k == SCOPE_FILE ? !m->frames[s->self_frame].file : !s->self_frame && !s->self_address)
            row_add(p, account_row_of(p, 1, keys[k], s->group), stat, i, i + 1);
    }
}

/* The next site of a group, in its own rows. Returns its statistics, until the next one's. */
static const int64_t *take_site(struct account_pass *p, size_t group)
{
    const uint32_t i = p->cursors[group]++;
    for (unsigned k = 0; k < p->present_count; k++)
        p->stat[p->present[k]] = model_stat(p->m, &p->m->sites[i], p->present[k]);
    add_self(p, i, p->stat);
    return p->stat;
}

/* --- the walk ---------------------------------------------------------------------------------------------------- */

/* The keys of one frame (or, for frame 0, of an address without functions), at most 3. */
static int keys_of_frame(const struct account_pass *p, const struct model_frame *f, uint32_t keys[3])
{
    int n = 0;
    if (f->line_key)
        keys[n++] = p->base[SCOPE_LINE] + f->line_key;
    if (f->function || f->line_key)
        keys[n++] = function_key(p, f->function, f->line_key);
    if (f->file)
        keys[n++] = p->base[SCOPE_FILE] + f->file;
    return n;
}

static void add_key(struct account_pass *p, uint32_t key)
{
    *ARRAY_ADD(p->keys_of, p->keys_of_count, p->keys_of_capacity) = key;
}

/* Those that occur twice twice. */
static void add_keys(struct account_pass *p, uint32_t address)
{
    const struct model_address *a = &p->m->addresses[address];
    if (a->is_ours)
        return;
    for (uint32_t i = 0; i < a->frame_count; i++) {
        uint32_t keys[3];
        int n = keys_of_frame(p, &p->m->frames[a->first_frame + i], keys);
        for (int k = 0; k < n; k++)
            add_key(p, keys[k]);
    }
    if (a->line_key) {
        add_key(p, p->base[SCOPE_LINE] + a->line_key);
        add_key(p, function_key(p, 0, a->line_key));
    }
    if (address) /* module 0: in none */
        add_key(p, p->base[SCOPE_MODULE] + a->module);
}

/* Beside each other, once: nodes are many times as many as addresses. */
static void list_keys(struct account_pass *p)
{
    size_t count = p->m->address_count;
    p->first_of = xcalloc(count + 1, sizeof *p->first_of);
    for (uint32_t i = 0; i < count; i++) {
        add_keys(p, i);
        p->first_of[i + 1] = (uint32_t)p->keys_of_count;
    }
}

static void enter_keys(struct account_pass *p, uint32_t address)
{
    for (uint32_t i = p->first_of[address]; i < p->first_of[address + 1]; i++) {
        uint32_t key = p->keys_of[i];
        if (p->on_path[key])
            continue;
        p->on_path[key] = 1;
        *ARRAY_ADD(p->keys, p->key_count, p->key_capacity) = key;
    }
}

static void subtree_add(struct subtree *t, const int64_t stat[VALUE_COUNT])
{
    if (t->has_sites)
        account_combine(t->sum, stat);
    else
        memcpy(t->sum, stat, sizeof t->sum);
    t->has_sites = 1;
}

static void push_node(struct account_pass *p, uint32_t node)
{
    size_t groups = p->m->group_count;
    if (p->level_count == p->level_capacity) {
        p->level_capacity = p->level_capacity ? p->level_capacity * 2 : 64;
        p->levels = xrealloc(p->levels, p->level_capacity * sizeof *p->levels);
        p->subtrees = xrealloc(p->subtrees, p->level_capacity * groups * sizeof *p->subtrees);
    }
    size_t level = p->level_count++;
    p->levels[level] = (struct level){node, p->key_count};
    enter_keys(p, p->m->nodes[node].address);
    for (size_t g = 0; g < groups; g++) {
        const struct model_group *group = &p->m->groups[g];
        struct subtree *t = &p->subtrees[level * groups + g];
        uint32_t end = group->first_site + group->site_count;
        t->first_site = p->cursors[g];
        t->has_sites = 0;
        while (p->cursors[g] < end && p->m->sites[p->cursors[g]].node == node)
            subtree_add(t, take_site(p, g));
    }
}

/* The subtree of the innermost node is complete: its outermost keys take it, and its caller does. */
static void pop_node(struct account_pass *p)
{
    size_t groups = p->m->group_count, level = --p->level_count;
    struct subtree *t = p->subtrees + level * groups;
    for (size_t g = 0; g < groups; g++) {
        if (!t[g].has_sites)
            continue;
        for (size_t k = p->levels[level].first_key; k < p->key_count; k++)
            row_add(p, account_row_of(p, 1, p->keys[k], (uint32_t)g), t[g].sum, t[g].first_site, p->cursors[g]);
        if (level)
            subtree_add(t + g - groups, t[g].sum);
    }
    while (p->key_count > p->levels[level].first_key)
        p->on_path[p->keys[--p->key_count]] = 0;
}

static int walk(struct account_pass *p)
{
    struct model *m = p->m;
    for (size_t g = 0; g < m->group_count; g++) {
        uint32_t end = m->groups[g].first_site + m->groups[g].site_count;
        p->cursors[g] = m->groups[g].first_site;
        while (p->cursors[g] < end && m->sites[p->cursors[g]].node == 0)
            take_site(p, g);
    }
    for (size_t i = 1; i < m->node_count; i++) {
        while (p->level_count && p->levels[p->level_count - 1].node != m->nodes[i].parent)
            pop_node(p);
        push_node(p, (uint32_t)i);
        if (finish_interrupted)
            return -EINTR;
    }
    while (p->level_count)
        pop_node(p);
    return 0;
}

int account_walk(struct account_pass *p)
{
    list_keys(p);
    for (int i = 0; i < VALUE_COUNT; i++)
        if (p->m->stats.of[i].narrow || p->m->stats.of[i].wide)
            p->present[p->present_count++] = (enum model_stat)i;
    return walk(p);
}
