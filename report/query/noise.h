/*
 * noise.h: what the C, C++, Rust and OpenMP libraries and Python's interpreter keep for themselves in every program:
 * made before main() by nothing else, and buffers, locales and tables that they make once. Nobody can free it, so it is
 * not what a search for leaks is after.
 */
#ifndef MEMPROF_NOISE_H
#define MEMPROF_NOISE_H

#include "walk.h"

enum {
    NOISE_NONE,
    NOISE_LIBRARY,
    /* Of Python's: its start-up, code and modules that an import makes, and what modules of its library and of
     * installed packages make while they are imported; interned strings, what it knows of types and of its arenas. What
     * a module of the user's makes while it is imported is the user's, as is what a package makes later. */
    NOISE_INTERPRETER,
    /* A mapping in which an allocator within the program (jemalloc, mimalloc, tcmalloc) keeps its blocks, which were
     * not seen: not what a program forgot to free. */
    NOISE_ARENA,
    NOISE_KINDS
};

/* "Python's own: its start-up, ...", what tables that leave it out say of it; of NOISE_NONE NULL. */
extern const char *const noise_texts[NOISE_KINDS];

struct noise;
/* For many stacks, which share most of their nodes. The walk must live as long. */
struct noise *noise_open(struct walk *walk);
void noise_close(struct noise *noise);
/* Which of these a stack's blocks are (is_map: they are mappings), all frames looked at, whatever the walk hides; or
 * -errno. */
int noise_of(struct noise *noise, int64_t stack_id, int is_map, struct error *err);

#endif
