/*
 * build.h: the facts that only the build knows.
 */
#ifndef MEMPROF_BUILD_H
#define MEMPROF_BUILD_H

extern const char build_version[];
extern const char build_library_dir[]; /* where `make install` puts libmemprof.so */
extern const int build_has_cuda;       /* 0: libmemprof.so has no hooks of the CUDA driver */

#endif
