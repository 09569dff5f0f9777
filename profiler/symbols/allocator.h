/*
 * allocator.h: which functions only pass an allocation on (allocator.def).
 */
#ifndef MEMPROF_ALLOCATOR_H
#define MEMPROF_ALLOCATOR_H

/* raw_name: as in the symbol table; name: demangled; declared_file: where. Each may be NULL. */
int allocator_is_function(const char *raw_name, const char *name, const char *declared_file);

#endif
