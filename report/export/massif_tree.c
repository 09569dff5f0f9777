#include "massif_tree.h"

#include "../../common/array.h"
#include "../../common/buf.h"
#include "../../common/text.h"
#include "sites.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS = 100, DEPTH_MAX = 30, NODES_MAX = 1 << 22, NAME_MOST = 4000 };

static uint64_t key_of(const struct walk_frame *frame)
{
    return (uintptr_t)frame;
}

void massif_tree_count(struct massif_tree *t, const void *arg)
{
    const struct massif_stack *s = arg;
    *map_slot(&t->inner, key_of(s->frames[0]), 0) += (uint64_t)s->bytes;
    t->bytes += s->bytes;
}

static int is_little(const struct massif_tree *t, int64_t bytes)
{
    return bytes < t->bytes / PARTS;
}

/* The child of a node for a frame, made where it is new; 0: no more are made. */
static uint32_t child_of(struct massif_tree *t, uint32_t parent, const struct walk_frame *frame)
{
    uint32_t number = map_number(&t->children, parent, key_of(frame));
    if (number != MAP_NONE || t->count >= NODES_MAX)
        return number == MAP_NONE ? 0 : number;
    number = t->count;
    *ARRAY_ADD(t->nodes, t->count, t->room) = (struct massif_node){frame, 0, 0, t->nodes[parent].first};
    t->nodes[parent].first = number;
    map_set_number(&t->children, parent, key_of(frame), number);
    return number;
}

void massif_tree_add(struct massif_tree *t, const void *arg)
{
    const struct massif_stack *s = arg;
    uint32_t node = 0;
    if (!t->count)
        ARRAY_ADD(t->nodes, t->count, t->room);
    t->nodes[0].bytes += s->bytes;
    if (is_little(t, (int64_t)map_get(&t->inner, key_of(s->frames[0]), 0)))
        return;
    for (int i = 0; i < s->count && i < DEPTH_MAX && (node = child_of(t, node, s->frames[i])); i++)
        t->nodes[node].bytes += s->bytes;
}

int64_t massif_tree_bytes(const struct massif_tree *t)
{
    return t->bytes;
}

/* --- printing ----------------------------------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
    const struct massif_node *x = *(const struct massif_node *const *)a, *y = *(const struct massif_node *const *)b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : x < y ? -1 : x > y;
}

struct children {
    const struct massif_node **nodes; /* that have a line of their own, largest first */
    uint32_t count, room;
    int64_t little_bytes; /* of the others, and of what has no child */
    uint32_t little_count;
    int64_t ends_bytes; /* of stacks that end here */
};

static void find_children(const struct massif_tree *t, const struct massif_node *node, struct children *c)
{
    int64_t bytes = 0;
    for (uint32_t i = node->first; i; i = t->nodes[i].next) {
        const struct massif_node *child = &t->nodes[i];
        bytes += child->bytes;
        if (is_little(t, child->bytes)) {
            c->little_bytes += child->bytes;
            c->little_count++;
        } else {
            *ARRAY_ADD(c->nodes, c->count, c->room) = child;
        }
    }
    if (c->count)
        qsort(c->nodes, c->count, sizeof *c->nodes, by_bytes);
    c->ends_bytes = node->bytes - bytes;
}

/* Lines that allocated too little have no node. */
static void find_little(const struct massif_tree *t, struct children *c)
{
    for (struct map_entry *e = NULL; (e = map_next(&t->inner, e));)
        if (is_little(t, (int64_t)e->value)) {
            c->little_bytes += (int64_t)e->value;
            c->little_count++;
            c->ends_bytes -= (int64_t)e->value;
        }
}

static void put_clean(FILE *out, const char *text)
{
    struct buf plain = BUF(64u << 20);
    text_plain(&plain, text);
    size_t length = plain.length < NAME_MOST ? plain.length : NAME_MOST;
    while (length < plain.length && length && (buf_text(&plain)[length] & 0xc0) == 0x80) /* within a character */
        length--;
    fwrite(buf_text(&plain), 1, length, out);
    buf_free(&plain);
}

/* "0x4011D6: make (b.c:6)", without a line "(in /usr/bin/gawk)". */
static void put_frame(FILE *out, const struct walk_frame *frame)
{
    struct buf name = BUF(64u << 20);
    export_frame_name(frame, &name);
    fprintf(out, "0x%llX: ", (unsigned long long)(frame->offset > 0 ? frame->offset : 0));
    put_clean(out, name.length ? buf_text(&name) : "??");
    buf_free(&name);
    if (frame->file || frame->module)
        fputs(frame->file ? " (" : " (in ", out);
    if (frame->file || frame->module)
        put_clean(out, frame->file ? frame->file : frame->module);
    if (frame->file)
        fprintf(out, ":%lld", (long long)frame->line);
    fputs(frame->file || frame->module ? ")\n" : "\n", out);
}

static void put_node(struct massif_tree *t, const struct massif_node *node, int depth, FILE *out)
{
    struct children c = {.nodes = NULL};
    find_children(t, node, &c);
    if (depth == 0)
        find_little(t, &c);
    /* where all ends, no line says so */
    int has_ends = c.ends_bytes > 0 && (c.count || c.little_count);
    uint32_t lines = c.count + (c.little_count > 0) + (uint32_t)has_ends;
    fprintf(out, "%*sn%u: %lld ", depth, "", lines, (long long)node->bytes);
    if (depth == 0)
        fputs("(heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n", out);
    else
        put_frame(out, node->frame);
    for (uint32_t i = 0; i < c.count; i++)
        put_node(t, c.nodes[i], depth + 1, out);
    if (has_ends)
        fprintf(out, "%*sn0: %lld 0x0: (no caller is known)\n", depth + 1, "", (long long)c.ends_bytes);
    if (c.little_count)
        fprintf(out, "%*sn0: %lld in %u place%s, all below massif's threshold (1.00%%)\n", depth + 1, "",
                (long long)c.little_bytes, c.little_count, c.little_count == 1 ? "" : "s");
    free(c.nodes);
}

void massif_tree_write(struct massif_tree *t, FILE *out)
{
    if (t->count)
        put_node(t, &t->nodes[0], 0, out);
}

void massif_tree_free(struct massif_tree *t)
{
    map_close(&t->inner);
    map_close(&t->children);
    free(t->nodes);
    *t = (struct massif_tree){0};
}
