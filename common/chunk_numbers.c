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
    for (long i = 0; i < count; i++)
        if (column_get(&c, &row[i]) != 0)
            return -EBADMSG;
    *values = row;
    return column_is_read(&c) ? count : -EBADMSG;
}
