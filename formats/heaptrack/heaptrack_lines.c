#include "heaptrack_lines.h"

#include "../../common/buf.h"
#include "../../common/error.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 1 << 18 };

struct heaptrack_lines {
    struct unpack *source;
    size_t next, end;
    struct buf whole; /* of a line that lies in several pieces */
    int is_cut;
    char piece[PIECE_BYTES];
};

struct heaptrack_lines *lines_open(struct unpack *source)
{
    struct heaptrack_lines *l = xmalloc(sizeof *l);
    l->source = source;
    l->next = l->end = 0;
    l->whole = (struct buf)BUF(LINES_MOST + 1);
    return l;
}

void lines_close(struct heaptrack_lines *l)
{
    if (l)
        buf_free(&l->whole);
    free(l);
}

static long next_piece(struct heaptrack_lines *l)
{
    long got = unpack_read(l->source, l->piece, PIECE_BYTES);
    l->next = 0;
    l->end = got > 0 ? (size_t)got : 0;
    return got;
}

static void keep(struct heaptrack_lines *l, const char *data, size_t length)
{
    size_t room = LINES_MOST - l->whole.length;
    l->is_cut |= length > room;
    buf_add(&l->whole, data, length < room ? length : room);
}

int lines_next(struct heaptrack_lines *l, struct line *line, int *is_cut)
{
    int has_some = 0;
    long got = 1;
    buf_reset(&l->whole);
    l->is_cut = 0;
    while (l->next < l->end || (got = next_piece(l)) > 0) {
        const char *start = l->piece + l->next, *newline = memchr(start, '\n', l->end - l->next);
        size_t length = newline ? (size_t)(newline - start) : l->end - l->next;
        l->next += length + (newline != NULL);
        if (newline && !has_some) {
            *line = (struct line){start, newline};
            *is_cut = 0;
            return 1;
        }
        has_some = 1;
        keep(l, start, length);
        if (newline)
            break;
    }
    if (got < 0)
        return (int)got;
    *line = (struct line){buf_text(&l->whole), buf_text(&l->whole) + l->whole.length};
    *is_cut = l->is_cut;
    return has_some;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int line_hex(struct line *line, uint64_t *value)
{
    const char *at = line->at;
    uint64_t number = 0;
    for (; at < line->end && digit(*at) >= 0; at++) {
        if (number >> 60)
            return 0;
        number = number << 4 | (unsigned)digit(*at);
    }
    if (at == line->at || (at < line->end && *at != ' '))
        return 0;
    line->at = at + (at < line->end);
    *value = number;
    return 1;
}

int line_hex32(struct line *line, uint32_t *value)
{
    uint64_t wide;
    struct line before = *line;
    if (!line_hex(line, &wide) || wide > UINT32_MAX) {
        *line = before;
        return 0;
    }
    *value = (uint32_t)wide;
    return 1;
}
