#include "zip.h"

#include "error.h"
#include "io.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define ZIP_BYTES_MAX (256u << 20)
#define END_BYTES     22u /* end of the central directory, at the end of the file before a comment of at most 64 KiB */
#define ENTRY_BYTES   46u
#define LOCAL_BYTES   30u

struct zip {
    const uint8_t *data;
    size_t bytes;
};

static uint32_t u16(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32(const uint8_t *p)
{
    return u16(p) | u16(p + 2) << 16;
}

/* Where the path leaves the file system: the zip file's part ends there. Fills st. An fd, or -1. */
static int open_container(const char *path, size_t *container_length, struct stat *st)
{
    char part[PATH_MAX];
    size_t length = strlen(path);
    if (*path != '/' || length >= sizeof part)
        return -1;
    memcpy(part, path, length + 1);
    for (char *slash = part; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        if (stat(part, st) != 0)
            return -1;
        if (S_ISREG(st->st_mode)) {
            *container_length = (size_t)(slash - part);
            return open(part, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        }
        *slash = '/';
    }
    return -1;
}

static const uint8_t *find_end(const struct zip *z)
{
    if (z->bytes < END_BYTES)
        return NULL;
    size_t lowest = z->bytes > END_BYTES + 65535 ? z->bytes - END_BYTES - 65535 : 0;
    for (size_t at = z->bytes - END_BYTES + 1; at-- > lowest;)
        if (u32(z->data + at) == 0x06054b50)
            return z->data + at;
    return NULL;
}

/* The entry of a name in the central directory. What stands before the first member (a script) shifts all offsets. */
static const uint8_t *find_entry(const struct zip *z, const char *name, size_t *shift)
{
    const uint8_t *end = find_end(z);
    if (!end)
        return NULL;
    size_t directory_bytes = u32(end + 12), offset = u32(end + 16), before = (size_t)(end - z->data);
    if (directory_bytes > before || offset > before - directory_bytes)
        return NULL;
    *shift = before - directory_bytes - offset;
    size_t name_length = strlen(name), at = before - directory_bytes;
    while (before - at >= ENTRY_BYTES && u32(z->data + at) == 0x02014b50) {
        const uint8_t *entry = z->data + at;
        size_t length = u16(entry + 28), whole = ENTRY_BYTES + length + u16(entry + 30) + u16(entry + 32);
        if (whole > before - at)
            return NULL;
        if (length == name_length && memcmp(entry + ENTRY_BYTES, name, length) == 0)
            return entry;
        at += whole;
    }
    return NULL;
}

static int unpack(const uint8_t *packed, size_t packed_bytes, char *out, size_t bytes)
{
    z_stream s = {.next_in = (Bytef *)(uintptr_t)packed,
                  .avail_in = (uInt)packed_bytes,
                  .next_out = (Bytef *)out,
                  .avail_out = (uInt)bytes};
    if (inflateInit2(&s, -MAX_WBITS) != Z_OK)
        return 0;
    int rc = inflate(&s, Z_FINISH);
    inflateEnd(&s);
    return rc == Z_STREAM_END && s.total_out == bytes;
}

static char *member(const struct zip *z, const char *name, size_t most, size_t *length)
{
    size_t shift;
    const uint8_t *entry = find_entry(z, name, &shift);
    if (!entry)
        return NULL;
    size_t packed_bytes = u32(entry + 20), bytes = u32(entry + 24), at = u32(entry + 42) + shift;
    unsigned method = u16(entry + 10);
    if (bytes > most || at > z->bytes || z->bytes - at < LOCAL_BYTES || u32(z->data + at) != 0x04034b50)
        return NULL;
    size_t skip = LOCAL_BYTES + u16(z->data + at + 26) + u16(z->data + at + 28);
    if (skip > z->bytes - at || packed_bytes > z->bytes - at - skip)
        return NULL;
    const uint8_t *packed = z->data + at + skip;
    char *text = xmalloc(bytes + 1);
    int ok = method == 0 ? packed_bytes == bytes : method == 8 ? unpack(packed, packed_bytes, text, bytes) : 0;
    if (ok && method == 0)
        memcpy(text, packed, bytes);
    if (!ok) {
        free(text);
        return NULL;
    }
    text[bytes] = 0;
    *length = bytes;
    return text;
}

char *zip_read(const char *path, size_t most, size_t *length, struct stat *st)
{
    size_t container_length = 0;
    char *text = NULL;
    int fd = open_container(path, &container_length, st);
    if (fd < 0)
        return NULL;
    if (fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_size > 0 && st->st_size <= (off_t)ZIP_BYTES_MAX) {
        struct zip z = {.bytes = (size_t)st->st_size};
        uint8_t *data = xmalloc(z.bytes);
        z.data = data;
        /* read, not mapped: a file that another process cuts would kill us */
        if (io_read(fd, data, z.bytes) == z.bytes)
            text = member(&z, path + container_length + 1, most, length);
        free(data);
    }
    close(fd);
    return text;
}
