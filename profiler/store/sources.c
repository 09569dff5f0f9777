#include "sources.h"

#include "../../common/array.h"
#include "../wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PENDING_MAX = 64 }; /* texts that threads say at once */

#define WORDS_MAX (1 + (WIRE_SOURCE_BYTES_MAX + WIRE_CODE_TEXT_MAX) / 8 + 2)

struct pending {
    uint32_t number, total, have;
    uint64_t *words;
};

struct sources {
    struct named *named;
    struct pending *pending;
    uint32_t count, capacity;
    uint64_t said_words; /* of all texts that were begun */
};

struct sources *sources_open(struct named *named)
{
    struct sources *s = xcalloc(1, sizeof *s);
    s->named = named;
    return s;
}

void sources_close(struct sources *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->count; i++)
        free(s->pending[i].words);
    free(s->pending);
    free(s);
}

static void forget(struct sources *s, struct pending *p)
{
    free(p->words);
    *p = s->pending[--s->count];
}

/* NULL: there is no room for it, or its beginning is lost. */
static struct pending *pending_of(struct sources *s, uint32_t number, uint32_t before, uint32_t total)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->pending[i].number == number)
            return &s->pending[i];
    if (before || s->count == PENDING_MAX || s->said_words + total > WORDS_MAX)
        return NULL;
    s->said_words += total;
    struct pending *p = ARRAY_ADD(s->pending, s->count, s->capacity);
    *p = (struct pending){number, total, 0, xmalloc((size_t)total * 8)};
    return p;
}

static int take_apart(struct sources *s, const struct pending *p)
{
    const uint64_t name_bytes = p->words[0] >> 32, text_bytes = (uint32_t)p->words[0];
    const uint64_t name_words = (name_bytes + 7) / 8, text_words = (text_bytes + 7) / 8;
    if (name_bytes == 0 || name_bytes > WIRE_CODE_TEXT_MAX || 1 + name_words + text_words != p->total)
        return -EINVAL;
    const char *name = (const char *)(p->words + 1), *text = (const char *)(p->words + 1 + name_words);
    if (memchr(name, 0, name_bytes) || memchr(text, 0, text_bytes)) /* no text */
        return -EINVAL;
    char path[WIRE_CODE_TEXT_MAX + 1];
    memcpy(path, name, name_bytes);
    path[name_bytes] = 0;
    named_source(s->named, path, text, text_bytes);
    return 0;
}

int sources_add(struct sources *s, uint32_t number, uint32_t before, uint32_t total, const uint64_t *words,
                size_t count)
{
    if (total == 0 || total > WORDS_MAX || before > total || count > total - before || count == 0)
        return -EINVAL;
    struct pending *p = pending_of(s, number, before, total);
    if (!p)
        return 0;
    if (p->total != total || p->have != before) {
        forget(s, p);
        return -EINVAL;
    }
    memcpy(p->words + before, words, count * 8);
    p->have = before + (uint32_t)count;
    if (p->have < p->total)
        return 0;
    int rc = take_apart(s, p);
    forget(s, p);
    return rc;
}
