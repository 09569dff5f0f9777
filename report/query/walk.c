#include "walk.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/hash.h"
#include "../../common/ids.h"
#include "../../common/map.h"
#include "../../common/module_kind.h"
#include "../../common/packed.h"
#include "../../common/text.h"

#include <stdlib.h>
#include <string.h>

/* The frames of one address; kept, because stacks share most of their frames. */
struct entry {
    struct walk_frame *frames;
    int count;
    int is_of_all; /* frames are a part of the walk's */
};

/* A node of the tree that others have been seen below: most of what a walk meets it has met before. */
struct node {
    int64_t parent_id, address_id, flags;
    int is_last;
};
#define NODES_MAX (1u << 21) /* kept; others are read anew */
#define IDS_MAX   (1 << 24)  /* of those */
#define FEW       1000       /* of addresses, or this part of them, if that is more */
#define FEW_PART  16

struct texts { /* what rows of a table say, by their ids: of function two texts */
    struct ids ids;
    const char **texts;
    size_t text_count, text_capacity;
    uint8_t *flags;
    size_t flag_count, flag_capacity;
};

/* Of a connection: its walks share them. */
struct store {
    int walks;       /* that use it, and the connection */
    uint32_t *index; /* by address_id: number of the entry + 1; 0: none. Larger ids are in the map */
    size_t room;
    struct map map;
    struct entry *entries;
    uint32_t count, capacity;
    uint32_t reads, reads_few; /* by statement; who asks for more gets those of all addresses at once */
    struct walk_frame *all;    /* of these */
    char **strings;            /* owned by the frames */
    size_t string_count, string_capacity;
};

struct walk {
    sqlite3 *db;
    struct store *store;
    uint32_t *node_index; /* by id: number + 1; 0: not kept. Larger ids than a recorder gives are none */
    size_t index_room;
    struct node *nodes;
    uint32_t node_count, node_capacity;
    enum tree_language language;
    sqlite3_stmt *node, *chain;
    int is_begun;
    struct packed *packed; /* held; NULL: stacks are plain rows */
    int64_t packed_last;   /* the highest id */
    const struct packed_values *parents, *addresses, *flags;
    const struct walk_frame *stack[WALK_FRAMES_MAX];
};

#define INLINE_MAX 64

static void leave_store(void *arg)
{
    struct store *store = arg;
    if (--store->walks)
        return;
    for (size_t i = 0; i < store->count; i++)
        if (!store->entries[i].is_of_all)
            free(store->entries[i].frames);
    for (size_t i = 0; i < store->string_count; i++)
        free(store->strings[i]);
    free(store->strings);
    free(store->entries);
    free(store->index);
    free(store->all);
    map_close(&store->map);
    free(store);
}

#define POINTER "memprof walk"

static void tell(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    struct store **out = argc == 1 ? sqlite3_value_pointer(argv[0], POINTER) : NULL;
    if (out)
        *out = sqlite3_user_data(context);
}

/* The connection's, which a function of ours keeps as long as it is open, as packed_shared() does. */
static struct store *store_of(sqlite3 *db)
{
    struct store *store = NULL;
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(db, "SELECT walk_store(?)", -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_pointer(s, 1, &store, POINTER, NULL);
        sqlite3_step(s);
    }
    sqlite3_finalize(s);
    if (!store) {
        store = xcalloc(1, sizeof *store);
        store->walks = 2; /* where this fails it leaves it, and the walk is the only one */
        sqlite3_create_function_v2(db, "walk_store", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, store, tell, NULL, NULL,
                                   leave_store);
    } else {
        store->walks++;
    }
    return store;
}

int walk_open(sqlite3 *db, enum tree_language language, struct walk **walk, struct error *err)
{
    struct walk *w = xcalloc(1, sizeof *w);
    w->db = db;
    w->store = store_of(db);
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
    if (w->packed)
        packed_let(w->packed);
    leave_store(w->store);
    free(w->nodes);
    free(w->node_index);
    free(w);
}

static const char *keep(struct store *store, sqlite3_stmt *s, int column)
{
    if (sqlite3_column_type(s, column) == SQLITE_NULL)
        return NULL;
    return *ARRAY_ADD(store->strings, store->string_count, store->string_capacity) = xstrdup(db_text(s, column));
}

static void read_frame(struct walk *w, struct walk_frame *frame, int64_t address_id)
{
    sqlite3_stmt *s = w->chain;
    *frame = (struct walk_frame){.function = keep(w->store, s, 0),
                                 .plain_name = keep(w->store, s, 1),
                                 .file = keep(w->store, s, 2),
                                 .module = keep(w->store, s, 3),
                                 .line = sqlite3_column_int64(s, 4),
                                 .offset = sqlite3_column_int64(s, 5),
                                 .function_id = sqlite3_column_int64(s, 6),
                                 .file_id = sqlite3_column_int64(s, 7),
                                 .address_id = address_id,
                                 .is_inline = sqlite3_column_int(s, 8) != 0,
                                 .is_allocator = sqlite3_column_int(s, 9) != 0,
                                 .is_python = strcmp(db_text(s, 10), "python") == 0};
    frame->is_runtime = frame->module && module_is_runtime(frame->module);
    frame->is_interpreter = frame->module && module_is_python(frame->module);
}

/* --- the frames of addresses -------------------------------------------------------------------------------------- */

/* The number + 1 of an address's entry; NULL where its id is none that a recorder gives. */
static uint32_t *entry_slot(struct store *store, int64_t address_id)
{
    if (address_id < 0 || address_id >= IDS_MAX)
        return NULL;
    ARRAY_ROOM_ZERO(store->index, (size_t)address_id + 1, store->room);
    return &store->index[address_id];
}

static void add_entry(struct store *store, int64_t address_id, struct entry entry)
{
    uint32_t *slot = entry_slot(store, address_id);
    if (slot)
        *slot = store->count + 1;
    else
        map_set_number(&store->map, (uint64_t)address_id, 0, store->count);
    *ARRAY_ADD(store->entries, store->count, store->capacity) = entry;
}

static const struct entry *known_entry(const struct store *store, int64_t address_id)
{
    uint32_t number = MAP_NONE;
    if (address_id >= 0 && (uint64_t)address_id < store->room)
        number = store->index[address_id] - 1;
    else if (address_id < 0 || address_id >= IDS_MAX)
        number = map_number(&store->map, (uint64_t)address_id, 0);
    return number == MAP_NONE ? NULL : &store->entries[number];
}

/* --- of all at once ----------------------------------------------------------------------------------------------- */

static int load_texts(struct walk *w, const char *sql, int count, struct texts *t)
{
    sqlite3_stmt *s = NULL;
    int step = SQLITE_ERROR;
    if (sqlite3_prepare_v2(w->db, sql, -1, &s, NULL) != SQLITE_OK)
        return 0;
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        ids_add(&t->ids, sqlite3_column_int64(s, 0));
        for (int i = 1; i <= count; i++)
            *ARRAY_ADD(t->texts, t->text_count, t->text_capacity) = keep(w->store, s, i);
        *ARRAY_ADD(t->flags, t->flag_count, t->flag_capacity) = count > 1 && sqlite3_column_int(s, count + 1) != 0;
    }
    sqlite3_finalize(s);
    return step == SQLITE_DONE;
}

static void free_texts(struct texts *t)
{
    free(t->ids.ids);
    free(t->texts);
    free(t->flags);
}

struct chains { /* of all addresses, read beside the rows of frame: both in the order of their ids */
    struct texts functions, files, modules;
    struct walk_frame *of_module; /* by number, 0: none */
    size_t module_count, module_capacity;
    sqlite3_stmt *address, *row;
    int has_row; /* row is at one */
    size_t count, capacity;
};

static const char *text_of(const struct texts *t, sqlite3_stmt *s, int column, int count, int place)
{
    uint32_t number = ids_column(&t->ids, s, column);
    return number ? t->texts[(size_t)(number - 1) * (size_t)count + (size_t)place] : NULL;
}

/* Of one module; NULL: none. */
static struct walk_frame frame_in(const char *module)
{
    return (struct walk_frame){.module = module,
                               .is_runtime = module && module_is_runtime(module),
                               .is_interpreter = module && module_is_python(module)};
}

static int open_chains(struct walk *w, struct chains *c)
{
    static const char addresses[] = "SELECT address_id, module_id, offset FROM address ORDER BY address_id";
    static const char rows[] = "SELECT address_id, inline_depth, function_id, file_id, line, is_inline, language FROM "
                               "frame ORDER BY address_id, inline_depth";
    for (uint32_t i = 0; i <= c->modules.ids.count; i++)
        *ARRAY_ADD(c->of_module, c->module_count, c->module_capacity) = frame_in(i ? c->modules.texts[i - 1] : NULL);
    return sqlite3_prepare_v2(w->db, addresses, -1, &c->address, NULL) == SQLITE_OK &&
           sqlite3_prepare_v2(w->db, rows, -1, &c->row, NULL) == SQLITE_OK;
}

/* What the current row says of an address, of which the frame has what all of its frames have. */
static void fill_frame(const struct chains *c, struct walk_frame *f)
{
    const uint32_t function = ids_column(&c->functions.ids, c->row, 2);
    f->function = text_of(&c->functions, c->row, 2, 2, 0);
    f->plain_name = text_of(&c->functions, c->row, 2, 2, 1);
    f->file = text_of(&c->files, c->row, 3, 1, 0);
    f->line = sqlite3_column_int64(c->row, 4);
    f->function_id = sqlite3_column_int64(c->row, 2);
    f->file_id = sqlite3_column_int64(c->row, 3);
    f->is_inline = sqlite3_column_int(c->row, 5) != 0;
    f->is_allocator = function && c->functions.flags[function - 1];
    f->is_python = strcmp(db_text(c->row, 6), "python") == 0;
}

/* The next row, where it is of an address that is still to come, or of this one: 1. */
static int row_of(struct chains *c, int64_t address_id)
{
    while (c->has_row && sqlite3_column_int64(c->row, 0) < address_id)
        c->has_row = sqlite3_step(c->row) == SQLITE_ROW;
    return c->has_row && sqlite3_column_int64(c->row, 0) == address_id;
}

static struct walk_frame *add_frame(struct store *store, struct chains *c, const struct walk_frame *frame)
{
    struct walk_frame *f = ARRAY_ADD(store->all, c->count, c->capacity);
    *f = *frame;
    return f;
}

/* The frames of the address that the statement is at, and its entry: place says where, until all are read. An address
 * that was read by itself keeps what it got. */
static void add_chain(struct store *store, struct chains *c)
{
    struct walk_frame frame = c->of_module[ids_column(&c->modules.ids, c->address, 1)];
    const size_t first = c->count;
    frame.address_id = sqlite3_column_int64(c->address, 0);
    frame.offset = sqlite3_column_int64(c->address, 2);
    for (int count = 0; row_of(c, frame.address_id); c->has_row = sqlite3_step(c->row) == SQLITE_ROW)
        if (count++ < INLINE_MAX)
            fill_frame(c, add_frame(store, c, &frame));
    if (c->count == first)
        add_frame(store, c, &frame);
    if (known_entry(store, frame.address_id))
        c->count = first;
    else
        add_entry(store, frame.address_id, (struct entry){NULL, (int)(c->count - first), 1});
}

/* Entries of all are in the order in which their frames are. */
static void place_entries(struct store *store)
{
    struct walk_frame *next = store->all;
    for (uint32_t i = 0; i < store->count; i++)
        if (store->entries[i].is_of_all) {
            store->entries[i].frames = next;
            next += store->entries[i].count;
        }
}

static void add_chains(struct store *store, struct chains *c)
{
    c->has_row = sqlite3_step(c->row) == SQLITE_ROW;
    while (store->count < UINT32_MAX - 1 && sqlite3_step(c->address) == SQLITE_ROW)
        add_chain(store, c);
    place_entries(store);
}

/* What could not be read of them is read one by one, which says why. */
static void read_all(struct walk *w)
{
    struct chains c = {0};
    if (load_texts(w, "SELECT function_id, name, plain_name, is_allocator FROM main.function ORDER BY function_id", 2,
                   &c.functions) &&
        load_texts(w, "SELECT file_id, path FROM file ORDER BY file_id", 1, &c.files) &&
        load_texts(w, "SELECT module_id, path FROM module ORDER BY module_id", 1, &c.modules) && open_chains(w, &c))
        add_chains(w->store, &c);
    sqlite3_finalize(c.address);
    sqlite3_finalize(c.row);
    free_texts(&c.functions);
    free_texts(&c.files);
    free_texts(&c.modules);
    free(c.of_module);
}

/* --- of one ---------------------------------------------------------------------------------------------------------
 */

static const struct entry *read_entry(struct walk *w, int64_t address_id)
{
    struct walk_frame frames[INLINE_MAX];
    int count = 0;
    sqlite3_bind_int64(w->chain, 1, address_id);
    while (count < INLINE_MAX && sqlite3_step(w->chain) == SQLITE_ROW)
        read_frame(w, &frames[count++], address_id);
    sqlite3_reset(w->chain);
    if (!count) /* an address that the file does not describe is a frame too */
        frames[count++] = (struct walk_frame){.address_id = address_id};
    struct entry entry = {xmalloc((size_t)count * sizeof *frames), count, 0};
    memcpy(entry.frames, frames, (size_t)count * sizeof *frames);
    add_entry(w->store, address_id, entry);
    return known_entry(w->store, address_id);
}

static int64_t few(const struct walk *w)
{
    int64_t part = db_int(w->db, "SELECT max(address_id) FROM address", 0) / FEW_PART;
    return part < FEW ? FEW : part < IDS_MAX ? part : IDS_MAX;
}

static const struct entry *frames_of(struct walk *w, int64_t address_id)
{
    struct store *store = w->store;
    const struct entry *entry = known_entry(store, address_id);
    if (entry)
        return entry;
    if (!store->reads++)
        store->reads_few = (uint32_t)few(w);
    if (store->reads == store->reads_few) {
        read_all(w);
        entry = known_entry(store, address_id);
    }
    return entry ? entry : read_entry(w, address_id);
}

/* Where it fails, the statement goes on and says why. */
static void read_packed(struct walk *w)
{
    if (!packed_has(w->db, PACKED_TABLE_stack))
        return;
    struct packed *p = packed_shared(w->db);
    if (!p)
        return;
    packed_hold(p);
    w->packed = p;
    if (packed_read(w->packed, PACKED_stack_parent_id, &w->parents) == 0 &&
        packed_read(w->packed, PACKED_stack_address_id, &w->addresses) == 0 &&
        packed_read(w->packed, PACKED_stack_flags, &w->flags) == 0) {
        w->packed_last = packed_count(p, PACKED_TABLE_stack);
        return;
    }
    packed_let(p);
    w->packed = NULL;
}

static int packed_node(const struct walk *w, int64_t id, struct node *n)
{
    if (id < 1 || id > w->packed_last)
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
    if (!w->is_begun)
        read_packed(w);
    w->is_begun = 1;
    if (w->packed)
        return packed_node(w, id, n);
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

sqlite3 *walk_db(const struct walk *w)
{
    return w->db;
}

int walk_hides(const struct walk *w, const struct walk_frame *frame)
{
    return w->language != TREE_BOTH && frame->is_python != (w->language == TREE_PYTHON);
}

int walk_node(struct walk *w, int64_t stack_id, int is_caller, struct walk_node *found, struct error *err)
{
    struct node node;
    int rc = read_node(w, stack_id, is_caller, &node, err);
    if (rc == 1)
        *found = (struct walk_node){.parent_id = node.is_last ? 0 : node.parent_id,
                                    .address_id = node.address_id,
                                    .is_cut = node.is_last && (node.flags & 1),
                                    .is_unknown = node.is_last && (node.flags & 2)};
    return rc;
}

void walk_foresee(struct walk *w, size_t addresses)
{
    struct store *store = w->store;
    if (!store->reads++)
        store->reads_few = (uint32_t)few(w);
    if (store->reads < store->reads_few && addresses >= store->reads_few) {
        store->reads = store->reads_few;
        read_all(w);
    }
}

const struct walk_frame *walk_frames(struct walk *w, int64_t address_id, int *count)
{
    const struct entry *entry = frames_of(w, address_id);
    *count = entry->count;
    return entry->frames;
}

int walk_step(struct walk *w, int64_t stack_id, int is_caller, struct walk_step *step, struct error *err)
{
    struct walk_node node;
    int rc = walk_node(w, stack_id, is_caller, &node, err);
    if (rc != 1)
        return rc;
    *step = (struct walk_step){.parent_id = node.parent_id, .is_cut = node.is_cut, .is_unknown = node.is_unknown};
    step->frames = walk_frames(w, node.address_id, &step->count);
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

/* Whether a frame from this one on is neither of the allocator family nor how a library without symbols starts a
 * thread: code that may have asked for the memory. */
static int has_asker(const struct walk_stack *stack, int first)
{
    for (int i = first; i < stack->count; i++)
        if (!stack->frames[i]->is_allocator && (stack->frames[i]->function || !stack->frames[i]->is_runtime))
            return 1;
    return 0;
}

/* Frames for people begin behind the allocator family, where that is not all, and end where libc calls main(): what
 * lies beyond is the same in every program. */
void walk_shown(const struct walk_stack *stack, int *first, int *end)
{
    *first = 0;
    while (*first < stack->count && stack->frames[*first]->is_allocator)
        ++*first;
    if (!has_asker(stack, *first))
        *first = 0;
    *end = stack->count;
    for (int i = *first + 1; i < stack->count && *end == stack->count; i++)
        if (walk_is_start(stack->frames[i]))
            *end = i;
}

static int is_import(const struct walk_frame *f)
{
    static const char importlib[] = "<frozen importlib.";
    return f->is_python && f->file && strncmp(f->file, importlib, sizeof importlib - 1) == 0;
}

void walk_fold_behind(struct walk_stack *stack, int frame)
{
    const int first = frame + 1;
    int kept = first, is_beyond = 0, has_python = 0;
    for (int i = 0; i < stack->count; i++)
        has_python |= stack->frames[i]->is_python;
    for (int i = 0; i < first; i++)
        is_beyond |= !stack->frames[i]->is_allocator;
    for (int i = first; i < stack->count; i++) {
        const struct walk_frame *f = stack->frames[i];
        if (has_python && ((f->is_interpreter && !f->is_python) || (is_beyond && is_import(f))))
            continue;
        stack->frames[kept++] = f;
        is_beyond |= !f->is_allocator;
    }
    stack->folded = stack->count - kept;
    stack->count = kept;
}

void walk_fold(struct walk_stack *stack)
{
    walk_fold_behind(stack, -1);
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

/* Of a frame, which is in many stacks, once. */
static uint64_t frame_hash(const struct walk_frame *frame)
{
    struct buf place = BUF(1 << 20);
    walk_place(frame, NULL, &place);
    uint64_t h = hash(hash(HASH_START, frame->function ? frame->function : "??"), buf_text(&place));
    buf_free(&place);
    return h | 1;
}

uint64_t walk_shown_hash(const struct walk_stack *stack)
{
    uint64_t h = HASH_START + (stack->count == 0 && stack->is_hidden);
    int first, end;
    walk_shown(stack, &first, &end);
    for (int i = first; i < end; i++) {
        struct walk_frame *frame = (struct walk_frame *)stack->frames[i]; /* the walk's own: walk_stack */
        if (!frame->shown)
            frame->shown = frame_hash(frame);
        h = hash_pair(h, frame->shown);
    }
    return h;
}
