#include "pprof_write.h"

#include "../../common/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define CHUNK_BYTES   65536
#define MESSAGE_LIMIT (256u << 20)

/* --- gzip --- */

static void fail(struct pprof_writer *w, int code)
{
    if (!w->failed)
        w->failed = code;
}

void pprof_write_open(struct pprof_writer *w, FILE *out)
{
    *w = (struct pprof_writer){.out = out,
                               .zip = xcalloc(1, sizeof *w->zip),
                               .message = BUF(MESSAGE_LIMIT),
                               .part = BUF(MESSAGE_LIMIT),
                               .text = BUF(MESSAGE_LIMIT),
                               .plain = xmalloc(CHUNK_BYTES),
                               .zipped = xmalloc(CHUNK_BYTES)};
    if (deflateInit2(w->zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16 /* gzip */, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        fail(w, ENOMEM);
    pprof_write_string(w, "");
}

static void pack(struct pprof_writer *w, int flush)
{
    int rc;
    w->zip->next_in = w->plain;
    w->zip->avail_in = (unsigned)w->plain_count;
    do {
        w->zip->next_out = w->zipped;
        w->zip->avail_out = CHUNK_BYTES;
        rc = w->failed ? Z_STREAM_ERROR : deflate(w->zip, flush);
        size_t count = CHUNK_BYTES - w->zip->avail_out;
        errno = 0;
        if (rc != Z_STREAM_ERROR && fwrite(w->zipped, 1, count, w->out) != count)
            fail(w, errno ? errno : EIO);
    } while (rc != Z_STREAM_ERROR && w->zip->avail_out == 0);
    w->plain_count = 0;
}

static void put(struct pprof_writer *w, const void *data, size_t length)
{
    const unsigned char *p = data;
    while (length) {
        size_t room = CHUNK_BYTES - w->plain_count, count = length < room ? length : room;
        memcpy(w->plain + w->plain_count, p, count);
        w->plain_count += count;
        p += count;
        length -= count;
        if (w->plain_count == CHUNK_BYTES)
            pack(w, Z_NO_FLUSH);
    }
}

int pprof_write_close(struct pprof_writer *w, struct error *err)
{
    pack(w, Z_FINISH);
    if (w->message.failed || w->part.failed || w->text.failed)
        fail(w, EFBIG);
    deflateEnd(w->zip);
    free(w->zip);
    free(w->plain);
    free(w->zipped);
    buf_free(&w->message);
    buf_free(&w->part);
    buf_free(&w->text);
    text_map_close(&w->strings);
    return w->failed ? error_set(err, w->failed, "writing the profile: %s", strerror(w->failed)) : 0;
}

/* --- protocol buffers --- */

static size_t varint(unsigned char bytes[10], uint64_t value)
{
    size_t count = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[count++] = (unsigned char)(value | 0x80);
    bytes[count++] = (unsigned char)value;
    return count;
}

static void add_varint(struct buf *b, uint64_t value)
{
    unsigned char bytes[10];
    buf_add(b, bytes, varint(bytes, value));
}

/* A field that is 0 or "" is left out, as the format has it. */
static void add_number(struct buf *b, int field, uint64_t value)
{
    if (!value)
        return;
    add_varint(b, (uint64_t)field << 3 | PPROF_VARINT);
    add_varint(b, value);
}

static void add_bytes(struct buf *b, int field, const struct buf *bytes)
{
    add_varint(b, (uint64_t)field << 3 | PPROF_BYTES);
    add_varint(b, bytes->length);
    buf_add(b, buf_text(bytes), bytes->length);
}

static void put_bytes(struct pprof_writer *w, int field, const void *data, size_t length)
{
    unsigned char head[20];
    size_t count = varint(head, (uint64_t)field << 3 | PPROF_BYTES);
    count += varint(head + count, length);
    put(w, head, count);
    put(w, data, length);
}

static void put_message(struct pprof_writer *w, int field)
{
    put_bytes(w, field, buf_text(&w->message), w->message.length);
    buf_reset(&w->message);
}

uint64_t pprof_write_string(struct pprof_writer *w, const char *text)
{
    buf_reset(&w->text);
    text_valid(&w->text, text ? text : "");
    uint32_t *slot = text_map_slot(&w->strings, buf_text(&w->text), w->text.length);
    if (!*slot) {
        *slot = (uint32_t)text_map_count(&w->strings);
        put_bytes(w, PPROF_PROFILE_string_table, buf_text(&w->text), w->text.length);
    }
    return *slot - 1;
}

void pprof_write_number(struct pprof_writer *w, enum pprof_profile_field field, int64_t value)
{
    unsigned char bytes[20];
    size_t count = varint(bytes, (uint64_t)field << 3 | PPROF_VARINT);
    count += varint(bytes + count, (uint64_t)value);
    put(w, bytes, count);
}

void pprof_write_text(struct pprof_writer *w, enum pprof_profile_field field, const char *text)
{
    pprof_write_number(w, field, (int64_t)pprof_write_string(w, text));
}

void pprof_write_type(struct pprof_writer *w, enum pprof_profile_field field, const char *type, const char *unit)
{
    uint64_t type_index = pprof_write_string(w, type), unit_index = pprof_write_string(w, unit);
    add_number(&w->message, PPROF_VALUE_TYPE_type, type_index);
    add_number(&w->message, PPROF_VALUE_TYPE_unit, unit_index);
    put_message(w, field);
}

void pprof_write_mapping(struct pprof_writer *w, const struct pprof_module *m)
{
    const uint64_t path = pprof_write_string(w, m->path), build = pprof_write_string(w, m->build_id);
    add_number(&w->message, PPROF_MAPPING_id, m->id);
    add_number(&w->message, PPROF_MAPPING_memory_start, m->start);
    add_number(&w->message, PPROF_MAPPING_memory_limit, m->end);
    add_number(&w->message, PPROF_MAPPING_filename, path);
    add_number(&w->message, PPROF_MAPPING_build_id, build);
    for (int field = PPROF_MAPPING_has_functions; field <= PPROF_MAPPING_has_inline_frames; field++)
        add_number(&w->message, field, 1); /* so that no reader looks for symbols again */
    put_message(w, PPROF_PROFILE_mapping);
}

void pprof_write_function(struct pprof_writer *w, uint64_t id, const char *name, const char *system_name,
                          const char *file, int64_t line)
{
    const uint64_t texts[] = {pprof_write_string(w, name), pprof_write_string(w, system_name),
                              pprof_write_string(w, file)};
    add_number(&w->message, PPROF_FUNCTION_id, id);
    for (int i = 0; i < 3; i++)
        add_number(&w->message, PPROF_FUNCTION_name + i, texts[i]);
    add_number(&w->message, PPROF_FUNCTION_start_line, (uint64_t)line);
    put_message(w, PPROF_PROFILE_function);
}

void pprof_write_location(struct pprof_writer *w, uint64_t id, uint64_t mapping_id, uint64_t address,
                          const struct pprof_line *lines, int count)
{
    add_number(&w->message, PPROF_LOCATION_id, id);
    add_number(&w->message, PPROF_LOCATION_mapping_id, mapping_id);
    add_number(&w->message, PPROF_LOCATION_address, address);
    for (int i = 0; i < count; i++) {
        buf_reset(&w->part);
        add_number(&w->part, PPROF_LINE_function_id, lines[i].function_id);
        add_number(&w->part, PPROF_LINE_line, (uint64_t)lines[i].line);
        add_bytes(&w->message, PPROF_LOCATION_line, &w->part);
    }
    put_message(w, PPROF_PROFILE_location);
}

void pprof_write_sample(struct pprof_writer *w, const uint64_t *locations, int location_count, const int64_t *values,
                        int value_count, const struct pprof_label *labels, int label_count)
{
    uint64_t texts[2 * 16];
    if (label_count > 16)
        bug("%d labels", label_count);
    for (int i = 0; i < label_count; i++) {
        texts[2 * i] = pprof_write_string(w, labels[i].key);
        texts[2 * i + 1] = pprof_write_string(w, labels[i].text);
    }
    buf_reset(&w->part);
    for (int i = 0; i < location_count; i++)
        add_varint(&w->part, locations[i]);
    add_bytes(&w->message, PPROF_SAMPLE_location_id, &w->part);
    buf_reset(&w->part);
    for (int i = 0; i < value_count; i++)
        add_varint(&w->part, (uint64_t)values[i]);
    add_bytes(&w->message, PPROF_SAMPLE_value, &w->part);
    for (int i = 0; i < label_count; i++) {
        buf_reset(&w->part);
        add_number(&w->part, PPROF_LABEL_key, texts[2 * i]);
        add_number(&w->part, PPROF_LABEL_str, texts[2 * i + 1]);
        add_bytes(&w->message, PPROF_SAMPLE_label, &w->part);
    }
    put_message(w, PPROF_PROFILE_sample);
}
