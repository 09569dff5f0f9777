/*
 * notebook.h: the code of a Jupyter notebook's cells (nbformat 4, JSON). The kernel compiles a cell under a name that
 * is a hash of its text (/tmp/ipykernel_PID/HASH.py), where no file need be; so the cell that a name means is found in
 * the notebook, and is the text that ran. The file is untrusted.
 */
#ifndef MEMPROF_NOTEBOOK_H
#define MEMPROF_NOTEBOOK_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

/* Calls cell for each cell of code, in order; any database will do. Returns how many; -EBADMSG: no JSON, or damaged:
 * none is given. */
int notebook_cells(sqlite3 *db, const char *text, size_t length,
                   void (*cell)(void *arg, const char *source, size_t bytes), void *arg);

/* What the kernel makes of a cell's text: MurmurHash2. */
uint32_t notebook_hash(const char *source, size_t bytes);

/* The hash in the name of a cell's code; 0: no such name. */
int notebook_name(const char *path, uint32_t *hash);

#endif
