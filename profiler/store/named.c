#include "named.h"

#include "../../common/map.h"
#include "../symbols/allocator.h"

#include "../../common/db.h"

#include <stdlib.h>
#include <string.h>

/* No honest program has more distinct lines that allocate. */
#define FRAMES_MAX (1u << 24)

struct named {
    struct store *store;
    struct stacks *stacks;
    struct text_map texts;     /* names and paths: numbers from 1, so that the keys below are short */
    struct text_map functions; /* struct function_key -> function_id */
    struct text_map files;     /* path -> file_id */
    struct text_map frames;    /* struct frame_key -> address_id */
    uint32_t last_function, last_file, last_frame; /* ids given */
};

struct function_key {
    uint32_t name, plain_name, file_id, first_line, is_native;
};

struct frame_key {
    uint32_t function_id, file_id, line, column, language;
};

struct named *named_open(struct store *store, struct stacks *stacks)
{
    struct named *n = xcalloc(1, sizeof *n);
    n->store = store;
    n->stacks = stacks;
    return n;
}

void named_close(struct named *n)
{
    if (!n)
        return;
    text_map_close(&n->texts);
    text_map_close(&n->functions);
    text_map_close(&n->files);
    text_map_close(&n->frames);
    free(n);
}

static uint32_t text_number(struct named *n, const char *text)
{
    if (!text || !*text)
        return 0;
    uint32_t *slot = text_map_slot(&n->texts, text, strlen(text));
    if (!*slot)
        *slot = (uint32_t)text_map_count(&n->texts);
    return *slot;
}

static void bind_id(sqlite3_stmt *s, int at, uint32_t id)
{
    if (id)
        sqlite3_bind_int64(s, at, id);
    else
        sqlite3_bind_null(s, at);
}

static uint32_t file_of(struct named *n, const char *path)
{
    if (!path || !*path)
        return 0;
    uint32_t *slot = text_map_slot(&n->files, path, strlen(path));
    if (!*slot) {
        *slot = ++n->last_file;
        sqlite3_stmt *s = store_statement(n->store, "INSERT INTO file(file_id, path) VALUES(?, ?)");
        sqlite3_bind_int64(s, 1, *slot);
        sqlite3_bind_text(s, 2, path, -1, SQLITE_TRANSIENT);
        store_step(n->store, s);
    }
    return *slot;
}

void named_source(struct named *n, const char *path, const char *text, size_t bytes)
{
    sqlite3_stmt *s = store_statement(n->store, "UPDATE file SET source = ? WHERE file_id = ? AND source IS NULL");
    sqlite3_bind_text(s, 1, text, (int)bytes, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 2, file_of(n, path));
    store_step(n->store, s);
}

/* What is under an import statement: Python's own tracebacks leave these frames out, too. */
static int is_import(const struct named_frame *f)
{
    static const char importlib[] = "<frozen importlib.";
    return f->file && strcmp(f->language, "python") == 0 && strncmp(f->file, importlib, sizeof importlib - 1) == 0;
}

static uint32_t function_of(struct named *n, const struct named_frame *f, uint32_t file_id)
{
    if (!f->function || !*f->function)
        return 0;
    const char *plain_name = f->plain_name && *f->plain_name ? f->plain_name : f->function;
    int is_native = strcmp(f->language, "native") == 0;
    struct function_key key = {text_number(n, f->function), text_number(n, plain_name), file_id, f->first_line,
                               (uint32_t)is_native};
    uint32_t *slot = text_map_slot(&n->functions, &key, sizeof key);
    if (!*slot) {
        *slot = ++n->last_function;
        sqlite3_stmt *s =
            store_statement(n->store, "INSERT INTO function(function_id, name, plain_name, raw_name, file_id, line, "
                                      "is_allocator) VALUES(?, ?, ?, ?, ?, ?, ?)");
        sqlite3_bind_int64(s, 1, *slot);
        sqlite3_bind_text(s, 2, f->function, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(s, 3, plain_name, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(s, 4, f->function, -1, SQLITE_TRANSIENT);
        bind_id(s, 5, file_id);
        bind_id(s, 6, file_id ? f->first_line : 0);
        /* readable names only; a scope has to come from a mangled one, and any will do */
        const char *raw = strstr(f->function, "::") ? "_Z" : f->function;
        sqlite3_bind_int(s, 7, is_import(f) || (is_native && allocator_is_function(raw, f->function, f->file)));
        store_step(n->store, s);
    }
    return *slot;
}

static void frame_row(struct named *n, uint32_t address_id, unsigned depth, int is_inline, const struct named_frame *f,
                      uint32_t function_id, uint32_t file_id)
{
    sqlite3_stmt *s =
        store_statement(n->store, "INSERT INTO frame(address_id, inline_depth, function_id, file_id, line, column, "
                                  "language, is_inline) VALUES(?, ?, ?, ?, ?, ?, ?, ?)");
    sqlite3_bind_int64(s, 1, address_id);
    sqlite3_bind_int64(s, 2, depth);
    bind_id(s, 3, function_id);
    bind_id(s, 4, file_id);
    bind_id(s, 5, file_id ? f->line : 0);
    bind_id(s, 6, file_id && f->line ? f->column : 0);
    sqlite3_bind_text(s, 7, f->language, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int(s, 8, is_inline);
    store_step(n->store, s);
}

uint32_t named_address(struct named *n, const struct named_frame *f)
{
    struct frame_key key = {0, file_of(n, f->file), f->line, f->column, text_number(n, f->language)};
    key.function_id = function_of(n, f, key.file_id);
    if (text_map_count(&n->frames) >= FRAMES_MAX)
        return 0;
    uint32_t *slot = text_map_slot(&n->frames, &key, sizeof key);
    if (*slot)
        return *slot;
    *slot = stacks_named_address(n->stacks, ++n->last_frame);
    frame_row(n, *slot, 0, 0, f, key.function_id, key.file_id);
    return *slot;
}

uint32_t named_code(struct named *n, uint32_t process_id, const struct named_code *code,
                    const struct named_frame *chain, unsigned count)
{
    static const struct named_frame nameless = {.language = "native"};
    int is_new;
    uint32_t id = stacks_code_address(n->stacks, process_id, code->path, code->build_id, code->offset, &is_new);
    chain = count ? chain : &nameless;
    count = count ? count : 1;
    for (unsigned i = 0; is_new && i < count; i++) {
        uint32_t file_id = file_of(n, chain[i].file);
        frame_row(n, id, i, i + 1 < count, &chain[i], function_of(n, &chain[i], file_id), file_id);
    }
    return id;
}

uint32_t named_stack(struct named *n, const uint32_t *address_ids, size_t count)
{
    uint32_t node = 0;
    for (size_t i = count; i-- > 0;)
        if (address_ids[i])
            node = stacks_node(n->stacks, node, 0, address_ids[i]);
    return node;
}
