/*
 * demangle.h: names as people write them, from C++ (Itanium ABI) and Rust (v0 and legacy) symbols. See also
 * symbols_plain_name in symbols.h.
 */
#ifndef MEMPROF_DEMANGLE_H
#define MEMPROF_DEMANGLE_H

#include <stddef.h>

#define DEMANGLE_MAX 16384 /* bytes of a demangled name with its NUL; longer ones end in "..." */

/* Writes the readable form of raw into out. Returns 0, or -ENOENT when raw is not mangled (out is then unchanged).
 * A name whose readable form takes too much work counts as not mangled: more than 256 KiB, or 0.1 s of processor time.
 * That takes the process's SIGVTALRM and its timer: for one thread of a process. */
int demangle_name(const char *raw, char out[DEMANGLE_MAX]);

/* Where the qualified name begins in a demangled one: after the return type that templates have. */
const char *demangle_scope(const char *name);

#endif
