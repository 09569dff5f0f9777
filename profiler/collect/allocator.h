/*
 * allocator.h: which functions only pass an allocation on (allocator.def).
 */
#ifndef MEMPROF_ALLOCATOR_H
#define MEMPROF_ALLOCATOR_H

/* raw_name: as in the symbol table (without version); name: demangled. Either may be NULL. */
int allocator_is_function(const char *raw_name, const char *name);

#endif
