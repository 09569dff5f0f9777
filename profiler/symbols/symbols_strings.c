#include "symbols_private.h"

#include "../../common/array.h"
#include "../../common/buf.h"
#include "../../common/map.h"
#include "demangle.h"

#include <stdlib.h>
#include <string.h>

#define RAW_MAX  65536 /* bytes of a raw name that are kept */
#define PATH_LIM 8192

struct symbols_strings {
    struct text_map raw; /* raw name -> index in names, plus 1 */
    const char **names;  /* the readable form of each */
    size_t count, capacity;
    struct text_map text; /* demangled names and paths: only to own them */
    struct buf path;
};

struct symbols_strings *symbols_strings_open(void)
{
    struct symbols_strings *t = xcalloc(1, sizeof *t);
    t->path = (struct buf)BUF(2 * PATH_LIM + 2);
    return t;
}

void symbols_strings_close(struct symbols_strings *t)
{
    if (!t)
        return;
    text_map_close(&t->raw);
    text_map_close(&t->text);
    free(t->names);
    buf_free(&t->path);
    free(t);
}

const char *symbols_strings_name(struct symbols_strings *t, const char *raw, const char **demangled)
{
    *demangled = NULL;
    if (!raw || !*raw)
        return NULL;
    uint32_t *slot = text_map_slot(&t->raw, raw, strnlen(raw, RAW_MAX));
    const char *copy = text_map_key(slot);
    if (!*slot) {
        char name[DEMANGLE_MAX];
        *ARRAY_ADD(t->names, t->count, t->capacity) =
            demangle_name(copy, name) == 0 ? text_map_key(text_map_slot(&t->text, name, strlen(name))) : copy;
        *slot = (uint32_t)t->count;
    }
    *demangled = t->names[*slot - 1];
    return copy;
}

const char *symbols_strings_keep(struct symbols_strings *t, const char *text)
{
    return text_map_key(text_map_slot(&t->text, text, strlen(text)));
}

const char *symbols_strings_of_unit(struct symbols_strings *t, const char *name, const char *unit)
{
    buf_reset(&t->path);
    buf_printf(&t->path, "%s [%.*s]", name, (int)strnlen(unit, PATH_LIM), unit);
    return t->path.failed ? name : text_map_key(text_map_slot(&t->text, t->path.data, t->path.length));
}

/* Adds path to b without "." components and doubled slashes, which only make one file look like two. ".." stays: what
 * is before it may be a link. */
static void add_path(struct buf *b, const char *path)
{
    const char *p = path;
    if (*p == '/' && b->length == 0)
        buf_putc(b, '/');
    while (*p) {
        p += strspn(p, "/");
        size_t n = strcspn(p, "/");
        if (n && !(n == 1 && *p == '.')) {
            if (b->length && b->data[b->length - 1] != '/')
                buf_putc(b, '/');
            buf_add(b, p, n);
        }
        p += n;
    }
}

const char *symbols_strings_path(struct symbols_strings *t, const char *directory, const char *path)
{
    if (!path || !*path || strnlen(path, PATH_LIM) >= PATH_LIM)
        return NULL;
    buf_reset(&t->path);
    if (*path != '/' && directory && strnlen(directory, PATH_LIM) < PATH_LIM)
        add_path(&t->path, directory);
    /* Where -ffile-prefix-map made the directory relative, libdw has put it before some paths already: ./string and
     * ./string/strdup.c. A directory of the same name within it does not occur in practice. */
    size_t length = t->path.length, skip = 0;
    int is_relative = length && t->path.data[0] != '/';
    add_path(&t->path, path);
    if (is_relative && !t->path.failed && t->path.length > 2 * length + 2 && t->path.data[2 * length + 1] == '/' &&
        memcmp(t->path.data, t->path.data + length + 1, length) == 0)
        skip = length + 1;
    if (t->path.failed || t->path.length == 0)
        return NULL;
    return text_map_key(text_map_slot(&t->text, t->path.data + skip, t->path.length - skip));
}
