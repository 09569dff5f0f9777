/*
 * sources.h: the text of code that is in no file, as one process says it (SOURCE records): joined of its parts, and put
 * beside the name that frames have. What the process says is untrusted.
 */
#ifndef MEMPROF_SOURCES_H
#define MEMPROF_SOURCES_H

#include "named.h"

struct sources;

struct sources *sources_open(struct named *named);
void sources_close(struct sources *sources);

/* A part of text number `number`, of which `before` of `total` words came before. 0 or -EINVAL. What a process says
 * beyond WIRE_SOURCE_BYTES_MAX, and a text whose parts are not all there, is left out. */
int sources_add(struct sources *sources, uint32_t number, uint32_t before, uint32_t total, const uint64_t *words,
                size_t count);

#endif
