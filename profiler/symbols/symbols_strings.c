#include "symbols_private.h"

#include "../../common/buf.h"
#include "../../common/error.h"
#include "../../common/strmap.h"
#include "demangle.h"

#include <stdlib.h>
#include <string.h>

#define RAW_MAX  65536 /* bytes of a raw name that are kept */
#define PATH_LIM 8192

struct symbols_strings {
    struct strmap *raw; /* raw name -> index in names */
    const char **names; /* the readable form of each */
    size_t capacity;
    struct strmap *text; /* demangled names and paths: only to own them */
    struct buf path;
};

struct symbols_strings *symbols_strings_open(void)
{
    struct symbols_strings *t = xcalloc(1, sizeof *t);
    t->raw = strmap_open();
    t->text = strmap_open();
    t->path = (struct buf)BUF(2 * PATH_LIM + 2);
    return t;
}

void symbols_strings_close(struct symbols_strings *t)
{
    if (!t)
        return;
    strmap_close(t->raw);
    strmap_close(t->text);
    free(t->names);
    buf_free(&t->path);
    free(t);
}

const char *symbols_strings_name(struct symbols_strings *t, const char *raw, const char **demangled)
{
    *demangled = NULL;
    if (!raw || !*raw)
        return NULL;
    int is_new;
    const char *copy;
    uint32_t *slot = strmap_slot(t->raw, raw, strnlen(raw, RAW_MAX), &is_new, &copy);
    if (!is_new) {
        *demangled = t->names[*slot];
        return copy;
    }
    size_t index = strmap_count(t->raw) - 1;
    *slot = (uint32_t)index;
    if (index >= t->capacity) {
        t->capacity = t->capacity ? t->capacity * 2 : 256;
        t->names = xrealloc(t->names, t->capacity * sizeof *t->names);
    }
    char name[DEMANGLE_MAX];
    t->names[index] = copy;
    if (demangle_name(copy, name) == 0)
        strmap_slot(t->text, name, strlen(name), NULL, &t->names[index]);
    *demangled = t->names[index];
    return copy;
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
    add_path(&t->path, path);
    if (t->path.failed || t->path.length == 0)
        return NULL;
    const char *copy;
    strmap_slot(t->text, t->path.data, t->path.length, NULL, &copy);
    return copy;
}
