#include "range.h"

#include "error.h"
#include "search.h"

#include <stdlib.h>
#include <string.h>

#define LEAF_RANGES 128u

struct leaf {
    uint32_t count; /* at least 1 */
    struct range ranges[LEAF_RANGES];
};

struct range_map {
    size_t count;
    size_t leaf_count;
    size_t leaf_capacity;
    uint64_t *starts; /* of the leaves' first ranges */
    struct leaf **leaves;
};

struct range_map *range_map_open(void)
{
    return xcalloc(1, sizeof(struct range_map));
}

void range_map_close(struct range_map *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->leaf_count; i++)
        free(m->leaves[i]);
    free(m->leaves);
    free(m->starts);
    free(m);
}

/* The last leaf that starts at or before address, or the first. */
static size_t leaf_index(const struct range_map *m, uint64_t address)
{
    size_t low = 0, high = m->leaf_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (m->starts[middle] <= address)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* How many ranges of the leaf end at or before address. */
static uint32_t leaf_position(const struct leaf *l, uint64_t address)
{
    const uint32_t low = SEARCH_FIRST(l->count, i, l->ranges[i].end <= address);
    return low;
}

struct range *range_map_find(struct range_map *m, uint64_t address)
{
    if (!m->count)
        return NULL;
    size_t i = leaf_index(m, address);
    uint32_t position = leaf_position(m->leaves[i], address);
    if (position < m->leaves[i]->count)
        return &m->leaves[i]->ranges[position];
    return i + 1 < m->leaf_count ? &m->leaves[i + 1]->ranges[0] : NULL;
}

static void leaf_add(struct range_map *m, size_t index, struct leaf *l)
{
    if (m->leaf_count == m->leaf_capacity) {
        m->leaf_capacity = m->leaf_capacity ? m->leaf_capacity * 2 : 8;
        m->leaves = xrealloc(m->leaves, m->leaf_capacity * sizeof(struct leaf *));
        m->starts = xrealloc(m->starts, m->leaf_capacity * sizeof *m->starts);
    }
    memmove(m->leaves + index + 1, m->leaves + index, (m->leaf_count - index) * sizeof(struct leaf *));
    memmove(m->starts + index + 1, m->starts + index, (m->leaf_count - index) * sizeof *m->starts);
    m->leaves[index] = l;
    m->starts[index] = l->ranges[0].start;
    m->leaf_count++;
}

/* The upper part of a full leaf becomes a leaf of its own: half of it, or nothing but room when ranges come in order.
 */
static void leaf_split(struct range_map *m, size_t index, uint32_t position)
{
    struct leaf *l = m->leaves[index], *upper = xmalloc(sizeof *upper);
    uint32_t keep = position == LEAF_RANGES ? LEAF_RANGES - 1 : LEAF_RANGES / 2;
    upper->count = LEAF_RANGES - keep;
    memcpy(upper->ranges, l->ranges + keep, upper->count * sizeof *upper->ranges);
    l->count = keep;
    leaf_add(m, index + 1, upper);
}

void range_map_insert(struct range_map *m, const struct range *r)
{
    struct range added = *r; /* r may lie in a leaf */
    if (!m->leaf_count) {
        struct leaf *l = xmalloc(sizeof *l);
        l->count = 1;
        l->ranges[0] = added;
        leaf_add(m, 0, l);
        m->count = 1;
        return;
    }
    size_t i = leaf_index(m, added.start);
    uint32_t position = leaf_position(m->leaves[i], added.start);
    if (m->leaves[i]->count == LEAF_RANGES) {
        leaf_split(m, i, position);
        i = leaf_index(m, added.start);
        position = leaf_position(m->leaves[i], added.start);
    }
    struct leaf *l = m->leaves[i];
    memmove(l->ranges + position + 1, l->ranges + position, (l->count - position) * sizeof *l->ranges);
    l->ranges[position] = added;
    l->count++;
    m->starts[i] = l->ranges[0].start;
    m->count++;
}

void range_map_remove(struct range_map *m, const struct range *r)
{
    size_t i = leaf_index(m, r->start);
    struct leaf *l = m->leaves[i];
    uint32_t position = (uint32_t)(r - l->ranges);
    m->count--;
    if (--l->count) {
        memmove(l->ranges + position, l->ranges + position + 1, (l->count - position) * sizeof *l->ranges);
        m->starts[i] = l->ranges[0].start;
        return;
    }
    free(l);
    m->leaf_count--;
    memmove(m->leaves + i, m->leaves + i + 1, (m->leaf_count - i) * sizeof(struct leaf *));
    memmove(m->starts + i, m->starts + i + 1, (m->leaf_count - i) * sizeof *m->starts);
}
