/*
 * own.h: private memory that this library maps for itself, told to the collector: its pages are memprof's, and no
 * program's. Any thread; never within a hook that finds what it needs.
 */
#ifndef MEMPROF_OWN_H
#define MEMPROF_OWN_H

#include "compiler.h"

#include <stddef.h>
#include <stdint.h>

/* As sys_map and sys_unmap. */
void *own_map(size_t size_bytes) HIDDEN;
void own_unmap(void *p, size_t size_bytes) HIDDEN;
/* The same for what is there already. */
void own_tell(const void *p, size_t size_bytes) HIDDEN;
/* Of this process's address space: what this library's file, its private memory and the shared memory take. */
uint64_t own_addresses(void) HIDDEN;
/* A new slot: what this library's file does not fill of its data. */
void own_begin(void) HIDDEN;

#endif
