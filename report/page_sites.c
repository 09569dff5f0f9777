/*
 * Sites and their stacks: read whole, then the tree of the stacks that matter is built over (function, file, line), and
 * the rest is folded into its nearest shown caller.
 */
#include "page_data.h"

#include "../common/db.h"
#include "../common/kind.h"
#include "page_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WALK_MAX 8192 /* frames of a stack; a longer one is a loop in a damaged file */

struct raw_address {
    int64_t id;
    int64_t module_id; /* 0: none */
    uint64_t offset;
    uint32_t first_frame, frame_count; /* innermost first */
};

struct raw_frame {
    int64_t function_id, file_id; /* 0: none */
    int32_t line;
    uint8_t language, is_inline;
};

struct raw_stack {
    int64_t id;
    int64_t parent_id; /* 0: none */
    uint32_t parent, address;
    uint32_t node; /* in the page, PAGE_NONE: not there */
};

struct raw_site {
    int64_t id, line_id;
    uint32_t stack;
    int32_t line, module;
    uint16_t device;
    uint8_t kind;
    double score; /* the largest share that it has of anything shown */
    int64_t stats[STAT_COUNT];
};

struct raw {
    struct raw_address *addresses;
    uint32_t address_count, address_capacity;
    struct raw_frame *frames;
    uint32_t frame_count, frame_capacity;
    struct raw_stack *stacks;
    uint32_t stack_count, stack_capacity;
    struct raw_site *sites;
    uint32_t site_count, site_capacity;
};

/* Both are read in the order of their ids, which are dense in files that nobody touched. */
#define FIND(array, count, wanted)                                                                                     \
    uint32_t low = 0, high = (count);                                                                                  \
    if ((count) && (wanted) >= (array)[0].id && (uint64_t)(wanted) - (uint64_t)(array)[0].id < (count) &&              \
        (array)[(wanted) - (array)[0].id].id == (wanted))                                                              \
        return (uint32_t)((wanted) - (array)[0].id);                                                                   \
    while (low < high) {                                                                                               \
        uint32_t middle = low + (high - low) / 2;                                                                      \
        if ((array)[middle].id < (wanted))                                                                             \
            low = middle + 1;                                                                                          \
        else                                                                                                           \
            high = middle;                                                                                             \
    }                                                                                                                  \
    return low < (count) && (array)[low].id == (wanted) ? low : PAGE_NONE

static uint32_t find_address(const struct raw *raw, int64_t id)
{
    FIND(raw->addresses, raw->address_count, id);
}

static uint32_t find_stack(const struct raw *raw, int64_t id)
{
    FIND(raw->stacks, raw->stack_count, id);
}

static int load_addresses(struct page *page, struct raw *raw)
{
    sqlite3_stmt *s =
        page_query(page, "SELECT address_id, coalesce(module_id, 0), offset FROM address ORDER BY address_id");
    if (!s)
        return -EIO;
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        struct raw_address *a = PAGE_PUSH(raw->addresses, raw->address_count, raw->address_capacity);
        a->id = sqlite3_column_int64(s, 0);
        a->module_id = sqlite3_column_int64(s, 1);
        a->offset = (uint64_t)sqlite3_column_int64(s, 2);
    }
    if ((rc = page_query_end(page, s, rc)))
        return rc;
    s = page_query(
        page,
        "SELECT address_id, coalesce(function_id, 0), coalesce(file_id, 0), coalesce(line, 0), language, is_inline "
        "FROM frame ORDER BY address_id, inline_depth");
    if (!s)
        return -EIO;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        uint32_t address = find_address(raw, sqlite3_column_int64(s, 0));
        if (address == PAGE_NONE)
            continue;
        struct raw_address *a = &raw->addresses[address];
        if (!a->frame_count)
            a->first_frame = raw->frame_count;
        a->frame_count++;
        struct raw_frame *f = PAGE_PUSH(raw->frames, raw->frame_count, raw->frame_capacity);
        const char *language = db_text(s, 4);
        f->function_id = sqlite3_column_int64(s, 1);
        f->file_id = sqlite3_column_int64(s, 2);
        f->line = page_line_number(s, 3);
        f->language = !strcmp(language, "python") ? PAGE_PYTHON : !strcmp(language, "jit") ? PAGE_JIT : PAGE_NATIVE;
        f->is_inline = sqlite3_column_int(s, 5) != 0;
    }
    return page_query_end(page, s, rc);
}

static int load_stacks(struct page *page, struct raw *raw)
{
    sqlite3_stmt *s =
        page_query(page, "SELECT stack_id, coalesce(parent_id, 0), address_id FROM stack ORDER BY stack_id");
    if (!s)
        return -EIO;
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        struct raw_stack *stack = PAGE_PUSH(raw->stacks, raw->stack_count, raw->stack_capacity);
        stack->id = sqlite3_column_int64(s, 0);
        stack->parent_id = sqlite3_column_int64(s, 1);
        stack->address = find_address(raw, sqlite3_column_int64(s, 2));
        stack->node = PAGE_NONE;
    }
    for (uint32_t i = 0; i < raw->stack_count; i++)
        raw->stacks[i].parent = raw->stacks[i].parent_id ? find_stack(raw, raw->stacks[i].parent_id) : PAGE_NONE;
    return page_query_end(page, s, rc);
}

static int load_raw_sites(struct page *page, struct raw *raw)
{
    sqlite3_stmt *s = page_query(page, "SELECT s.site_id, s.stack_id, s.device_id, s.kind, coalesce(sl.line_id, 0)"
#define STAT(column, option, unit, combine, text) ", s." #column
#include "../common/stat.def"
#undef STAT
                                       " FROM site s LEFT JOIN site_line sl USING(site_id) ORDER BY s.site_id");
    if (!s)
        return -EIO;
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        int32_t device = page_device_index(page, sqlite3_column_int64(s, 2));
        if (device < 0)
            continue;
        struct raw_site *site = PAGE_PUSH(raw->sites, raw->site_count, raw->site_capacity);
        site->id = sqlite3_column_int64(s, 0);
        site->stack = find_stack(raw, sqlite3_column_int64(s, 1));
        site->device = (uint16_t)device;
        site->kind = (uint8_t)page_kind(db_text(s, 3));
        site->line_id = sqlite3_column_int64(s, 4);
        for (int i = 0; i < STAT_COUNT; i++)
            site->stats[i] = sqlite3_column_int64(s, 5 + i);
    }
    return page_query_end(page, s, rc);
}

/* Largest first, by the largest share that a site has of anything that the page sorts by. */
static int by_score(const void *a, const void *b)
{
    const struct raw_site *left = a, *right = b;
    if (left->score != right->score)
        return left->score < right->score ? 1 : -1;
    return left->id < right->id ? -1 : left->id > right->id;
}

static void rank_sites(struct page *page, struct raw *raw)
{
    static const uint8_t columns[] = {STAT_at_peak_bytes,  STAT_at_kind_peak_bytes, STAT_end_bytes,
                                      STAT_alloc_bytes,    STAT_alloc_count,        STAT_temporary_count,
                                      STAT_own_peak_bytes, STAT_end_count};
    enum { COLUMNS = sizeof columns };
    double(*sums)[COLUMNS] = xcalloc(page->device_count + 1, sizeof *sums);
    for (uint32_t i = 0; i < raw->site_count; i++)
        for (int c = 0; c < COLUMNS; c++)
            sums[raw->sites[i].device][c] += (double)raw->sites[i].stats[columns[c]];
    for (uint32_t i = 0; i < raw->site_count; i++)
        for (int c = 0; c < COLUMNS; c++) {
            double sum = sums[raw->sites[i].device][c];
            double share = sum > 0 ? (double)raw->sites[i].stats[columns[c]] / sum : 0;
            if (share > raw->sites[i].score)
                raw->sites[i].score = share;
        }
    free(sums);
    if (raw->site_count)
        qsort(raw->sites, raw->site_count, sizeof *raw->sites, by_score);
}

static int32_t address_module(struct page *page, const struct raw_address *a)
{
    if (!a->module_id)
        return -1;
    uint32_t known = page_map_get(&page->module_of, (uint64_t)a->module_id, PAGE_MODULE_ID);
    if (known != PAGE_NONE)
        return (int32_t)known;
    int32_t module = -1;
    sqlite3_stmt *s = page_query(page, "SELECT path FROM module WHERE module_id = ?");
    if (s) {
        sqlite3_bind_int64(s, 1, a->module_id);
        if (sqlite3_step(s) == SQLITE_ROW)
            module = page_module(page, db_text(s, 0), (uint64_t)a->module_id, PAGE_MODULE_ID);
        sqlite3_finalize(s);
    }
    return module;
}

static struct page_frame frame_of(struct page *page, const struct raw *raw, const struct raw_address *a, uint32_t index)
{
    struct page_frame frame = {.function = -1, .file = -1, .module = address_module(page, a)};
    if (index < a->frame_count) {
        const struct raw_frame *f = &raw->frames[a->first_frame + index];
        if (f->function_id)
            frame.function = page_function(page, f->function_id);
        if (f->file_id)
            frame.file = page_file(page, f->file_id);
        frame.line = f->line;
        frame.language = f->language;
        frame.is_inline = f->is_inline;
    }
    if (frame.function < 0)
        frame.function = page_unknown_function(page, frame.module, a->offset);
    return frame;
}

static uint32_t frame_index(struct page *page, struct page_frame frame)
{
    uint64_t a = (uint64_t)(uint32_t)frame.function << 32 | (uint32_t)frame.file;
    uint64_t b = (uint64_t)(uint32_t)frame.line << 32 | (uint64_t)(uint32_t)(frame.module + 1) << 4 |
                 (uint64_t)frame.language << 2 | (uint64_t)frame.is_inline << 1 | frame.folded;
    uint32_t index = page_map_get(&page->frame_of, a, b);
    if (index == PAGE_NONE) {
        index = page->frame_count;
        *PAGE_PUSH(page->frames, page->frame_count, page->frame_capacity) = frame;
        page_map_set(&page->frame_of, a, b, index);
    }
    return index;
}

/* The child of parent (PAGE_NONE: the root) for a frame, made when it is not there. */
static uint32_t node_index(struct page *page, uint32_t parent, uint32_t frame)
{
    uint32_t index = page_map_get(&page->node_of, parent, frame);
    if (index != PAGE_NONE)
        return index;
    index = page->node_count;
    struct page_node *node = PAGE_PUSH(page->nodes, page->node_count, page->node_capacity);
    node->parent = (int32_t)parent;
    node->frame = (int32_t)frame;
    node->first_child = node->next_sibling = PAGE_NONE;
    if (parent != PAGE_NONE) {
        node->depth = page->nodes[parent].depth + 1;
        node->next_sibling = page->nodes[parent].first_child;
        page->nodes[parent].first_child = index;
    }
    page_map_set(&page->node_of, parent, frame, index);
    return index;
}

static uint32_t stack_node(struct page *page, struct raw *raw, uint32_t stack)
{
    static uint32_t path[WALK_MAX]; /* one page at a time */
    uint32_t depth = 0;
    for (; stack != PAGE_NONE && raw->stacks[stack].node == PAGE_NONE && depth < WALK_MAX;
         stack = raw->stacks[stack].parent)
        path[depth++] = stack;
    uint32_t node = stack == PAGE_NONE ? PAGE_NONE : raw->stacks[stack].node;
    while (depth--) {
        struct raw_stack *s = &raw->stacks[path[depth]];
        if (s->address != PAGE_NONE) {
            const struct raw_address *a = &raw->addresses[s->address];
            for (uint32_t i = a->frame_count ? a->frame_count : 1; i--;)
                node = node_index(page, node, frame_index(page, frame_of(page, raw, a, i)));
        }
        s->node = node;
    }
    return node;
}

/* The self frame of a site, as the accounts chose it, and that frame's module. */
static void resolve_line(struct page *page, struct raw *raw, struct raw_site *site, sqlite3_stmt *line_row)
{
    int64_t function_id = 0, file_id = 0, line = 0;
    int found = 0;
    site->line = site->module = -1;
    if (site->line_id) {
        sqlite3_reset(line_row);
        sqlite3_bind_int64(line_row, 1, site->line_id);
        if (sqlite3_step(line_row) == SQLITE_ROW) {
            function_id = sqlite3_column_int64(line_row, 0);
            file_id = sqlite3_column_int64(line_row, 1);
            line = page_line_number(line_row, 2);
            found = 1;
        }
    }
    const struct raw_address *self = NULL;
    uint32_t self_frame = 0, stack = site->stack;
    for (int steps = 0; stack != PAGE_NONE && steps < WALK_MAX; steps++, stack = raw->stacks[stack].parent) {
        if (raw->stacks[stack].address == PAGE_NONE)
            continue;
        const struct raw_address *a = &raw->addresses[raw->stacks[stack].address];
        if (!self) {
            self = a;
            if (!found || !function_id)
                break;
        }
        for (uint32_t i = 0; i < a->frame_count; i++) {
            const struct raw_frame *f = &raw->frames[a->first_frame + i];
            if (f->function_id == function_id && f->file_id == file_id && f->line == line) {
                self = a;
                self_frame = i;
                goto known;
            }
        }
    }
known:
    if (self)
        site->module = address_module(page, self);
    int32_t function = found && function_id ? page_function(page, function_id) : -1;
    if (function >= 0) {
        site->line = (int32_t)page_line(page, function, file_id ? page_file(page, file_id) : -1, (int32_t)line);
    } else if (self) {
        struct page_frame frame = frame_of(page, raw, self, self_frame);
        site->line = (int32_t)page_line(page, frame.function, frame.file, frame.line);
    }
    if (site->line < 0)
        site->line = (int32_t)page_line(page, page_named_function(page, "(unknown stack)", 1), -1, 0);
}

static void add_to_site(struct page *page, const struct raw_site *from, uint32_t node)
{
    uint64_t a = (uint64_t)node << 32 | (uint32_t)from->line, b = (uint64_t)from->device << 8 | from->kind;
    uint32_t index = page_map_get(&page->site_at, a, b);
    if (index == PAGE_NONE) {
        index = page->site_count;
        struct page_site *site = PAGE_PUSH(page->sites, page->site_count, page->site_capacity);
        site->node = node;
        site->line = from->line;
        site->module = from->module;
        site->device = from->device;
        site->kind = from->kind;
        page_map_set(&page->site_at, a, b, index);
    }
    struct page_site *site = &page->sites[index];
    int first = site->site_count++ == 0;
    enum { COMBINE_sum, COMBINE_max, COMBINE_exact };
    static const uint8_t combine[] = {
#define STAT(column, option, unit, how, text) COMBINE_##how,
#include "../common/stat.def"
#undef STAT
    };
    for (int i = 0; i < STAT_COUNT; i++) {
        if (combine[i] == COMBINE_sum)
            __builtin_add_overflow(site->stats[i], from->stats[i], &site->stats[i]);
        else if (combine[i] == COMBINE_max)
            site->stats[i] = from->stats[i] > site->stats[i] ? from->stats[i] : site->stats[i];
        else
            site->stats[i] = first ? from->stats[i] : -1;
    }
    if (from->id >= 0 && from->id < page->site_of_count)
        page->site_of[from->id] = index;
    else
        page_map_set(&page->site_of_far, (uint64_t)from->id, 0, index);
}

/* The nearest caller of a stack that the page has, at most depth deep. */
static uint32_t nearest_node(const struct page *page, const struct raw *raw, uint32_t stack, uint32_t depth)
{
    for (int steps = 0; stack != PAGE_NONE && raw->stacks[stack].node == PAGE_NONE && steps < WALK_MAX; steps++)
        stack = raw->stacks[stack].parent;
    uint32_t node = stack == PAGE_NONE ? PAGE_NONE : raw->stacks[stack].node;
    while (node != PAGE_NONE && page->nodes[node].depth >= depth)
        node = (uint32_t)page->nodes[node].parent;
    return node;
}

static uint32_t count_groups(const struct page *page, const struct raw *raw, uint32_t from, uint32_t depth)
{
    struct page_map groups = {0};
    for (uint32_t i = from; i < raw->site_count && groups.used <= PAGE_FOLDED_MAX; i++) {
        const struct raw_site *s = &raw->sites[i];
        uint32_t node = depth ? nearest_node(page, raw, s->stack, depth) : PAGE_NONE;
        page_map_set(&groups, (uint64_t)node << 32 | (uint32_t)s->line, (uint64_t)s->device << 8 | s->kind, 0);
    }
    uint32_t count = groups.used;
    page_map_free(&groups);
    return count;
}

/* Sites from the given one on are not worth a stack of their own: they join others of the same line below the nearest
 * caller that is shown, as far up as it takes. */
static void fold_rest(struct page *page, struct raw *raw, uint32_t from)
{
    static const uint32_t depths[] = {WALK_MAX, 24, 12, 6, 3, 0};
    unsigned level = 0;
    while (depths[level] && count_groups(page, raw, from, depths[level]) > PAGE_FOLDED_MAX)
        level++;
    struct page_map lines = {0};
    for (uint32_t i = from; i < raw->site_count; i++) {
        struct raw_site *s = &raw->sites[i];
        page_map_set(&lines, (uint32_t)s->line, 0, 0);
        if (lines.used > PAGE_FOLDED_MAX)
            s->line = (int32_t)page_line(page, page_named_function(page, "(smaller lines)", 2), -1, 0);
        const struct page_line *line = &page->lines[s->line];
        uint32_t parent = depths[level] ? nearest_node(page, raw, s->stack, depths[level]) : PAGE_NONE;
        struct page_frame frame = {line->function, line->file, line->line, -1, PAGE_NATIVE, 0, 1};
        add_to_site(page, s, node_index(page, parent, frame_index(page, frame)));
    }
    page_map_free(&lines);
    page->folded_site_count = raw->site_count - from;
}

static void forget_tree(struct page *page, struct raw *raw)
{
    page->node_count = 0;
    page_map_free(&page->node_of);
    for (uint32_t i = 0; i < raw->stack_count; i++)
        raw->stacks[i].node = PAGE_NONE;
}

static void build_tree(struct page *page, struct raw *raw)
{
    uint32_t shown = raw->site_count < PAGE_SITES_MAX ? raw->site_count : PAGE_SITES_MAX;
    for (;; shown /= 2) {
        uint32_t i = 0;
        while (i < shown && (page->node_count <= PAGE_NODES_MAX || shown <= 64))
            stack_node(page, raw, raw->sites[i++].stack);
        if (i == shown)
            break;
        forget_tree(page, raw);
    }
    for (uint32_t i = 0; i < shown; i++) {
        const struct raw_site *s = &raw->sites[i];
        uint32_t node = s->stack == PAGE_NONE ? PAGE_NONE : raw->stacks[s->stack].node;
        if (node == PAGE_NONE) {
            const struct page_line *line = &page->lines[s->line];
            struct page_frame frame = {line->function, line->file, line->line, -1, PAGE_NATIVE, 0, 0};
            node = node_index(page, PAGE_NONE, frame_index(page, frame));
        }
        add_to_site(page, s, node);
    }
    fold_rest(page, raw, shown);
}

/* Numbers the nodes callers first, siblings together. */
static void order_nodes(struct page *page)
{
    page->node_order = xmalloc((page->node_count + 1ul) * sizeof *page->node_order);
    uint32_t next = 0;
    for (uint32_t root = 0; root < page->node_count; root++) {
        if (page->nodes[root].parent >= 0)
            continue;
        for (uint32_t node = root; node != PAGE_NONE;) {
            page->nodes[node].order = next;
            page->node_order[next++] = node;
            uint32_t step = page->nodes[node].first_child;
            while (step == PAGE_NONE && node != root) {
                step = page->nodes[node].next_sibling;
                if (step == PAGE_NONE)
                    node = (uint32_t)page->nodes[node].parent;
            }
            node = step;
        }
    }
}

uint32_t page_site(const struct page *page, int64_t site_id)
{
    if (site_id >= 0 && site_id < page->site_of_count)
        return page->site_of[site_id];
    return page_map_get(&page->site_of_far, (uint64_t)site_id, 0);
}

int page_load_sites(struct page *page)
{
    struct raw raw = {0};
    sqlite3_stmt *line_row = NULL;
    int rc = load_addresses(page, &raw);
    if (!rc)
        rc = load_stacks(page, &raw);
    if (!rc)
        rc = load_raw_sites(page, &raw);
    if (!rc && !(line_row = page_query(
                     page, "SELECT coalesce(function_id, 0), coalesce(file_id, 0), line FROM line WHERE line_id = ?")))
        rc = -EIO;
    if (!rc) {
        page->db_site_count = raw.site_count;
        page->site_of_count = raw.site_count + 1;
        page->site_of = xmalloc(page->site_of_count * sizeof *page->site_of);
        memset(page->site_of, 0xff, page->site_of_count * sizeof *page->site_of);
        rank_sites(page, &raw);
        for (uint32_t i = 0; i < raw.site_count; i++)
            resolve_line(page, &raw, &raw.sites[i], line_row);
        build_tree(page, &raw);
        order_nodes(page);
    }
    sqlite3_finalize(line_row);
    free(raw.addresses);
    free(raw.frames);
    free(raw.stacks);
    free(raw.sites);
    return rc;
}
