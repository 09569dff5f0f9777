#include "python.h"

#include "../../common/map.h"

#include "../../common/array.h"
#include "../wire.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct code {
    uint64_t *words; /* as they came; NULL: none yet, or taken apart */
    uint32_t total, have;
    uint32_t minor, first_line;
    char *name, *qualified_name, *file;
    uint8_t *table;
    uint32_t table_bytes;
};

struct python {
    struct named *named;
    int pid;
    struct code *codes; /* by id */
    uint32_t limit, defined;
    struct map addresses; /* word -> address_id */
};

struct python *python_open(struct named *named, int pid)
{
    struct python *p = xcalloc(1, sizeof *p);
    p->named = named;
    p->pid = pid;
    return p;
}

void python_close(struct python *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; i < p->limit; i++) {
        struct code *c = &p->codes[i];
        free(c->words);
        free(c->name);
        free(c->qualified_name);
        free(c->file);
        free(c->table);
    }
    free(p->codes);
    map_close(&p->addresses);
    free(p);
}

/* --- definitions --- */

static char *put_utf8(char *out, uint32_t c)
{
    if (c >= 0xdc80 && c <= 0xdcff) { /* a byte that was no UTF-8 when Python read it */
        *out++ = (char)(c - 0xdc00);
    } else if (c < 0x80) {
        *out++ = c ? (char)c : ' ';
    } else if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
        *out++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *out++ = (char)(0xe0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 63));
        *out++ = (char)(0x80 | (c & 63));
    } else if (c < 0x110000) {
        *out++ = (char)(0xf0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 63));
        *out++ = (char)(0x80 | (c >> 6 & 63));
        *out++ = (char)(0x80 | (c & 63));
    }
    return out;
}

static char *text_utf8(const uint8_t *data, uint32_t character_bytes, uint32_t count)
{
    char *text = xmalloc((size_t)count * 4 + 1), *out = text;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t c = 0;
        memcpy(&c, data + (size_t)i * character_bytes, character_bytes);
        out = put_utf8(out, c);
    }
    *out = 0;
    return text;
}

/* A relative path by the directory that the process is in now: Python itself makes those of scripts absolute. */
static char *absolute(const struct python *p, char *file)
{
    char link[64], cwd[PATH_MAX];
    if (*file == '/' || *file == '<' || !strchr(file, '/') || !p->pid)
        return file;
    snprintf(link, sizeof link, "/proc/%d/cwd", p->pid);
    ssize_t n = readlink(link, cwd, sizeof cwd - 1);
    if (n <= 0 || cwd[0] != '/')
        return file;
    cwd[n] = 0;
    const char *rest = strncmp(file, "./", 2) ? file : file + 2;
    size_t bytes = (size_t)n + strlen(rest) + 2;
    char *path = xmalloc(bytes);
    snprintf(path, bytes, "%s/%s", n == 1 ? "" : cwd, rest);
    if (access(path, F_OK) == 0) {
        free(file);
        return path;
    }
    free(path);
    return file;
}

static int take_apart(const struct python *p, struct code *c)
{
    struct wire_code head;
    uint64_t bytes = (uint64_t)c->total * 8, at = sizeof head;
    const uint8_t *data = (const uint8_t *)c->words;
    if (bytes < sizeof head)
        return -EINVAL;
    memcpy(&head, data, sizeof head);
    const uint32_t sizes[4][2] = {{head.name.character_bytes, head.name.count},
                                  {head.qualified_name.character_bytes, head.qualified_name.count},
                                  {head.file.character_bytes, head.file.count},
                                  {head.table.character_bytes, head.table.count}};
    uint64_t starts[4];
    for (int i = 0; i < 4; i++) {
        uint32_t character = sizes[i][0];
        if ((character != 1 && character != 2 && character != 4) || (i == 3 && character != 1))
            return -EINVAL;
        uint64_t part = ((uint64_t)character * sizes[i][1] + 7) & ~7ull;
        if (part > bytes - at)
            return -EINVAL;
        starts[i] = at;
        at += part;
    }
    c->minor = head.minor;
    c->first_line = head.first_line;
    c->name = text_utf8(data + starts[0], sizes[0][0], sizes[0][1]);
    c->qualified_name = text_utf8(data + starts[1], sizes[1][0], sizes[1][1]);
    c->file = absolute(p, text_utf8(data + starts[2], sizes[2][0], sizes[2][1]));
    c->table_bytes = sizes[3][1];
    c->table = xmalloc(c->table_bytes + 1ul);
    memcpy(c->table, data + starts[3], c->table_bytes);
    return 0;
}

/* Ids come one by one; a few are lost. */
static struct code *code_at(struct python *p, uint32_t id)
{
    if (id >= p->limit) {
        if (id == 0 || id >= 65536ull + 64ull * p->defined)
            return NULL;
        ARRAY_ROOM_ZERO(p->codes, id + 1ul, p->limit);
    }
    return &p->codes[id];
}

int python_define(struct python *p, uint32_t id, uint32_t before, uint32_t total, const uint64_t *words, size_t count)
{
    struct code *c = code_at(p, id);
    if (!c || total == 0 || total > WIRE_CODE_WORDS_MAX || before > total || count > total - before || count == 0)
        return -EINVAL;
    if (c->name || before != c->have || (before && total != c->total))
        return 0;
    if (!before) {
        c->words = xmalloc((size_t)total * 8);
        c->total = total;
    }
    memcpy(c->words + before, words, count * 8);
    c->have = before + (uint32_t)count;
    if (c->have < c->total)
        return 0;
    int rc = take_apart(p, c);
    free(c->words);
    c->words = NULL;
    c->have = c->total = 0;
    p->defined++;
    return rc;
}

/* --- line tables --- */

/* Until 3.9: pairs of what to add to the offset and to the line. */
static struct python_position position_9(uint32_t line, const uint8_t *table, size_t bytes, uint32_t offset)
{
    uint64_t at = 0;
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        at += table[i];
        if (at > offset)
            break;
        line += (uint32_t)(int8_t)table[i + 1];
    }
    return (struct python_position){line, 0};
}

/* 3.10: pairs of a range's length and what to add to the line first; -128: the range has none. */
static struct python_position position_10(uint32_t line, const uint8_t *table, size_t bytes, uint32_t offset)
{
    uint64_t end = 0;
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        int delta = (int8_t)table[i + 1];
        if (delta != -128)
            line += (uint32_t)delta;
        end += table[i];
        if (offset < end)
            return (struct python_position){delta == -128 ? 0 : line, 0};
    }
    return (struct python_position){line, 0};
}

struct reader {
    const uint8_t *at, *end;
};

static uint32_t read_varint(struct reader *r)
{
    uint32_t value = 0, byte = 64;
    for (unsigned shift = 0; (byte & 64) && r->at < r->end; shift += 6) {
        byte = *r->at++;
        if (shift < 32)
            value |= (byte & 63) << shift;
    }
    return value;
}

static uint32_t read_svarint(struct reader *r)
{
    uint32_t value = read_varint(r);
    return value & 1 ? 0u - (value >> 1) : value >> 1;
}

static uint32_t read_byte(struct reader *r)
{
    return r->at < r->end ? *r->at++ : 0;
}

/* From 3.11 on: entries of a first byte with its highest bit set (kind, length in code units) and what the kind has. */
static struct python_position position_11(uint32_t line, const uint8_t *table, size_t bytes, uint32_t offset)
{
    struct reader r = {table, table + bytes};
    uint64_t end = 0;
    struct python_position found = {0, 0};
    while (r.at < r.end) {
        unsigned first = *r.at++, kind = first >> 3 & 15;
        end += 2ull * ((first & 7) + 1);
        found = (struct python_position){0, 0};
        if (kind < 10) {
            found = (struct python_position){line, (kind << 3 | (read_byte(&r) >> 4 & 7)) + 1};
        } else if (kind < 13) {
            line += kind - 10;
            found = (struct python_position){line, read_byte(&r) + 1};
            read_byte(&r);
        } else if (kind == 13) {
            line += read_svarint(&r);
            found.line = line;
        } else if (kind == 14) {
            line += read_svarint(&r);
            read_varint(&r);
            found = (struct python_position){line, read_varint(&r)};
            read_varint(&r);
        }
        if (offset < end)
            return found;
    }
    return found;
}

struct python_position python_position(unsigned minor, uint32_t first_line, const uint8_t *table, size_t bytes,
                                       uint32_t offset)
{
    if (minor == 10)
        offset = offset > UINT32_MAX / 2 ? offset : offset * 2; /* counted in instructions */
    if (offset > INT32_MAX)                                     /* not begun */
        return (struct python_position){first_line, 0};
    return minor < 10    ? position_9(first_line, table, bytes, offset)
           : minor == 10 ? position_10(first_line, table, bytes, offset)
                         : position_11(first_line, table, bytes, offset);
}

/* --- addresses --- */

uint32_t python_address(struct python *p, uint64_t word)
{
    uint32_t known = map_number(&p->addresses, word, 0);
    if (known != MAP_NONE)
        return known;
    struct named_frame frame = {.function = "??", .language = "python"};
    uint32_t id = WIRE_PYTHON_ID(word);
    if (id < p->limit && p->codes[id].name) {
        const struct code *c = &p->codes[id];
        struct python_position at =
            python_position(c->minor, c->first_line, c->table, c->table_bytes, WIRE_PYTHON_OFFSET(word));
        frame.function = *c->qualified_name ? c->qualified_name : c->name;
        frame.plain_name = c->name;
        frame.file = c->file;
        frame.line = at.line && at.line <= INT32_MAX ? at.line : c->first_line;
        frame.column = at.line ? at.column : 0;
        frame.first_line = c->first_line;
    }
    known = named_address(p->named, &frame);
    map_set_number(&p->addresses, word, 0, known);
    return known;
}
