#include "buf.h"

#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *buf_room(struct buf *b, size_t length)
{
    size_t need;
    if (b->failed || __builtin_add_overflow(b->length, length, &need) || need > b->limit) {
        b->failed = 1;
        return NULL;
    }
    if (need + 1 > b->capacity) {
        size_t capacity = b->capacity ? b->capacity * 2 : 256;
        if (capacity < need + 1)
            capacity = need + 1;
        b->data = xrealloc(b->data, capacity);
        b->capacity = capacity;
    }
    return b->data + b->length;
}

void buf_add(struct buf *b, const void *data, size_t length)
{
    char *room = buf_room(b, length);
    if (!room)
        return;
    if (length) /* data may be NULL then */
        memcpy(room, data, length);
    b->length += length;
    b->data[b->length] = 0;
}

void buf_puts(struct buf *b, const char *text)
{
    buf_add(b, text, strlen(text));
}

void buf_putc(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *room = n < 0 ? NULL : buf_room(b, (size_t)n);
    if (room) {
        vsnprintf(room, (size_t)n + 1, format, again);
        b->length += (size_t)n;
    }
    va_end(again);
}

char *buf_take(struct buf *b)
{
    char *text = b->data ? b->data : xstrdup("");
    *b = (struct buf)BUF(b->limit);
    return text;
}

void buf_reset(struct buf *b)
{
    b->length = 0;
    b->failed = 0;
    if (b->data)
        b->data[0] = 0;
}

void buf_free(struct buf *b)
{
    free(b->data);
    b->data = NULL;
    b->length = b->capacity = 0;
    b->failed = 0;
}

int buf_decode(const unsigned char *p, unsigned *code)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    int length = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 : *p >> 3 == 30 ? 4 : 0;
    if (length <= 1) {
        *code = *p;
        return length;
    }
    unsigned value = *p & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if (p[i] >> 6 != 2) /* also the NUL at the end */
            return 0;
        value = value << 6 | (p[i] & 0x3f);
    }
    if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return 0;
    *code = value;
    return length;
}

/* What is not UTF-8 becomes U+FFFD, byte by byte: a page and a document are in one encoding. */
static int add_character(struct buf *b, const unsigned char *p)
{
    unsigned code;
    int length = buf_decode(p, &code);
    if (length)
        buf_add(b, p, (size_t)length);
    else
        buf_puts(b, "\xef\xbf\xbd");
    return length ? length : 1;
}

/* Adds at once what comes next that no format here writes otherwise, which is most of a text; returns its end. */
static const unsigned char *add_plain(struct buf *b, const unsigned char *p)
{
    const unsigned char *end = p;
    while (*end >= 0x20 && *end < 0x7f && *end != '"' && *end != '\\' && *end != '<' && *end != '>' && *end != '&' &&
           *end != '\'')
        end++;
    buf_add(b, p, (size_t)(end - p));
    return end;
}

void buf_json(struct buf *b, const char *text)
{
    for (const unsigned char *p = add_plain(b, (const unsigned char *)text); *p; p = add_plain(b, p)) {
        if (*p == '"' || *p == '\\')
            buf_printf(b, "\\%c", (char)*p++);
        else if (*p < 0x20 || *p == '<' || *p == 0x7f) /* '<': the text may stand inside a <script> element */
            buf_printf(b, "\\u%04x", *p++);
        else if (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) /* a control character of two bytes */
            buf_printf(b, "\\u%04x", p[1]), p += 2;
        else if (*p < 0x80)
            buf_putc(b, (char)*p++);
        else
            p += add_character(b, p);
    }
}

void buf_html(struct buf *b, const char *text)
{
    for (const unsigned char *p = add_plain(b, (const unsigned char *)text); *p; p = add_plain(b, p)) {
        const char *entity = *p == '&'    ? "&amp;"
                             : *p == '<'  ? "&lt;"
                             : *p == '>'  ? "&gt;"
                             : *p == '"'  ? "&quot;"
                             : *p == '\'' ? "&#39;"
                                          : NULL;
        if (entity)
            buf_puts(b, entity), p++;
        else
            p += add_character(b, p);
    }
}

void buf_csv(struct buf *b, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        buf_puts(b, text);
        return;
    }
    buf_putc(b, '"');
    for (const char *quote; (quote = strchr(text, '"')); text = quote + 1) {
        buf_add(b, text, (size_t)(quote - text) + 1);
        buf_putc(b, '"');
    }
    buf_puts(b, text);
    buf_putc(b, '"');
}

void buf_shell(struct buf *b, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%^";
    if (*text && strspn(text, plain) == strlen(text)) {
        buf_puts(b, text);
        return;
    }
    buf_putc(b, '\'');
    for (const char *p = text; *p; p++) {
        if (*p == '\'')
            buf_puts(b, "'\\''");
        else
            buf_putc(b, *p);
    }
    buf_putc(b, '\'');
}
