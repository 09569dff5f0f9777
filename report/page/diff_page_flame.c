/*
 * The flame graph of two recordings: of their tree of functions the nodes that are the largest part of anything. What
 * is below one that is shown and not shown itself is one box there, so that sums stay whole. Both sides choose
 * together: a stack that was left out of one alone would look as if it had come or gone.
 */
#include "diff_page_data.h"

#include "../../common/sum.h"
#include "../query/short_name.h"

#include <stdlib.h>
#include <string.h>

struct choice {
    const struct diff_tree *tree;
    double *scores;   /* by node: the largest share that it has of anything, with what it calls */
    uint32_t *shown;  /* by node: its number on the page + 1; 0: not shown */
    uint32_t *folded; /* by node of the page: the node of what is left out below it; 0: none */
    uint32_t folded_capacity;
    uint32_t left_out; /* nodes */
};

static void add_scores(struct choice *c, uint32_t device, int side, int stat, double *sums)
{
    const struct diff_tree *t = c->tree;
    memset(sums, 0, t->node_count * sizeof *sums);
    for (uint32_t i = 0; i < t->leaf_count; i++) {
        const struct diff_tree_leaf *leaf = &t->leaves[i];
        if (leaf->device == device && leaf->values[side][stat] > 0)
            sums[leaf->node] += (double)leaf->values[side][stat];
    }
    for (uint32_t i = t->node_count; i-- > 1;)
        sums[t->nodes[i].parent] += sums[i];
    for (uint32_t i = 0; i < t->node_count && sums[0] > 0; i++)
        if (sums[i] / sums[0] > c->scores[i])
            c->scores[i] = sums[i] / sums[0];
}

static int by_score(const void *a, const void *b, void *of)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    const double *scores = of;
    if (scores[left] != scores[right])
        return scores[left] < scores[right] ? 1 : -1;
    return left < right ? -1 : left > right;
}

/* A caller's score is no smaller than those of what it calls, and its number is: what is chosen has all its callers. */
static void choose(struct choice *c)
{
    const struct diff_tree *t = c->tree;
    double *sums = xcalloc(t->node_count, sizeof *sums);
    uint32_t *order = xcalloc(t->node_count, sizeof *order);
    for (uint32_t device = 0; device < t->device_count; device++)
        for (int side = 0; side < DIFF_SIDES; side++)
            for (int stat = 0; stat < DIFF_TREE_STATS; stat++)
                add_scores(c, device, side, stat, sums);
    for (uint32_t i = 0; i < t->node_count; i++)
        order[i] = i;
    qsort_r(order, t->node_count, sizeof *order, by_score, c->scores);
    for (uint32_t i = 0; i < t->node_count; i++)
        if (i <= PAGE_DIFF_NODES_MAX)
            c->shown[order[i]] = 1;
        else
            c->left_out++;
    c->shown[0] = 1;
    free(sums);
    free(order);
}

/* --- as the report's page has functions, frames and nodes --- */

struct texts {
    char ***list;
    uint32_t *count, *capacity;
    struct text_map number_of;
};

static int32_t text_number(struct texts *t, const char *text)
{
    if (!text)
        return -1;
    uint32_t *slot = text_map_slot(&t->number_of, text, strlen(text));
    if (!*slot) {
        *ARRAY_ADD(*t->list, *t->count, *t->capacity) = short_name_cut(text);
        *slot = *t->count;
    }
    return (int32_t)*slot - 1;
}

/* The frame of a function; number 0 is of what is left out. */
static void add_frame(struct page *page, const struct diff_tree_frame *f, struct texts *files, struct texts *modules)
{
    const int32_t function = (int32_t)page->function_count, file = text_number(files, f->file);
    *ARRAY_ADD(page->functions, page->function_count, page->function_capacity) = (struct page_function){
        .name = short_name_cut(f->name), .file = file, .unknown = f->is_unknown, .is_allocator = f->is_allocator};
    *ARRAY_ADD(page->frames, page->frame_count, page->frame_capacity) =
        (struct page_frame){.function = function,
                            .file = file,
                            .module = text_number(modules, f->module),
                            .language = f->is_python ? PAGE_PYTHON : PAGE_NATIVE,
                            .folded = function == 0};
}

static void add_frames(struct page *page, const struct choice *c)
{
    struct texts files = {.list = &page->files, .count = &page->file_count, .capacity = &page->file_capacity};
    struct texts modules = {.list = &page->modules, .count = &page->module_count, .capacity = &page->module_capacity};
    const struct diff_tree *t = c->tree;
    uint32_t *number_of = xcalloc(t->frame_count + 1ul, sizeof *number_of);
    add_frame(page, &(struct diff_tree_frame){.name = (char *)"(smaller stacks)", .is_unknown = 1}, &files, &modules);
    for (uint32_t i = 1; i < t->node_count; i++) {
        uint32_t *number = &number_of[t->nodes[i].frame];
        if (!c->shown[i])
            continue;
        if (!*number) {
            *number = page->frame_count;
            add_frame(page, &t->frames[t->nodes[i].frame], &files, &modules);
        }
        page->nodes[c->shown[i] - 1].frame = (int32_t)*number;
    }
    free(number_of);
    text_map_close(&files.number_of);
    text_map_close(&modules.number_of);
}

static uint32_t add_node(struct page *page, uint32_t parent)
{
    const uint32_t number = page->node_count;
    struct page_node *node = ARRAY_ADD(page->nodes, page->node_count, page->node_capacity);
    node->parent = parent == MAP_NONE ? -1 : (int32_t)parent;
    node->first_child = node->next_sibling = MAP_NONE;
    if (parent != MAP_NONE) {
        node->depth = page->nodes[parent].depth + 1;
        node->next_sibling = page->nodes[parent].first_child;
        page->nodes[parent].first_child = number;
    }
    return number;
}

/* Numbers of the page, + 1; the root has none, as a stack of no frames has not. */
static void add_nodes(struct page *page, struct choice *c)
{
    const struct diff_tree *t = c->tree;
    c->shown[0] = 0;
    for (uint32_t i = 1; i < t->node_count; i++) {
        const uint32_t parent = t->nodes[i].parent;
        if (c->shown[i])
            c->shown[i] = add_node(page, parent ? c->shown[parent] - 1 : MAP_NONE) + 1;
    }
}

/* The node of what is left out below a node; MAP_NONE: below the root. */
static uint32_t folded_below(struct page *page, struct choice *c, uint32_t parent)
{
    const uint32_t at = parent == MAP_NONE ? 0 : parent + 1;
    ARRAY_ROOM_ZERO(c->folded, at + 1, c->folded_capacity);
    if (!c->folded[at])
        c->folded[at] = add_node(page, parent) + 1; /* its frame is number 0 */
    return c->folded[at] - 1;
}

static uint32_t node_of_leaf(struct page *page, struct choice *c, uint32_t node)
{
    if (c->shown[node])
        return c->shown[node] - 1;
    while (node && !c->shown[node])
        node = c->tree->nodes[node].parent;
    return folded_below(page, c, node ? c->shown[node] - 1 : MAP_NONE);
}

/* --- what is written --- */

static void write_values(struct page_pack *pack, const char *prefix, int side, int stat,
                         const struct diff_tree_leaf *sums, uint32_t count)
{
    struct buf key = BUF(64);
    buf_printf(&key, "%s_%s", prefix, stat_infos[diff_tree_stats[stat]].column);
    pack_column(pack, buf_text(&key), count, count ? &sums->values[side][stat] : NULL, sizeof *sums, 0);
    buf_free(&key);
}

static void write_sums(struct page *page, const struct diff_tree_leaf *sums, uint32_t count, struct page_pack *pack)
{
    static const char *const prefixes[] = {"old", "new"};
    int64_t *column = xcalloc(count + 1ul, sizeof *column);
    pack_open(pack, "sites", '{');
    for (uint32_t i = 0; i < count; i++)
        column[i] = page->nodes[sums[i].node].order;
    pack_column(pack, "node", count, column, sizeof *column, 0);
    for (uint32_t i = 0; i < count; i++)
        column[i] = sums[i].device;
    pack_column(pack, "device", count, column, sizeof *column, 0);
    for (int side = 0; side < DIFF_SIDES; side++)
        for (int stat = 0; stat < DIFF_TREE_STATS; stat++)
            write_values(pack, prefixes[side], side, stat, sums, count);
    pack_close(pack, '}');
    free(column);
}

/* The leaves of the tree, as far as their nodes are shown; those that came together are one. */
static struct diff_tree_leaf *sum_leaves(struct page *page, struct choice *c, uint32_t *count)
{
    struct diff_tree_leaf *sums = NULL;
    struct map at = {0};
    uint32_t capacity = 0;
    *count = 0;
    for (uint32_t i = 0; i < c->tree->leaf_count; i++) {
        const struct diff_tree_leaf *leaf = &c->tree->leaves[i];
        const uint32_t node = node_of_leaf(page, c, leaf->node);
        const uint32_t number = map_number_or(&at, node, leaf->device, *count);
        if (number == *count)
            *ARRAY_ADD(sums, *count, capacity) = (struct diff_tree_leaf){.node = node, .device = leaf->device};
        for (int side = 0; side < DIFF_SIDES; side++)
            for (int stat = 0; stat < DIFF_TREE_STATS; stat++)
                sum_add(&sums[number].values[side][stat], leaf->values[side][stat]);
    }
    map_close(&at);
    return sums;
}

int diff_page_write_flame(void *of, struct page_pack *pack)
{
    const struct diff_page *d = of;
    const struct diff_tree *t = &d->tree;
    struct page page = {.err = d->err};
    struct choice c = {.tree = t};
    uint32_t count;
    c.scores = xcalloc(t->node_count, sizeof *c.scores);
    c.shown = xcalloc(t->node_count, sizeof *c.shown);
    choose(&c);
    add_nodes(&page, &c);
    add_frames(&page, &c);
    struct diff_tree_leaf *sums = sum_leaves(&page, &c, &count);
    page_order_nodes(&page);
    pack_open(pack, NULL, '{');
    page_write_tree(&page, pack);
    write_sums(&page, sums, count, pack);
    pack_int(pack, "node_count", t->node_count - 1);
    pack_int(pack, "left_out", c.left_out);
    pack_close(pack, '}');
    free(sums);
    free(c.scores);
    free(c.shown);
    free(c.folded);
    page_free(&page);
    return 0;
}
