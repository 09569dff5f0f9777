/*
 * symbols.h: from addresses to functions, files and lines: libdw over the ELF files, separate debug files (build-id,
 * debuglink, .dwz), debuginfod when the user set DEBUGINFOD_URLS, symbol tables without DWARF, perf map files for JIT
 * code; names demangled with libiberty. ELF and DWARF are untrusted input.
 */
#ifndef MEMPROF_SYMBOLS_H
#define MEMPROF_SYMBOLS_H

#include "../../common/error.h"

#include <stdint.h>

struct symbols; /* one ELF file (or perf map) */

struct symbols_frame {         /* strings: borrowed until the next symbols_lookup on the same struct symbols */
    const char *raw_name;      /* linkage name; NULL: unknown */
    const char *name;          /* demangled, as "f(int) [a.cpp]" if several source files have one; NULL: unknown */
    const char *file;          /* absolute path; NULL: no line information */
    int line;                  /* 0: unknown */
    int column;                /* 0: unknown */
    const char *declared_file; /* where the function is declared; NULL: unknown */
    int declared_line;
    int is_inline; /* inlined into the next frame of the array */
};

#define SYMBOLS_INLINE_MAX 64

/* path: of the mapped file; build_id (hexadecimal, may be NULL): what was mapped: a file with another one is refused.
 * Never NULL: a file without symbols answers every look-up with 0 frames and says why in symbols_source. */
struct symbols *symbols_open(const char *path, const char *build_id);
/* "/tmp/perf-PID.map", as perf reads it: owned by the caller's user or root, not a link. Offsets are absolute
 * addresses. */
struct symbols *symbols_open_perf_map(int pid);
void symbols_close(struct symbols *s);
/* 'dwarf', 'symtab', 'perf map', 'none: REASON' */
const char *symbols_source(const struct symbols *s);
/* offset: the file's own address of the return address less 1 (already subtracted by the caller). Frames innermost
 * first, at most SYMBOLS_INLINE_MAX. Returns how many (0: nothing known). */
int symbols_lookup(struct symbols *s, uint64_t offset, struct symbols_frame frames[SYMBOLS_INLINE_MAX]);

/* The name alone: "a::b<int>::c(char) const" -> "c". Returns a string to free. */
char *symbols_plain_name(const char *name);

#endif
