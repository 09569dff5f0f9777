/*
 * io.h: whole reads and writes.
 */
#ifndef MEMPROF_IO_H
#define MEMPROF_IO_H

#include <stddef.h>

/* Reads until size bytes are there, the file ends or reading fails; returns how many there are. */
size_t io_read(int fd, void *data, size_t size);
/* Writes all; 0 or -1. */
int io_write(int fd, const void *data, size_t size);

#endif
