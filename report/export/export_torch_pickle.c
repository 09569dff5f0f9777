/* Protocol 4: PyTorch's viewer does not read 5. */
#include "../../common/text.h"
#include "export_torch.h"

#include <stdlib.h>
#include <string.h>

#define GROUP 1000 /* items of a list or dict that are added at once, as Python's pickler does */

static const char *const words[WORD_COUNT] = {
#define X(name) #name,
#include "torch_words.def"
#undef X
};

void torch_bytes(struct pickler *p, const void *data, size_t length)
{
    fwrite(data, 1, length, p->out);
}

void torch_op(struct pickler *p, char code)
{
    putc(code, p->out);
}

static void op_number(struct pickler *p, char code, uint64_t number, unsigned size)
{
    char data[9] = {code};
    for (unsigned i = 0; i < size; i++)
        data[1 + i] = (char)(number >> (8 * i));
    torch_bytes(p, data, size + 1);
}

uint32_t torch_memoize(struct pickler *p)
{
    torch_op(p, '\x94');
    return p->memo_count++;
}

static void get(struct pickler *p, uint32_t memo)
{
    if (memo < 256)
        op_number(p, 'h', memo, 1);
    else
        op_number(p, 'j', memo, 4);
}

void torch_number(struct pickler *p, int64_t v)
{
    if (v >= 0 && v < 256) {
        op_number(p, 'K', (uint64_t)v, 1);
    } else if (v >= 0 && v < 65536) {
        op_number(p, 'M', (uint64_t)v, 2);
    } else if (v >= INT32_MIN && v <= INT32_MAX) {
        op_number(p, 'J', (uint64_t)v, 4);
    } else {
        torch_op(p, '\x8a');
        op_number(p, 8, (uint64_t)v, 8);
    }
}

void torch_float(struct pickler *p, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    op_number(p, 'G', __builtin_bswap64(bits), 8);
}

/* Always valid UTF-8, remembered. */
void torch_text(struct pickler *p, const char *text)
{
    buf_reset(&p->text);
    text_clean(&p->text, text);
    size_t length = p->text.length;
    if (length < 256)
        op_number(p, '\x8c', length, 1);
    else
        op_number(p, 'X', length, 4);
    torch_bytes(p, p->text.data, length);
    torch_memoize(p);
}

void torch_word(struct pickler *p, enum word word)
{
    if (p->word_memo[word]) {
        get(p, p->word_memo[word] - 1);
        return;
    }
    torch_text(p, words[word]);
    p->word_memo[word] = p->memo_count;
}

void torch_item(struct pickler *p, enum word key, int64_t value)
{
    torch_word(p, key);
    torch_number(p, value);
}

void torch_begin(struct pickler *p, char container)
{
    torch_op(p, container);
    torch_memoize(p);
    torch_op(p, '(');
}

/* After item number count of a list: the group is full, the next begins. */
void torch_next_item(struct pickler *p, int64_t count)
{
    if (count % GROUP == 0)
        torch_bytes(p, "e(", 2);
}

/* A frame's dict, shared. */
static void put_frame(struct pickler *p, const struct walk_frame *f, int chain)
{
    uint32_t memo = page_map_get(&p->frames, (uint64_t)f->address_id, (uint64_t)chain);
    char place[64];
    if (memo != PAGE_NONE) {
        get(p, memo);
        return;
    }
    torch_op(p, '}');
    page_map_set(&p->frames, (uint64_t)f->address_id, (uint64_t)chain, torch_memoize(p));
    torch_op(p, '(');
    torch_word(p, WORD_name);
    snprintf(place, sizeof place, "0x%llx", (unsigned long long)f->offset);
    torch_text(p, f->function ? f->function : place);
    torch_word(p, WORD_filename);
    torch_text(p, f->file ? f->file : f->module ? f->module : "??");
    torch_item(p, WORD_line, f->line > 0 && f->line < INT32_MAX ? f->line : 0);
    torch_op(p, 'u');
}

/* What an import put in the place of an unknown stack is none. */
static int is_unknown(const struct walk_stack *stack)
{
    return stack->count == 1 && !stack->frames[0]->file && !stack->frames[0]->module && stack->frames[0]->function &&
           strcmp(stack->frames[0]->function, "(before the history)") == 0;
}

/* Viewers show a block with the frames of its free once they have gone back over that. */
static void put_freed(struct pickler *p)
{
    if (p->freed_memo) {
        get(p, p->freed_memo - 1);
        return;
    }
    torch_op(p, '}');
    p->freed_memo = torch_memoize(p) + 1;
    torch_op(p, '(');
    torch_word(p, WORD_name);
    torch_text(p, "(where blocks are freed is not recorded; this one was allocated by)");
    torch_word(p, WORD_filename);
    torch_text(p, "memprof");
    torch_item(p, WORD_line, 0);
    torch_op(p, 'u');
}

/* "frames" and the list, shared by all that have this stack. */
static void put_frames(struct pickler *p, int64_t stack_id, int is_free)
{
    struct walk_stack stack = {0};
    torch_word(p, WORD_frames);
    uint32_t memo = page_map_get(&p->stacks, (uint64_t)stack_id, (uint64_t)is_free);
    if (memo != PAGE_NONE) {
        get(p, memo);
        return;
    }
    torch_op(p, ']');
    page_map_set(&p->stacks, (uint64_t)stack_id, (uint64_t)is_free, torch_memoize(p));
    if (stack_id && p->rc == 0)
        p->rc = walk_stack(p->walk, stack_id, &stack, p->err);
    if (p->rc || !stack.count || is_unknown(&stack))
        return;
    torch_op(p, '(');
    if (is_free)
        put_freed(p);
    for (int i = 0, chain = 0; i < stack.count; i++) {
        chain = i && stack.frames[i]->address_id == stack.frames[i - 1]->address_id ? chain + 1 : 0;
        put_frame(p, stack.frames[i], chain);
    }
    torch_op(p, 'e');
}

void torch_frames(struct pickler *p, int64_t stack_id)
{
    put_frames(p, stack_id, 0);
}

void torch_frames_freed(struct pickler *p, int64_t stack_id)
{
    put_frames(p, stack_id, 1);
}
