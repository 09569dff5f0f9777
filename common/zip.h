/*
 * zip.h: one member of a zip file, by a path that goes through it ("/app/tool.zip/pkg/module.py"): how Python names
 * code that it imports from one. The file is untrusted.
 */
#ifndef MEMPROF_ZIP_H
#define MEMPROF_ZIP_H

#include <stddef.h>
#include <sys/stat.h>

/* The member's bytes with a NUL after them, the caller's to free; st is the zip file's. NULL: there is no such member,
 * or it has more than most bytes, or is packed in a way other than the usual (deflate). */
char *zip_read(const char *path, size_t most, size_t *length, struct stat *st);

#endif
