/* JSON, deflate and base64: the one place where data of the database enters the page's scripts. */
#include "page_data.h"

#include "../../common/db.h"
#include "../query/short_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define FLUSH_BYTES (64u << 10)

static void put(struct page_pack *pack, const char *data, size_t length)
{
    if (fwrite(data, 1, length, pack->out) != length && !pack->failed)
        pack->failed = errno ? errno : EIO;
}

static void write_base64(struct page_pack *pack, const unsigned char *data, size_t length, int last)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[4096];
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        pack->carry[pack->carry_count++] = data[i];
        if (pack->carry_count < 3)
            continue;
        unsigned bits = (unsigned)pack->carry[0] << 16 | (unsigned)pack->carry[1] << 8 | pack->carry[2];
        for (int shift = 18; shift >= 0; shift -= 6)
            text[used++] = digits[bits >> shift & 63];
        pack->carry_count = 0;
        if (used > sizeof text - 8) {
            put(pack, text, used);
            used = 0;
        }
    }
    if (last && pack->carry_count) {
        unsigned bits = (unsigned)pack->carry[0] << 16 | (pack->carry_count > 1 ? (unsigned)pack->carry[1] << 8 : 0);
        text[used++] = digits[bits >> 18 & 63];
        text[used++] = digits[bits >> 12 & 63];
        text[used++] = pack->carry_count > 1 ? digits[bits >> 6 & 63] : '=';
        text[used++] = '=';
    }
    put(pack, text, used);
}

static void flush(struct page_pack *pack, int last)
{
    if (!pack->packed) {
        put(pack, buf_text(&pack->text), pack->text.length);
        buf_reset(&pack->text);
        return;
    }
    z_stream *z = pack->deflate;
    unsigned char out[16384];
    z->next_in = (unsigned char *)pack->text.data;
    z->avail_in = (unsigned)pack->text.length;
    do {
        z->next_out = out;
        z->avail_out = sizeof out;
        deflate(z, last ? Z_FINISH : Z_NO_FLUSH);
        write_base64(pack, out, sizeof out - z->avail_out, 0);
    } while (z->avail_out == 0);
    if (last)
        write_base64(pack, NULL, 0, 1);
    buf_reset(&pack->text);
}

static void pack_begin(struct page_pack *pack, FILE *out, int packed)
{
    *pack = (struct page_pack){.out = out, .packed = packed, .text = BUF(64u << 20)};
    if (!packed)
        return;
    z_stream *z = pack->deflate = xcalloc(1, sizeof *z);
    /* Raw: what DecompressionStream('deflate-raw') reads. Level 9 is 5 % smaller and takes three times as long. */
    if (deflateInit2(z, 6, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        pack->failed = ENOMEM;
}

/* 0 or -errno */
static int pack_end(struct page_pack *pack)
{
    if (pack->text.failed)
        pack->failed = ENOMEM;
    if (!pack->failed)
        flush(pack, 1);
    if (pack->deflate) {
        deflateEnd(pack->deflate);
        free(pack->deflate);
    }
    buf_free(&pack->text);
    if (!pack->failed && ferror(pack->out)) { /* by what came before it, of which the rest is tried again */
        errno = 0;
        fflush(pack->out);
        pack->failed = errno ? errno : EIO;
    }
    return -pack->failed;
}

static void begin_value(struct page_pack *pack, const char *key)
{
    if (pack->text.failed)
        pack->failed = ENOMEM;
    if (pack->text.length >= FLUSH_BYTES && !pack->failed)
        flush(pack, 0);
    if (pack->comma)
        buf_putc(&pack->text, ',');
    pack->comma = 1;
    if (key) {
        buf_putc(&pack->text, '"');
        buf_json(&pack->text, key);
        buf_puts(&pack->text, "\":");
    }
}

void pack_open(struct page_pack *pack, const char *key, char bracket)
{
    begin_value(pack, key);
    buf_putc(&pack->text, bracket);
    pack->comma = 0;
}

void pack_close(struct page_pack *pack, char bracket)
{
    buf_putc(&pack->text, bracket);
    pack->comma = 1;
}

void pack_int(struct page_pack *pack, const char *key, int64_t value)
{
    const int64_t most = INT64_C(1) << 53;
    begin_value(pack, key);
    if (value > most)
        value = most;
    if (value < -most)
        value = -most;
    char digits[24], *p = digits + sizeof digits;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do
        *--p = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        *--p = '-';
    buf_add(&pack->text, p, (size_t)(digits + sizeof digits - p));
}

void pack_text(struct page_pack *pack, const char *key, const char *text)
{
    begin_value(pack, key);
    buf_putc(&pack->text, '"');
    buf_json(&pack->text, text);
    buf_putc(&pack->text, '"');
}

void pack_null(struct page_pack *pack, const char *key)
{
    begin_value(pack, key);
    buf_puts(&pack->text, "null");
}

void pack_column(struct page_pack *pack, const char *key, uint32_t count, const int64_t *values, size_t stride,
                 int delta)
{
    const int64_t most = INT64_C(1) << 52; /* so that a difference of two fits what the page can count to */
    int64_t before = 0;
    pack_open(pack, key, '[');
    for (uint32_t i = 0; i < count; i++) {
        int64_t v = *(const int64_t *)((const char *)values + i * stride);
        v = v > most ? most : v < -most ? -most : v;
        pack_int(pack, NULL, delta ? v - before : v);
        before = v;
    }
    pack_close(pack, ']');
}

int pack_query(struct page *page, struct page_pack *pack, const char *key, const char *sql, int limit)
{
    sqlite3_stmt *s = page_query(page, sql);
    if (!s)
        return -EIO;
    int rc;
    pack_open(pack, key, '[');
    while ((rc = sqlite3_step(s)) == SQLITE_ROW && limit--) {
        pack_open(pack, NULL, '{');
        for (int i = 0; i < sqlite3_column_count(s); i++) {
            const char *name = sqlite3_column_name(s, i);
            switch (sqlite3_column_type(s, i)) {
            case SQLITE_INTEGER:
                pack_int(pack, name, sqlite3_column_int64(s, i));
                break;
            case SQLITE_FLOAT:
                pack_int(pack, name, (int64_t)sqlite3_column_int64(s, i));
                break;
            case SQLITE_NULL:
                pack_null(pack, name);
                break;
            default: {
                char *text = short_name_cut(db_text(s, i));
                pack_text(pack, name, text);
                free(text);
            }
            }
        }
        pack_close(pack, '}');
    }
    pack_close(pack, ']');
    return page_query_end(page, s, rc);
}

int page_write_pack(FILE *out, int packed, int (*write)(void *of, struct page_pack *pack), void *of, struct error *err)
{
    struct page_pack pack;
    pack_begin(&pack, out, packed);
    int rc = write(of, &pack), failed = pack_end(&pack);
    if (!rc && failed)
        rc = error_set(err, -failed, "writing the page: %s", strerror(-failed));
    return rc;
}
