/*
 * array.h: arrays that grow. The count and the capacity are variables of any integer type, next to the array; the
 * caller frees the array, and bounds what comes from hostile input.
 */
#ifndef MEMPROF_ARRAY_H
#define MEMPROF_ARRAY_H

#include "error.h"

#include <stddef.h>
#include <string.h>

/* By half: the last doubling of a large array would be the most memory of all. is_zero: what is added is. */
static inline void *array_grow(void *array, size_t need, size_t *capacity, size_t element_bytes, int is_zero)
{
    size_t old_bytes = *capacity * element_bytes;
    size_t larger = *capacity < 16 ? 16 : *capacity + *capacity / 2, bytes;
    *capacity = larger > need ? larger : need;
    if (__builtin_mul_overflow(*capacity, element_bytes, &bytes))
        out_of_memory(0);
    array = xrealloc(array, bytes);
    if (is_zero)
        memset((char *)array + old_bytes, 0, bytes - old_bytes);
    return array;
}

#define ARRAY_GROW(array, need, capacity, is_zero)                                                                     \
    do {                                                                                                               \
        size_t array_need = (size_t)(need), array_capacity = (size_t)(capacity);                                       \
        if (array_need > array_capacity) {                                                                             \
            (array) = array_grow((array), array_need, &array_capacity, sizeof *(array), (is_zero));                    \
            (capacity) = (__typeof__(capacity))array_capacity;                                                         \
            if ((size_t)(capacity) != array_capacity)                                                                  \
                bug("an array of %zu elements", array_capacity);                                                       \
        }                                                                                                              \
    } while (0)

/* Room for need elements in all; with _ZERO, those that were not there are zero. */
#define ARRAY_ROOM(array, need, capacity)      ARRAY_GROW(array, need, capacity, 0)
#define ARRAY_ROOM_ZERO(array, need, capacity) ARRAY_GROW(array, need, capacity, 1)

/* Where one more element is, all zero. */
#define ARRAY_ADD(array, count, capacity)                                                                              \
    ({                                                                                                                 \
        ARRAY_ROOM(array, (size_t)(count) + 1, capacity);                                                              \
        memset(&(array)[count], 0, sizeof *(array));                                                                   \
        &(array)[(count)++];                                                                                           \
    })

#endif
