/*
 * strmap.h: byte strings to numbers: a hash table that copies its keys. Keys may come from hostile files, so the hash
 * is seeded. Grows without limit: the caller bounds what it adds.
 */
#ifndef MEMPROF_STRMAP_H
#define MEMPROF_STRMAP_H

#include <stddef.h>
#include <stdint.h>

struct strmap;

struct strmap *strmap_open(void);
void strmap_close(struct strmap *m);
/* The value of key, made with value 0 when it is new (*is_new, may be NULL, says so). Valid until the next call.
 * copy (may be NULL) gets the map's own NUL-terminated copy of the key, valid until strmap_close. */
uint32_t *strmap_slot(struct strmap *m, const void *key, size_t length, int *is_new, const char **copy);
size_t strmap_count(const struct strmap *m);

#endif
