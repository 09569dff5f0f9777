/*
 * walk.h: the frames of a stack, innermost first, with inlined functions as frames of their own. In C and with a depth
 * limit, because the tree comes from a file that may hold a cycle.
 */
#ifndef MEMPROF_WALK_H
#define MEMPROF_WALK_H

#include "../../common/buf.h"
#include "../../common/error.h"
#include "tree.h"

#include <sqlite3.h>
#include <stdint.h>

#define WALK_FRAMES_MAX 4096 /* of one stack, inlined ones included */

struct walk_frame {       /* strings belong to the walk, until walk_close */
    const char *function; /* NULL: no symbol */
    const char *plain_name;
    const char *file;   /* NULL: no line information */
    const char *module; /* path; NULL: unknown */
    int64_t line;
    int64_t offset; /* in module */
    int64_t address_id, function_id, file_id;
    uint8_t is_inline, is_allocator, is_python;
    uint8_t is_runtime, is_interpreter; /* its module: module_is_runtime, module_is_python */
    uint64_t shown;                     /* a hash of what people are shown of it, once walk_shown_hash wanted it */
};

struct walk_stack {
    const struct walk_frame **frames; /* innermost first; until the next walk_stack call */
    int count;
    int is_cut;     /* deeper than the recorder's limit, or than ours */
    int is_unknown; /* ends in code without unwind information */
    int is_hidden;  /* all of its frames are of other languages */
    int folded;     /* frames that walk_fold took out */
};

struct walk;

/* language: frames of other languages are left out. */
int walk_open(sqlite3 *db, enum tree_language language, struct walk **walk, struct error *err);
void walk_close(struct walk *walk);
sqlite3 *walk_db(const struct walk *walk);
int walk_stack(struct walk *walk, int64_t stack_id, struct walk_stack *stack, struct error *err);

/* One node of a stack: its address, and the node of the caller. */
struct walk_node {
    int64_t parent_id, address_id; /* parent_id 0: this is the outermost, of which the others tell, as in walk_stack */
    int is_cut, is_unknown;
};
/* is_caller: others are below it, so it is kept. 1, 0 for a node that is not there, or an error. */
int walk_node(struct walk *walk, int64_t stack_id, int is_caller, struct walk_node *node, struct error *err);
/* The frames of an address, innermost first, with their strings until walk_close. */
const struct walk_frame *walk_frames(struct walk *walk, int64_t address_id, int *count);

/* So many different addresses or more will be asked for: where it is quicker, all are read at once. */
void walk_foresee(struct walk *walk, size_t addresses);

/* Both. */
struct walk_step {
    const struct walk_frame *frames;
    int count;
    int64_t parent_id;
    int is_cut, is_unknown;
};
int walk_step(struct walk *walk, int64_t stack_id, int is_caller, struct walk_step *step, struct error *err);
/* Whether frames of this one's language are left out. */
int walk_hides(const struct walk *walk, const struct walk_frame *frame);
/* Where the C library calls main(): what lies from here on outwards is the same in every program. */
int walk_is_start(const struct walk_frame *frame);

/* The frames that people are shown: from *first to before *end. */
void walk_shown(const struct walk_stack *stack, int *first, int *end);
/* Takes out what Python's tracebacks do not have either, of stacks with frames of Python: the interpreter's own, and
 * those of imports, but where an import allocates itself. */
void walk_fold(struct walk_stack *stack);
/* The same of the frames behind this one alone. */
void walk_fold_behind(struct walk_stack *stack, int frame);
#define WALK_FOLDED_TEXT "Frames of Python's interpreter and of imports are left out; --frames 0 shows them."
/* Equal for stacks whose shown frames are equal: the same functions at the same places. */
uint64_t walk_shown_hash(const struct walk_stack *stack);
/* Appends "src/net.c:42", "[libz.so.1+0x1234]"; base: text_path(). */
void walk_place(const struct walk_frame *frame, const char *base, struct buf *text);

#endif
