/*
 * image.h: what a process tells of its image when that ends, and of the program that it executes next.
 */
#ifndef MEMPROF_IMAGE_H
#define MEMPROF_IMAGE_H

#include "../wire.h"
#include "compiler.h"

/* A program to be executed, as WIRE_EXEC tells it. On the caller's stack: a vfork's child shares its parent's memory.
 */
struct image_target {
    uint64_t words[3 + WIRE_TARGET_MAX / 8]; /* word 1, pid and stamp of the record, then the path */
    uint32_t bytes;                          /* of the path */
    uint32_t reach;                          /* enum wire_reach */
    uint32_t without_library; /* it will not find the library that LD_PRELOAD names, or not start behind it */
};

enum image_search { IMAGE_AT, IMAGE_IN_PATH };

/* file as execveat takes it with fd, or as execvp does. All else is left alone: the call itself says what is wrong. */
void image_target(struct image_target *t, int fd, const char *file, enum image_search search) HIDDEN;
static inline const char *image_target_path(const struct image_target *t)
{
    return (const char *)(t->words + 3);
}

/* Before the program exits or executes another: its peak of resident memory and its title, into its slot. */
void image_ends(void) HIDDEN;

#endif
