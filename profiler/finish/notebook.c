#include "notebook.h"

#include "../../common/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CELL_BYTES_MAX (16u << 20)
#define KEY_BYTES_MAX  64u

/* --- names --- */

uint32_t notebook_hash(const char *source, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)source;
    const uint32_t m = 0x5bd1e995;
    uint32_t h = 0xc70f6907 ^ (uint32_t)bytes; /* ipykernel's seed */
    for (; bytes >= 4; at += 4, bytes -= 4) {
        uint32_t k = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        k *= m;
        k ^= k >> 24;
        h = h * m ^ k * m;
    }
    for (size_t i = bytes; i-- > 0;)
        h ^= (uint32_t)at[i] << 8 * i;
    if (bytes)
        h *= m;
    h ^= h >> 13;
    h *= m;
    return h ^ h >> 15;
}

int notebook_name(const char *path, uint32_t *hash)
{
    const char *name = strrchr(path, '/'), *directory = name;
    char *end;
    if (!name)
        return 0;
    while (directory > path && directory[-1] != '/')
        directory--;
    if (strncmp(directory, "ipykernel_", 10) != 0 || name[1] < '0' || name[1] > '9')
        return 0;
    unsigned long value = strtoul(name + 1, &end, 10);
    *hash = (uint32_t)value;
    return value <= UINT32_MAX && strcmp(end, ".py") == 0;
}

/* --- JSON, as far as cells need it --- */

struct json {
    const char *at, *end;
};

static int peek(struct json *j)
{
    while (j->at < j->end && strchr(" \t\r\n", *j->at) && *j->at)
        j->at++;
    return j->at < j->end ? (unsigned char)*j->at : 0;
}

static int take(struct json *j, int c)
{
    if (peek(j) != c)
        return 0;
    j->at++;
    return 1;
}

static int hex4(struct json *j, uint32_t *value)
{
    *value = 0;
    for (int i = 0; i < 4; i++, j->at++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = j->at < j->end && *j->at ? strchr(digits, *j->at | 32) : NULL;
        if (!digit)
            return 0;
        *value = *value << 4 | (uint32_t)(digit - digits);
    }
    return 1;
}

static void put_utf8(struct buf *out, uint32_t c)
{
    if (c < 0x80) {
        buf_putc(out, (char)c);
        return;
    }
    unsigned more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    buf_putc(out, (char)((0xff00 >> (more + 1) & 0xff) | c >> (6 * more)));
    while (more--)
        buf_putc(out, (char)(0x80 | (c >> (6 * more) & 0x3f)));
}

/* Behind the backslash. */
static int escape(struct json *j, struct buf *out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char c = j->at < j->end ? *j->at++ : 0;
    const char *name = c ? strchr(names, c) : NULL;
    uint32_t code, low;
    if (name) {
        buf_putc(out, values[name - names]);
        return 1;
    }
    if (c != 'u' || !hex4(j, &code))
        return 0;
    if (code >= 0xd800 && code < 0xdc00 && j->end - j->at >= 6 && j->at[0] == '\\' && j->at[1] == 'u') {
        struct json rest = {j->at + 2, j->end};
        if (hex4(&rest, &low) && low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
            j->at = rest.at;
        }
    }
    put_utf8(out, code ? code : ' ');
    return 1;
}

/* Appends a string's text. 0: it is none, or is not ended. */
static int string(struct json *j, struct buf *out)
{
    if (!take(j, '"'))
        return 0;
    while (j->at < j->end && *j->at && *j->at != '"') {
        const char *from = j->at;
        while (j->at < j->end && *j->at && *j->at != '"' && *j->at != '\\')
            j->at++;
        buf_add(out, from, (size_t)(j->at - from));
        if (j->at < j->end && *j->at == '\\') {
            j->at++;
            if (!escape(j, out))
                return 0;
        }
    }
    return j->at < j->end && *j->at++ == '"';
}

static int skip_string(struct json *j)
{
    for (j->at++; j->at < j->end && *j->at != '"'; j->at++)
        j->at += *j->at == '\\' && j->end - j->at > 1;
    return j->at < j->end && *j->at++ == '"';
}

/* Past a value of any depth: brackets are counted, not matched. */
static int skip(struct json *j)
{
    size_t depth = 0;
    do {
        int c = peek(j);
        if (c == 0 || (!depth && (c == ',' || c == ']' || c == '}'))) {
            return 0;
        } else if (c == '"') {
            if (!skip_string(j))
                return 0;
        } else if (c == '{' || c == '[') {
            depth++;
            j->at++;
        } else if (c == '}' || c == ']') {
            depth--;
            j->at++;
        } else if (c == ',' || c == ':') {
            j->at++;
        } else { /* a number, true, false, null */
            while (j->at < j->end && *j->at && !strchr(" \t\r\n,:]}[{\"", *j->at))
                j->at++;
        }
    } while (depth);
    return 1;
}

/* The next key of an object that was entered, with its colon. 0: the object ends, or is damaged (then *bad). */
static int key(struct json *j, struct buf *name, int *bad)
{
    buf_reset(name);
    take(j, ',');
    if (take(j, '}'))
        return 0;
    if (!string(j, name) || !take(j, ':')) {
        *bad = 1;
        return 0;
    }
    return 1;
}

static int is(const struct buf *b, const char *text)
{
    return b->data && !b->failed && strcmp(b->data, text) == 0;
}

/* A text, or a list of its parts. */
static int text_of(struct json *j, struct buf *out)
{
    if (!take(j, '['))
        return string(j, out);
    while (peek(j) == '"') {
        if (!string(j, out))
            return 0;
        take(j, ',');
    }
    return take(j, ']');
}

struct reading {
    struct json json;
    struct buf name, type, source;
    void (*cell)(void *arg, const char *source, size_t bytes);
    void *arg;
    int count, bad;
};

static void read_cell(struct reading *r)
{
    buf_reset(&r->type);
    buf_reset(&r->source);
    if (!take(&r->json, '{')) {
        r->bad = 1;
        return;
    }
    while (!r->bad && key(&r->json, &r->name, &r->bad)) {
        int done;
        if (is(&r->name, "cell_type"))
            done = string(&r->json, &r->type);
        else if (is(&r->name, "source"))
            done = text_of(&r->json, &r->source);
        else
            done = skip(&r->json);
        r->bad |= !done;
    }
    if (!r->bad && is(&r->type, "code") && r->source.length && !r->source.failed) {
        r->cell(r->arg, r->source.data, r->source.length);
        r->count++;
    }
}

int notebook_cells(const char *text, size_t length, void (*cell)(void *arg, const char *source, size_t bytes),
                   void *arg)
{
    struct reading r = {.json = {text, text + length},
                        .name = BUF(KEY_BYTES_MAX),
                        .type = BUF(KEY_BYTES_MAX),
                        .source = BUF(CELL_BYTES_MAX),
                        .cell = cell,
                        .arg = arg};
    r.bad = !take(&r.json, '{');
    while (!r.bad && key(&r.json, &r.name, &r.bad)) {
        if (!is(&r.name, "cells") || !take(&r.json, '[')) {
            r.bad |= !skip(&r.json);
            continue;
        }
        while (!r.bad && !take(&r.json, ']')) {
            read_cell(&r);
            take(&r.json, ',');
        }
    }
    buf_free(&r.name);
    buf_free(&r.type);
    buf_free(&r.source);
    return r.bad ? -EBADMSG : r.count;
}
