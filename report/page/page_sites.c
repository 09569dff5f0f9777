/*
 * Sites and their stacks: read whole, then the tree of the stacks that matter is built over (function, file, line), and
 * the rest is folded into its nearest shown caller.
 */
#include "page_raw.h"

#include "../../common/db.h"
#include "../query/named_caller.h"
#include "page_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Largest first, by the largest share that a site has of anything that the page sorts by. */
static int by_score(const void *a, const void *b)
{
    const struct raw_site *left = a, *right = b;
    if (left->score != right->score)
        return left->score < right->score ? 1 : -1;
    return left->id < right->id ? -1 : left->id > right->id;
}

/* What the page sorts by: a site, or a line, matters by its largest share of any of these. */
static const uint8_t ranked[] = {STAT_at_peak_bytes, STAT_at_kind_peak_bytes, STAT_end_bytes,      STAT_alloc_bytes,
                                 STAT_alloc_count,   STAT_temporary_count,    STAT_own_peak_bytes, STAT_end_count};
#define RANKED (sizeof ranked)

static double (*device_sums(const struct page *page, const struct raw *raw))[RANKED]
{
    double(*sums)[RANKED] = xcalloc(page->device_count + 1, sizeof *sums);
    for (uint32_t i = 0; i < raw->site_count; i++)
        for (unsigned c = 0; c < RANKED; c++)
            sums[raw->sites[i].device][c] += (double)raw->sites[i].stats[ranked[c]];
    return sums;
}

static double share(const struct raw_site *site, double (*sums)[RANKED], unsigned column)
{
    double sum = sums[site->device][column];
    return sum > 0 ? (double)site->stats[ranked[column]] / sum : 0;
}

static void rank_sites(const struct page *page, struct raw *raw)
{
    double(*sums)[RANKED] = device_sums(page, raw);
    for (uint32_t i = 0; i < raw->site_count; i++)
        for (unsigned c = 0; c < RANKED; c++) {
            double part = share(&raw->sites[i], sums, c);
            if (part > raw->sites[i].score)
                raw->sites[i].score = part;
        }
    free(sums);
    if (raw->site_count)
        qsort(raw->sites, raw->site_count, sizeof *raw->sites, by_score);
}

static int32_t address_module(struct page *page, const struct raw_address *a)
{
    if (!a->module_id)
        return -1;
    uint32_t known = map_number(&page->module_of, (uint64_t)a->module_id, PAGE_MODULE_ID);
    if (known != MAP_NONE)
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
    uint32_t index = map_number(&page->frame_of, a, b);
    if (index == MAP_NONE) {
        index = page->frame_count;
        *ARRAY_ADD(page->frames, page->frame_count, page->frame_capacity) = frame;
        map_set_number(&page->frame_of, a, b, index);
    }
    return index;
}

/* The child of parent (MAP_NONE: the root) for a frame, made when it is not there. */
static uint32_t node_index(struct page *page, uint32_t parent, uint32_t frame)
{
    uint32_t index = map_number(&page->node_of, parent, frame);
    if (index != MAP_NONE)
        return index;
    index = page->node_count;
    struct page_node *node = ARRAY_ADD(page->nodes, page->node_count, page->node_capacity);
    node->parent = (int32_t)parent;
    node->frame = (int32_t)frame;
    node->first_child = node->next_sibling = MAP_NONE;
    if (parent != MAP_NONE) {
        node->depth = page->nodes[parent].depth + 1;
        node->next_sibling = page->nodes[parent].first_child;
        page->nodes[parent].first_child = index;
    }
    map_set_number(&page->node_of, parent, frame, index);
    return index;
}

static uint32_t stack_node(struct page *page, struct raw *raw, uint32_t stack)
{
    static uint32_t path[WALK_MAX]; /* one page at a time */
    uint32_t depth = 0;
    for (; stack != MAP_NONE && raw->stacks[stack].node == MAP_NONE && depth < WALK_MAX;
         stack = raw->stacks[stack].parent)
        path[depth++] = stack;
    uint32_t node = stack == MAP_NONE ? MAP_NONE : raw->stacks[stack].node;
    while (depth--) {
        struct raw_stack *s = &raw->stacks[path[depth]];
        if (s->address != MAP_NONE) {
            const struct raw_address *a = &raw->addresses[s->address];
            for (uint32_t i = a->frame_count ? a->frame_count : 1; i--;)
                node = node_index(page, node, frame_index(page, frame_of(page, raw, a, i)));
        }
        s->node = node;
    }
    return node;
}

struct self_line { /* a row of the table line */
    int64_t function_id, file_id;
    int32_t line, module;
    int has_offset;
    uint64_t offset;
};

static int is_self(struct page *page, const struct raw *raw, const struct raw_address *a, const struct self_line *line,
                   uint32_t *frame)
{
    if (!line->function_id && line->has_offset)
        return a->offset == line->offset && address_module(page, a) == line->module;
    for (*frame = 0; *frame < a->frame_count; ++*frame) {
        const struct raw_frame *f = &raw->frames[a->first_frame + *frame];
        if (f->function_id == line->function_id && f->file_id == line->file_id && f->line == line->line)
            return 1;
    }
    *frame = 0;
    return 0;
}

static void set_unnamed(struct page_line *line, int64_t line_id)
{
    line->is_of_builds |= line->unnamed_id && line->unnamed_id != line_id;
    line->unnamed_id = line_id;
}

/* The self frame of a site, as the accounts chose it, and that frame's module. */
static void resolve_line(struct page *page, struct raw *raw, struct raw_site *site, sqlite3_stmt *line_row)
{
    struct self_line line = {.module = -1};
    sqlite3_reset(line_row);
    sqlite3_bind_int64(line_row, 1, site->line_id);
    int found = site->line_id && sqlite3_step(line_row) == SQLITE_ROW;
    if (found) {
        line.function_id = sqlite3_column_int64(line_row, 0);
        line.file_id = sqlite3_column_int64(line_row, 1);
        line.line = page_line_number(line_row, 2);
        line.has_offset = sqlite3_column_type(line_row, 3) != SQLITE_NULL;
        line.offset = (uint64_t)sqlite3_column_int64(line_row, 3);
        if (sqlite3_column_type(line_row, 5) != SQLITE_NULL)
            line.module =
                page_module(page, db_text(line_row, 5), (uint64_t)sqlite3_column_int64(line_row, 4), PAGE_MODULE_KEY);
    }
    site->line = site->module = -1;
    const struct raw_address *self = NULL;
    uint32_t self_frame = 0, stack = site->stack;
    for (int steps = 0; stack != MAP_NONE && steps < WALK_MAX; steps++, stack = raw->stacks[stack].parent) {
        if (raw->stacks[stack].address == MAP_NONE)
            continue;
        const struct raw_address *a = &raw->addresses[raw->stacks[stack].address];
        int is_it = found && is_self(page, raw, a, &line, &self_frame);
        if (is_it || !self)
            self = a;
        if (is_it || !found)
            break;
    }
    if (self)
        site->module = address_module(page, self);
    int32_t function = line.function_id ? page_function(page, line.function_id) : -1;
    if (function >= 0) {
        site->line = (int32_t)page_line(page, function, line.file_id ? page_file(page, line.file_id) : -1, line.line);
    } else if (self) {
        struct page_frame frame = frame_of(page, raw, self, self_frame);
        site->line = (int32_t)page_line(page, frame.function, frame.file, frame.line);
        if (line.has_offset && frame.file < 0)
            set_unnamed(&page->lines[site->line], site->line_id);
    }
    if (site->line < 0)
        site->line = (int32_t)page_line(page, page_named_function(page, "(unknown stack)", 1), -1, 0);
}

static void add_to_site(struct page *page, const struct raw_site *from, uint32_t node)
{
    uint64_t a = (uint64_t)node << 32 | (uint32_t)from->line, b = (uint64_t)from->device << 8 | from->kind;
    uint32_t index = map_number(&page->site_at, a, b);
    if (index == MAP_NONE) {
        index = page->site_count;
        struct page_site *site = ARRAY_ADD(page->sites, page->site_count, page->site_capacity);
        site->node = node;
        site->line = from->line;
        site->module = from->module;
        site->device = from->device;
        site->kind = from->kind;
        map_set_number(&page->site_at, a, b, index);
    }
    struct page_site *site = &page->sites[index];
    int first = site->site_count++ == 0;
    enum { COMBINE_sum, COMBINE_max, COMBINE_exact };
    static const uint8_t combine[] = {
#define STAT(column, option, unit, how, text) COMBINE_##how,
#define SCANNED(...)                          COMBINE_sum,
#include "../../common/stat.def"
#undef STAT
    };
    for (int i = 0; i < STAT_SCANNED_END; i++) {
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
        map_set_number(&page->site_of_far, (uint64_t)from->id, 0, index);
}

/* The nearest caller of a stack that the page has, at most depth deep. */
static uint32_t nearest_node(const struct page *page, const struct raw *raw, uint32_t stack, uint32_t depth)
{
    for (int steps = 0; stack != MAP_NONE && raw->stacks[stack].node == MAP_NONE && steps < WALK_MAX; steps++)
        stack = raw->stacks[stack].parent;
    uint32_t node = stack == MAP_NONE ? MAP_NONE : raw->stacks[stack].node;
    while (node != MAP_NONE && page->nodes[node].depth >= depth)
        node = (uint32_t)page->nodes[node].parent;
    return node;
}

static uint32_t count_groups(const struct page *page, const struct raw *raw, uint32_t from, uint32_t depth)
{
    struct map groups = {0};
    for (uint32_t i = from; i < raw->site_count && groups.count <= PAGE_FOLDED_MAX; i++) {
        const struct raw_site *s = &raw->sites[i];
        uint32_t node = depth ? nearest_node(page, raw, s->stack, depth) : MAP_NONE;
        map_set_number(&groups, (uint64_t)node << 32 | (uint32_t)s->line, (uint64_t)s->device << 8 | s->kind, 0);
    }
    uint32_t count = groups.count;
    map_close(&groups);
    return count;
}

struct ranked_line {
    uint32_t line;
    double shares[RANKED + 1]; /* the last: the largest of the others */
};

static int by_share(const void *a, const void *b, void *column)
{
    const struct ranked_line *left = a, *right = b;
    unsigned c = *(const unsigned *)column;
    if (left->shares[c] != right->shares[c])
        return left->shares[c] < right->shares[c] ? 1 : -1;
    return left->line < right->line ? -1 : left->line > right->line;
}

/* The first of every column that a table may be sorted by, and the rest by their best column. */
static void keep_top_lines(struct ranked_line *lines, uint32_t count, uint8_t *keep)
{
    uint32_t kept = 0;
    for (unsigned c = 0; c <= RANKED; c++) {
        uint32_t most = c < RANKED ? PAGE_LINES_MAX / (2 * RANKED) : count;
        qsort_r(lines, count, sizeof *lines, by_share, &c);
        for (uint32_t i = 0; i < most && kept < PAGE_LINES_MAX; i++) {
            kept += !keep[lines[i].line];
            keep[lines[i].line] = 1;
        }
    }
}

/* Lines beyond PAGE_LINES_MAX that have no site of their own become one, so that those that are left are whole. */
static void fold_lines(struct page *page, struct raw *raw, uint32_t from)
{
    uint32_t count = page->line_count;
    if (count <= PAGE_LINES_MAX)
        return;
    double(*sums)[RANKED] = device_sums(page, raw);
    struct ranked_line *lines = xcalloc(count, sizeof *lines);
    uint8_t *keep = xcalloc(count, 1);
    for (uint32_t i = 0; i < count; i++)
        lines[i].line = i;
    for (uint32_t i = 0; i < raw->site_count; i++)
        for (unsigned c = 0; c < RANKED; c++)
            lines[raw->sites[i].line].shares[c] += share(&raw->sites[i], sums, c);
    for (uint32_t i = 0; i < count; i++)
        for (unsigned c = 0; c < RANKED; c++)
            if (lines[i].shares[c] > lines[i].shares[RANKED])
                lines[i].shares[RANKED] = lines[i].shares[c];
    keep_top_lines(lines, count, keep);
    for (uint32_t i = 0; i < from; i++)
        keep[raw->sites[i].line] = 1;
    int32_t rest = (int32_t)page_line(page, page_named_function(page, "(smaller lines)", 2), -1, 0);
    for (uint32_t i = from; i < raw->site_count; i++)
        if (!keep[raw->sites[i].line])
            raw->sites[i].line = rest;
    for (uint32_t i = 0; i < count; i++)
        page->folded_line_count += !keep[i];
    free(keep);
    free(lines);
    free(sums);
}

/* Sites from the given one on are not worth a stack of their own: they join others of the same line below the nearest
 * caller that is shown, as far up as it takes. */
static void fold_rest(struct page *page, struct raw *raw, uint32_t from)
{
    static const uint32_t depths[] = {WALK_MAX, 24, 12, 6, 3, 0};
    unsigned level = 0;
    fold_lines(page, raw, from);
    while (depths[level] && count_groups(page, raw, from, depths[level]) > PAGE_FOLDED_MAX)
        level++;
    for (uint32_t i = from; i < raw->site_count; i++) {
        const struct raw_site *s = &raw->sites[i];
        const struct page_line *line = &page->lines[s->line];
        uint32_t parent = depths[level] ? nearest_node(page, raw, s->stack, depths[level]) : MAP_NONE;
        struct page_frame frame = {line->function, line->file, line->line, s->module, PAGE_NATIVE, 0, 1};
        add_to_site(page, s, node_index(page, parent, frame_index(page, frame)));
    }
    page->folded_site_count = raw->site_count - from;
}

static void forget_tree(struct page *page, struct raw *raw)
{
    page->node_count = 0;
    map_close(&page->node_of);
    for (uint32_t i = 0; i < raw->stack_count; i++)
        raw->stacks[i].node = MAP_NONE;
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
        uint32_t node = s->stack == MAP_NONE ? MAP_NONE : raw->stacks[s->stack].node;
        if (node == MAP_NONE) {
            const struct page_line *line = &page->lines[s->line];
            struct page_frame frame = {line->function, line->file, line->line, -1, PAGE_NATIVE, 0, 0};
            node = node_index(page, MAP_NONE, frame_index(page, frame));
        }
        add_to_site(page, s, node);
    }
    fold_rest(page, raw, shown);
}

void page_order_nodes(struct page *page)
{
    page->node_order = xmalloc((page->node_count + 1ul) * sizeof *page->node_order);
    uint32_t next = 0;
    for (uint32_t root = 0; root < page->node_count; root++) {
        if (page->nodes[root].parent >= 0)
            continue;
        for (uint32_t node = root; node != MAP_NONE;) {
            page->nodes[node].order = next;
            page->node_order[next++] = node;
            uint32_t step = page->nodes[node].first_child;
            while (step == MAP_NONE && node != root) {
                step = page->nodes[node].next_sibling;
                if (step == MAP_NONE)
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
    return map_number(&page->site_of_far, (uint64_t)site_id, 0);
}

struct callers {
    struct page *page;
    struct map line_of; /* line_id to line */
};

static void take_caller(void *arg, int64_t line_id, const struct named_caller *caller)
{
    struct callers *c = arg;
    int32_t function = page_function(c->page, caller->frame->function_id);
    struct page_line *line = &c->page->lines[map_number(&c->line_of, (uint64_t)line_id, 0)];
    line->caller = function;
    line->other_callers = caller->other_count;
}

/* Of the lines without a name that are shown. */
static int name_callers(struct page *page)
{
    struct callers c = {.page = page};
    int64_t *ids = xcalloc(page->site_count + 1ul, sizeof *ids);
    int count = 0;
    for (uint32_t i = 0; i < page->site_count; i++) {
        uint32_t line = (uint32_t)page->sites[i].line;
        int64_t id = page->lines[line].unnamed_id;
        if (!id || map_number(&c.line_of, (uint64_t)id, 0) != MAP_NONE)
            continue;
        ids[count++] = id;
        map_set_number(&c.line_of, (uint64_t)id, 0, line);
    }
    int rc = named_callers(page->db, ids, count, take_caller, &c, page->err);
    map_close(&c.line_of);
    free(ids);
    return rc;
}

int page_load_sites(struct page *page)
{
    struct raw raw = {0};
    sqlite3_stmt *line_row = NULL;
    int rc = page_raw_load(page, &raw);
    if (!rc &&
        !(line_row = page_query(
              page, "SELECT coalesce(function_id, 0), coalesce(file_id, 0), line, offset, module_key_id, path FROM "
                    "line LEFT JOIN module_key ON key_id = module_key_id WHERE line_id = ?")))
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
        page_order_nodes(page);
        rc = name_callers(page);
    }
    sqlite3_finalize(line_row);
    page_raw_free(&raw);
    return rc;
}
