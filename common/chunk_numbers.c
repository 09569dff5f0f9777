/* One column of numbers alone. */
#include "chunk_stream.h"

#include <errno.h>

static const char NUMBERS_MAGIC[4] = {'M', 'P', 'C', 'N'};

int chunk_encode_numbers(struct chunk_codec *codec, const uint64_t *values, size_t count, struct buf *out)
{
    struct column c;
    if (count > CHUNK_NUMBERS)
        return -EFBIG;
    if (column_begin_write(&c, codec->streams, count) != 0)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        column_put(&c, values[i]);
    column_end_write(&c, codec->streams);
    return frame_pack(codec, NUMBERS_MAGIC, count, COLUMN_STREAMS, 0, out);
}

long chunk_count_numbers(const void *data, size_t length)
{
    return frame_count(NUMBERS_MAGIC, CHUNK_NUMBERS, COLUMN_STREAMS, data, length);
}

enum { TOGETHER = 8 }; /* values whose control bytes are looked at at once */

/* Whether all are small: a control byte that is a value itself lacks one of the two upper bits. */
static inline int are_small(const uint8_t *control)
{
    uint64_t bytes;
    memcpy(&bytes, control, sizeof bytes);
    return !(bytes & bytes << 1 & 0x8080808080808080u);
}
_Static_assert(COLUMN_ONE == 0xc0, "what are_small looks at");

/* count values, for which there are control bytes. The column is a copy, so that it is kept in registers. */
static int get_values(struct column *column, uint64_t *row, size_t count)
{
    struct column c = *column;
    size_t i = 0;
    while (i < count) {
        const uint8_t *control = c.at[COLUMN_CONTROL];
        const size_t end = count - i < TOGETHER ? count : i + TOGETHER;
        if (count - i >= TOGETHER && are_small(control)) {
            for (int k = 0; k < TOGETHER; k++)
                row[i + k] = control[k];
            c.at[COLUMN_CONTROL] += TOGETHER;
            i = end;
        }
        for (; i < end; i++)
            if (column_get(&c, &row[i]) != 0)
                return -EBADMSG;
    }
    *column = c;
    return 0;
}

long chunk_decode_numbers(struct chunk_codec *codec, const void *data, size_t length, const uint64_t **values)
{
    struct column c;
    long count = frame_unpack(codec, NUMBERS_MAGIC, CHUNK_NUMBERS, COLUMN_STREAMS, FRAME_ALL, data, length);
    if (count < 0)
        return count;
    if (codec->streams[COLUMN_CONTROL].length != (size_t)count)
        return -EBADMSG;
    uint64_t *row = codec_room(codec, (size_t)count, sizeof *row);
    if (!row)
        return -ENOMEM;
    column_begin_read(&c, codec->streams);
    if (get_values(&c, row, (size_t)count) != 0)
        return -EBADMSG;
    *values = row;
    return column_is_read(&c) ? count : -EBADMSG;
}
