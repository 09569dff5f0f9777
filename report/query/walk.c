#include "walk.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/hash.h"
#include "../../common/map.h"
#include "../../common/packed.h"
#include "../../common/text.h"

#include <stdlib.h>
#include <string.h>

/* The frames of one address; kept, because stacks share most of their frames. */
struct entry {
    struct walk_frame *frames;
    int count;
};

/* A node of the tree that others have been seen below: most of what a walk meets it has met before. */
struct node {
    int64_t parent_id, address_id, flags;
    int is_last;
};
#define NODES_MAX (1u << 21) /* kept; others are read anew */
#define IDS_MAX   (1 << 24)  /* of those */
#define READS_FEW 10000      /* of nodes by statement; who asks for more gets all packed ones at once */

struct walk {
    sqlite3 *db;
    uint32_t *node_index; /* by id: number + 1; 0: not kept. Larger ids than a recorder gives are none */
    size_t index_room;
    struct node *nodes;
    uint32_t node_count, node_capacity;
    enum tree_language language;
    sqlite3_stmt *node, *chain;
    uint32_t node_reads;
    struct packed *packed; /* NULL: stacks are plain rows, or few were asked for */
    const struct packed_values *parents, *addresses, *flags;
    struct map entry_index; /* address_id -> entries */
    struct entry *entries;
    uint32_t entry_count, entry_capacity;
    char **strings; /* owned by the frames */
    size_t string_count, string_capacity;
    const struct walk_frame *stack[WALK_FRAMES_MAX];
};

#define INLINE_MAX 64

int walk_open(sqlite3 *db, enum tree_language language, struct walk **walk, struct error *err)
{
    struct walk *w = xcalloc(1, sizeof *w);
    w->db = db;
    w->language = language;
    int rc = db_prepare(db, "SELECT parent_id, address_id, flags FROM stack WHERE stack_id = ?", &w->node, err);
    if (rc == 0)
        rc = db_prepare(db,
                        "SELECT fn.name, fn.plain_name, f.path, m.path, fr.line, a.offset, fr.function_id, fr.file_id, "
                        "fr.is_inline,"
                        " fn.is_allocator, fr.language FROM address a LEFT JOIN frame fr USING(address_id) LEFT JOIN "
                        "main.function fn "
                        "USING(function_id)"
                        " LEFT JOIN file f ON f.file_id = fr.file_id LEFT JOIN module m ON m.module_id = a.module_id"
                        " WHERE a.address_id = ? ORDER BY fr.inline_depth LIMIT 64",
                        &w->chain, err);
    if (rc) {
        walk_close(w);
        w = NULL;
    }
    *walk = w;
    return rc;
}

void walk_close(struct walk *w)
{
    if (!w)
        return;
    sqlite3_finalize(w->node);
    sqlite3_finalize(w->chain);
    packed_close(w->packed);
    for (size_t i = 0; i < w->entry_count; i++)
        free(w->entries[i].frames);
    for (size_t i = 0; i < w->string_count; i++)
        free(w->strings[i]);
    free(w->strings);
    free(w->entries);
    free(w->nodes);
    free(w->node_index);
    map_close(&w->entry_index);
    free(w);
}

static const char *keep(struct walk *w, sqlite3_stmt *s, int column)
{
    if (sqlite3_column_type(s, column) == SQLITE_NULL)
        return NULL;
    return *ARRAY_ADD(w->strings, w->string_count, w->string_capacity) = xstrdup(db_text(s, column));
}

static void read_frame(struct walk *w, struct walk_frame *frame, int64_t address_id)
{
    sqlite3_stmt *s = w->chain;
    *frame = (struct walk_frame){.function = keep(w, s, 0),
                                 .plain_name = keep(w, s, 1),
                                 .file = keep(w, s, 2),
                                 .module = keep(w, s, 3),
                                 .line = sqlite3_column_int64(s, 4),
                                 .offset = sqlite3_column_int64(s, 5),
                                 .function_id = sqlite3_column_int64(s, 6),
                                 .file_id = sqlite3_column_int64(s, 7),
                                 .address_id = address_id,
                                 .is_inline = sqlite3_column_int(s, 8) != 0,
                                 .is_allocator = sqlite3_column_int(s, 9) != 0,
                                 .is_python = strcmp(db_text(s, 10), "python") == 0};
}

static const struct entry *frames_of(struct walk *w, int64_t address_id)
{
    uint32_t i = map_number_or(&w->entry_index, (uint64_t)address_id, 0, w->entry_count);
    if (i < w->entry_count)
        return &w->entries[i];
    struct entry *entry = ARRAY_ADD(w->entries, w->entry_count, w->entry_capacity);
    struct walk_frame frames[INLINE_MAX];
    sqlite3_bind_int64(w->chain, 1, address_id);
    while (entry->count < INLINE_MAX && sqlite3_step(w->chain) == SQLITE_ROW)
        read_frame(w, &frames[entry->count++], address_id);
    sqlite3_reset(w->chain);
    if (!entry->count) /* an address that the file does not describe is a frame too */
        frames[entry->count++] = (struct walk_frame){.address_id = address_id};
    entry->frames = xmalloc((size_t)entry->count * sizeof *frames);
    memcpy(entry->frames, frames, (size_t)entry->count * sizeof *frames);
    return entry;
}

/* Where it fails, the statement goes on and says why. */
static void read_packed(struct walk *w)
{
    if (!packed_has(w->db, PACKED_TABLE_stack))
        return;
    w->packed = packed_open(w->db);
    if (w->packed && packed_read(w->packed, PACKED_stack_parent_id, &w->parents) == 0 &&
        packed_read(w->packed, PACKED_stack_address_id, &w->addresses) == 0 &&
        packed_read(w->packed, PACKED_stack_flags, &w->flags) == 0)
        return;
    packed_close(w->packed);
    w->packed = NULL;
}

static int packed_node(const struct walk *w, int64_t id, struct node *n)
{
    if (id < 1 || id > packed_count(w->packed, PACKED_TABLE_stack))
        return 0;
    uint32_t row = (uint32_t)id;
    *n = (struct node){.parent_id = (int64_t)packed_at(w->parents, row),
                       .address_id = (int64_t)packed_at(w->addresses, row),
                       .flags = (int64_t)packed_at(w->flags, row)};
    n->is_last = n->parent_id == 0;
    return 1;
}

/* 1, 0 for one that is not there, or an error. */
static int read_node(struct walk *w, int64_t id, int is_parent, struct node *n, struct error *err)
{
    if (w->packed)
        return packed_node(w, id, n);
    if (++w->node_reads == READS_FEW)
        read_packed(w);
    uint32_t number = is_parent && id > 0 && (uint64_t)id < w->index_room ? w->node_index[id] : 0;
    if (number) {
        *n = w->nodes[number - 1];
        return 1;
    }
    sqlite3_bind_int64(w->node, 1, id);
    int step = sqlite3_step(w->node);
    if (step == SQLITE_ROW)
        *n = (struct node){.parent_id = sqlite3_column_int64(w->node, 0),
                           .address_id = sqlite3_column_int64(w->node, 1),
                           .flags = sqlite3_column_int64(w->node, 2),
                           .is_last = sqlite3_column_type(w->node, 0) == SQLITE_NULL};
    sqlite3_reset(w->node);
    if (step == SQLITE_ROW && is_parent && w->node_count < NODES_MAX && id > 0 && id < IDS_MAX) {
        *ARRAY_ADD(w->nodes, w->node_count, w->node_capacity) = *n;
        ARRAY_ROOM_ZERO(w->node_index, (size_t)id + 1, w->index_room);
        w->node_index[id] = w->node_count;
    }
    return step == SQLITE_ROW ? 1 : step == SQLITE_DONE ? 0 : db_error(w->db, err);
}

int walk_hides(const struct walk *w, const struct walk_frame *frame)
{
    return w->language != TREE_BOTH && frame->is_python != (w->language == TREE_PYTHON);
}

int walk_step(struct walk *w, int64_t stack_id, int is_caller, struct walk_step *step, struct error *err)
{
    struct node node;
    int found = read_node(w, stack_id, is_caller, &node, err);
    if (found != 1)
        return found;
    const struct entry *entry = frames_of(w, node.address_id);
    *step = (struct walk_step){entry->frames, entry->count, node.is_last ? 0 : node.parent_id};
    return 1;
}

int walk_stack(struct walk *w, int64_t stack_id, struct walk_stack *stack, struct error *err)
{
    *stack = (struct walk_stack){.frames = w->stack};
    int64_t id = stack_id;
    for (int depth = 0; id != 0; depth++) {
        struct node node = {0};
        int found = read_node(w, id, depth > 0, &node, err);
        int last = found != 1 || node.is_last;
        if (found < 0)
            return found;
        if (found) {
            const struct entry *entry = frames_of(w, node.address_id);
            for (int i = 0; i < entry->count && stack->count < WALK_FRAMES_MAX; i++) {
                if (walk_hides(w, &entry->frames[i]))
                    stack->is_hidden = 1;
                else
                    w->stack[stack->count++] = &entry->frames[i];
            }
            id = node.parent_id;
            stack->is_cut |= last && (node.flags & 1);
            stack->is_unknown |= last && (node.flags & 2);
        }
        if (last)
            break;
        if (stack->count == WALK_FRAMES_MAX || depth == WALK_FRAMES_MAX) {
            stack->is_cut = 1;
            break;
        }
    }
    return 0;
}

int walk_is_start(const struct walk_frame *frame)
{
    return frame->function && strncmp(frame->function, "__libc_start", 12) == 0;
}

/* Frames for people begin behind the allocator family, and end where libc calls main(): what lies beyond is the same in
 * every program. */
void walk_shown(const struct walk_stack *stack, int *first, int *end)
{
    *first = 0;
    while (*first < stack->count && stack->frames[*first]->is_allocator)
        ++*first;
    if (*first == stack->count)
        *first = 0;
    *end = stack->count;
    for (int i = *first + 1; i < stack->count && *end == stack->count; i++)
        if (walk_is_start(stack->frames[i]))
            *end = i;
}

void walk_place(const struct walk_frame *frame, const char *base, struct buf *text)
{
    if (frame->file)
        text_path(text, frame->file, base);
    if (frame->file && frame->line > 0)
        buf_printf(text, ":%lld", (long long)frame->line);
    if (!frame->file && frame->module)
        buf_printf(text, "[%s+0x%llx]", text_basename(frame->module), (unsigned long long)frame->offset);
    else if (!frame->file)
        buf_printf(text, "[0x%llx]", (unsigned long long)frame->offset);
    if (frame->is_inline)
        buf_puts(text, " (inlined)");
}

static uint64_t hash(uint64_t h, const char *text)
{
    return hash_byte(hash_text(h, text), 0xff); /* where it ends */
}

uint64_t walk_shown_hash(const struct walk_stack *stack)
{
    uint64_t h = HASH_START + (stack->count == 0 && stack->is_hidden);
    int first, end;
    walk_shown(stack, &first, &end);
    struct buf place = BUF(1 << 20);
    for (int i = first; i < end; i++) {
        buf_reset(&place);
        walk_place(stack->frames[i], NULL, &place);
        h = hash(h, stack->frames[i]->function ? stack->frames[i]->function : "??");
        h = hash(h, buf_text(&place));
    }
    buf_free(&place);
    return h;
}
