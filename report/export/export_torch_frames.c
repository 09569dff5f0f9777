/* Where blocks were allocated, as a snapshot has it. */
#include "export_torch.h"

#include <string.h>

/* A frame's dict, shared. */
static void put_frame(struct exporting *e, const struct walk_frame *f, int chain)
{
    struct snapshot_writer *w = &e->writer;
    uint32_t memo = map_number(&e->frames, (uint64_t)f->address_id, (uint64_t)chain);
    const char *no_file = map_number(&e->unfiled, (uint64_t)f->address_id, 0) == MAP_NONE ? "??" : "";
    char place[64];
    if (memo != MAP_NONE) {
        pickle_put_again(&w->pickle, memo);
        return;
    }
    map_set_number(&e->frames, (uint64_t)f->address_id, (uint64_t)chain, pickle_put_begin(&w->pickle, PICKLE_DICT));
    snapshot_put_word(w, WORD_name);
    snprintf(place, sizeof place, "0x%llx", (unsigned long long)f->offset);
    pickle_put_text(&w->pickle, f->function ? f->function : place);
    snapshot_put_word(w, WORD_filename);
    pickle_put_text(&w->pickle, f->file ? f->file : f->module ? f->module : no_file);
    snapshot_put_item(w, WORD_line, f->line > 0 && f->line < INT32_MAX ? f->line : 0);
    pickle_put_end(&w->pickle, PICKLE_DICT);
}

/* What an import put in the place of an unknown stack is none. */
static int is_unknown(const struct walk_stack *stack)
{
    return stack->count == 1 && !stack->frames[0]->file && !stack->frames[0]->module && stack->frames[0]->function &&
           strcmp(stack->frames[0]->function, "(before the history)") == 0;
}

/* Viewers show a block with the frames of its free once they have gone back over that. */
static void put_freed(struct exporting *e)
{
    struct snapshot_writer *w = &e->writer;
    if (e->freed_memo) {
        pickle_put_again(&w->pickle, e->freed_memo - 1);
        return;
    }
    e->freed_memo = pickle_put_begin(&w->pickle, PICKLE_DICT) + 1;
    snapshot_put_word(w, WORD_name);
    pickle_put_text(&w->pickle, "(where blocks are freed is not recorded; this one was allocated by)");
    snapshot_put_word(w, WORD_filename);
    pickle_put_text(&w->pickle, "memprof");
    snapshot_put_item(w, WORD_line, 0);
    pickle_put_end(&w->pickle, PICKLE_DICT);
}

/* "frames" and the list, shared by all that have this stack. */
static void put_frames(struct exporting *e, int64_t stack_id, int is_free)
{
    struct snapshot_writer *w = &e->writer;
    struct walk_stack stack = {0};
    snapshot_put_word(w, WORD_frames);
    uint32_t memo = map_number(&e->stacks, (uint64_t)stack_id, (uint64_t)is_free);
    if (memo != MAP_NONE) {
        pickle_put_again(&w->pickle, memo);
        return;
    }
    if (stack_id && e->rc == 0)
        e->rc = walk_stack(e->walk, stack_id, &stack, e->err);
    int is_empty = e->rc || !stack.count || is_unknown(&stack);
    memo = is_empty ? pickle_put_empty(&w->pickle, PICKLE_LIST) : pickle_put_begin(&w->pickle, PICKLE_LIST);
    map_set_number(&e->stacks, (uint64_t)stack_id, (uint64_t)is_free, memo);
    if (is_empty)
        return;
    if (is_free)
        put_freed(e);
    for (int i = 0, chain = 0; i < stack.count; i++) {
        chain = i && stack.frames[i]->address_id == stack.frames[i - 1]->address_id ? chain + 1 : 0;
        put_frame(e, stack.frames[i], chain);
    }
    pickle_put_end(&w->pickle, PICKLE_LIST);
}

void torch_frames(struct exporting *e, int64_t stack_id)
{
    put_frames(e, stack_id, 0);
}

void torch_frames_freed(struct exporting *e, int64_t stack_id)
{
    put_frames(e, stack_id, 1);
}
