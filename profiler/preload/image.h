/*
 * image.h: what a process tells of its image when that ends.
 */
#ifndef MEMPROF_IMAGE_H
#define MEMPROF_IMAGE_H

#include "compiler.h"

/* Before the program exits or executes another: its peak of resident memory and its title, into its slot. */
void image_ends(void) HIDDEN;

#endif
