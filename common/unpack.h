/*
 * unpack.h: a stream of bytes as it was before gzip or zstd, told by its first bytes; any other as it is. Untrusted: it
 * may be cut, damaged, or grow a thousandfold, so the reader bounds what it keeps.
 */
#ifndef MEMPROF_UNPACK_H
#define MEMPROF_UNPACK_H

#include <stddef.h>

struct unpack_source {
    long (*read)(void *context, void *data, size_t size); /* bytes, 0 at the end, -errno */
    void *context;
};

struct unpack;
struct unpack *unpack_open(const struct unpack_source *source); /* the source stays the caller's */
void unpack_close(struct unpack *u);                            /* NULL does nothing */
/* As the source's read; context is the struct unpack. -EBADMSG: damaged; what came before is right. */
long unpack_read(void *context, void *data, size_t size);
/* The first bytes, at most 64, without taking them; how many there are. Before the first unpack_read. */
size_t unpack_peek(struct unpack *u, void *data, size_t size);
int unpack_is_cut(const struct unpack *u);       /* the compressed stream ended before its end */
const char *unpack_name(const struct unpack *u); /* "gzip", "zstd"; NULL: it is as it was */

#endif
