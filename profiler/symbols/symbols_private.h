/*
 * symbols_private.h: what the parts of symbols*.c share: the ELF file with its debug information, its symbol index, its
 * DWARF index, perf maps, and a store of strings.
 */
#ifndef MEMPROF_SYMBOLS_PRIVATE_H
#define MEMPROF_SYMBOLS_PRIVATE_H

#include "symbols.h"

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#define SYMBOLS_BUILD_ID_MAX 64
#define SYMBOLS_PROBES_MAX   12

/* symbols_strings: names and paths in the form that we give out, made once per distinct string. */
struct symbols_strings;
struct symbols_strings *symbols_strings_open(void);
void symbols_strings_close(struct symbols_strings *t);
/* Both results live until the close. raw: "" and NULL give NULL. */
const char *symbols_strings_name(struct symbols_strings *t, const char *raw, const char **demangled);
const char *symbols_strings_keep(struct symbols_strings *t, const char *text); /* a copy that lives until the close */
/* "f(int) [a.c]" */
const char *symbols_strings_of_unit(struct symbols_strings *t, const char *name, const char *unit);
const char *symbols_strings_path(struct symbols_strings *t, const char *directory, const char *path);

/* symbols_elf.c */
struct symbols_elf;
/* Returns NULL with the reason in why. */
struct symbols_elf *symbols_elf_open(const char *path, const char *build_id, char *why, size_t why_size);
void symbols_elf_close(struct symbols_elf *e);
/* The name of the symbol at the file's own address; NULL: none. unit: its source file, as "a.c", where functions of
 * several files have its name; or NULL. Borrowed until close. */
const char *symbols_elf_name(struct symbols_elf *e, uint64_t offset, const char **unit);
int symbols_elf_has_symbols(struct symbols_elf *e);
Dwarf *symbols_elf_dwarf(struct symbols_elf *e, uint64_t *bias); /* NULL: none */
/* Files whose presence, size and time decide what a look-up answers (debug files found and those that were not). */
int symbols_elf_probes(struct symbols_elf *e, char *paths[SYMBOLS_PROBES_MAX]); /* to be freed by the caller */

/* symbols_functions.c: the last begin of a function that is not behind address; 0: not known. */
uint64_t symbols_function_begin(Elf *elf, uint64_t address);

/* symbols_scopes.c: the names of functions whose entries have no linkage name, by what they are in. */
struct symbols_scopes;
struct symbols_scopes *symbols_scopes_open(struct symbols_strings *strings);
void symbols_scopes_close(struct symbols_scopes *s);
/* "f" -> "a::f", or NULL: it is in nothing. copy: the address of the function's code where it was not inlined in its
 * unit, whose symbol has its full name; 0: there is none. Reads the whole unit the first time. */
const char *symbols_scopes_name(struct symbols_scopes *s, Dwarf_Die *function, const char *name, uint64_t *copy);

/* symbols_dwarf.c */
struct symbols_dwarf;
struct symbols_dwarf *symbols_dwarf_open(Dwarf *dwarf, struct symbols_strings *strings);
void symbols_dwarf_close(struct symbols_dwarf *d);
int symbols_dwarf_is_empty(const struct symbols_dwarf *d);
int symbols_dwarf_is_split(const struct symbols_dwarf *d); /* a split unit was used: its .dwo file has no identity */
/* As symbols_lookup; a frame without a function has raw_name NULL but may have a line. symbol_at: of each frame the
 * address whose symbol may be a better name, or 0: gcc leaves functions local to others without their full names. */
int symbols_dwarf_lookup(struct symbols_dwarf *d, uint64_t address, struct symbols_frame *frames,
                         uint64_t symbol_at[SYMBOLS_INLINE_MAX]);

/* symbols_perf.c */
struct symbols_perf;
struct symbols_perf *symbols_perf_open(const char *path, char *why, size_t why_size);
void symbols_perf_close(struct symbols_perf *p);
const char *symbols_perf_name(struct symbols_perf *p, uint64_t address);

/* symbols.c, for symbols_pool.c. flags: symbol tables only */
#define SYMBOLS_NO_DWARF 1
struct symbols *symbols_open_flags(const char *path, const char *build_id, int flags);
int symbols_probes(struct symbols *s, char *paths[SYMBOLS_PROBES_MAX]);
int symbols_may_cache(const struct symbols *s);

#endif
