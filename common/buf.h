/*
 * buf.h: a growing byte buffer, born with a limit. Always NUL-terminated once something was added.
 * All-zero plus a limit is an empty buffer: struct buf b = BUF(1 << 20). Free with buf_free.
 */
#ifndef MEMPROF_BUF_H
#define MEMPROF_BUF_H

#include <stddef.h>
#include <stdint.h>

struct buf {
    char *data; /* owned; length bytes and a NUL; NULL while empty */
    size_t length;
    size_t capacity;
    size_t limit; /* most bytes; adding past it sets failed and changes nothing more */
    int failed;
};

#define BUF(limit_bytes)                                                                                               \
    {                                                                                                                  \
        0, 0, 0, (limit_bytes), 0                                                                                      \
    }

void buf_add(struct buf *b, const void *data, size_t length);
void buf_puts(struct buf *b, const char *text);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Room for length more bytes at data + length, which the caller then adds to ->length; NULL past the limit. */
void *buf_room(struct buf *b, size_t length);
/* What was added, "" where that is nothing: buf_text until the next change, buf_take for the caller to free, and the
 * buffer is empty. */
static inline const char *buf_text(const struct buf *b)
{
    return b->data ? b->data : "";
}
char *buf_take(struct buf *b);
void buf_reset(struct buf *b); /* empty, memory kept */
void buf_free(struct buf *b);

/* One code point of valid UTF-8 at p; returns its bytes, or 0 where the bytes are not UTF-8 (overlong, surrogate, cut).
 */
int buf_decode(const unsigned char *p, unsigned *code);
/* Appends text escaped for: a JSON string body, HTML text and attribute values, a CSV field (quoted if needed), a POSIX
 * shell word. In JSON and HTML, bytes that are not UTF-8 become U+FFFD. */
void buf_json(struct buf *b, const char *text);
void buf_html(struct buf *b, const char *text);
void buf_csv(struct buf *b, const char *text);
void buf_shell(struct buf *b, const char *text);

#endif
