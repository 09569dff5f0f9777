/*
 * named.h: frames that bring their own names: code of an interpreter, stacks of an imported recording. Each becomes an
 * address without a module, with its function, file and frame rows written at once; stacks of them share the tree of
 * all.
 */
#ifndef MEMPROF_NAMED_H
#define MEMPROF_NAMED_H

#include "stacks.h"

struct named;

struct named_frame {
    const char *function;   /* qualified name, "" or NULL: none */
    const char *plain_name; /* the name alone; NULL: the same */
    const char *file;       /* NULL: none. Kept as it is when it is absolute or not a path ("<string>") */
    uint32_t line;          /* 0: none */
    uint32_t column;        /* 0: none */
    uint32_t first_line;    /* where the function is declared, in the same file; 0: not known */
    const char *language;   /* 'native' | 'python' | 'jit' */
};

struct named *named_open(struct store *store, struct stacks *stacks);
void named_close(struct named *named);

/* table address's id of this frame, the same for equal frames; 0: no more can be had. Strings are copied. */
uint32_t named_address(struct named *named, const struct named_frame *frame);

/* The same of code in a file (path NULL: in none) at an offset, with its inline chain, innermost first; each is inlined
 * into the next one. Of one that is there already the chain is not looked at; of no frames it has one without a name.
 */
struct named_code {
    const char *path, *build_id;
    uint64_t offset;
};
uint32_t named_code(struct named *named, uint32_t process_id, const struct named_code *code,
                    const struct named_frame *chain, unsigned count);

/* The text of a file of these frames, which is kept unless it has one. */
void named_source(struct named *named, const char *path, const char *text, size_t bytes);

/* The global stack of addresses by their ids, innermost first; 0 for none. */
uint32_t named_stack(struct named *named, const uint32_t *address_ids, size_t count);

#endif
