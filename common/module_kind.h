/* module_kind.h: what a module is by its file's name (a path or the last part of one). */
#ifndef MEMPROF_MODULE_KIND_H
#define MEMPROF_MODULE_KIND_H

int module_is_ours(const char *path); /* memprof's own library */
/* The C library with its loader, and the parts that it keeps in files of their own. */
int module_is_c_library(const char *path);
/* A function of the C library whose blocks are its own: those of threads and their variables. */
int c_library_allocates_for_itself(const char *function);
/* The C and C++ libraries and the loader. */
int module_is_runtime(const char *path);
/* Python's interpreter, as a program or a library, and what of its standard library is native code. */
int module_is_python(const char *path);
/* A source file of Python's standard library, the frozen ones included; no package that was installed beside it. */
int module_is_python_library(const char *file);
/* A file of a Python package that was installed, source or native code. */
int module_is_python_package(const char *path);
/* Of a GPU's maker: its driver and what comes with its toolkit. There is no debug information for these anywhere. */
int module_is_gpu_vendor(const char *path);
/* A library that came with the system. */
int module_is_system_library(const char *path);

#endif
