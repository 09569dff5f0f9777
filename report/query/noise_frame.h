/*
 * noise_frame.h: what single frames tell of whose memory it is, by their names; noise.h asks whole stacks. Names are
 * compared with many patterns, and stacks share most of their frames: each address is looked at once.
 */
#ifndef MEMPROF_NOISE_FRAME_H
#define MEMPROF_NOISE_FRAME_H

#include "../../common/map.h"
#include "walk.h"

enum frame_trait {
    FRAME_ALLOCATOR = 1 << 0,
    FRAME_RUNTIME = 1 << 1,
    FRAME_INTERPRETER = 1 << 2,
    FRAME_PYTHON = 1 << 3,
    FRAME_OPENMP = 1 << 4,     /* of its library, for its threads and teams */
    FRAME_ONCE = 1 << 5,       /* the C library keeps what this allocates for good */
    FRAME_RUST_START = 1 << 6, /* of Rust's standard library, before main() */
    FRAME_NO_RUST_START = 1 << 7,
    FRAME_START_UP = 1 << 8,     /* Python initializes itself */
    FRAME_LIBRARY = 1 << 9,      /* code that is nobody's own */
    FRAME_OWN = 1 << 10,         /* of that the interpreter's, the system's, and where main() is called */
    FRAME_INTERNED = 1 << 11,    /* Python keeps it for good, or it is a table of its arenas */
    FRAME_IMPORT = 1 << 12,      /* Python's import */
    FRAME_TAKES_ARENA = 1 << 13, /* an allocator takes memory for many blocks */
    FRAME_INSTANCE = 1 << 14     /* a template of the C++ library, compiled into the program */
};

struct noise_frames { /* zero; by the ids of one recording's addresses */
    uint16_t *traits;
    size_t count, room;
    struct noise_place {
        uint32_t first, count; /* in traits, from 1; 0: none yet */
    } * places;                /* by address_id */
    size_t place_room;
    struct map code, known; /* (function, file), and that with its module: what frames of it tell */
    uint32_t code_count;
    uint16_t *unkept; /* of an id that no recorder gives */
    size_t unkept_room;
};

/* Of each frame of an address of the walk, innermost first; until the next call. */
const uint16_t *noise_frames(struct noise_frames *n, struct walk *walk, int64_t address_id, int *count);
void noise_frames_close(struct noise_frames *n);

#endif
