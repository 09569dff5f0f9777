/* module_kind.h: what a module is by its file's name (a path or the last part of one). */
#ifndef MEMPROF_MODULE_KIND_H
#define MEMPROF_MODULE_KIND_H

int module_is_ours(const char *path); /* memprof's own library */
/* The C and C++ libraries and the loader. */
int module_is_runtime(const char *path);

#endif
