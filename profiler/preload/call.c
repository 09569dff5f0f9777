#include "call.h"

#include <errno.h>

#define ARGUMENTS_MAX 36 /* of a view of 16 dimensions */

/* Text as it goes into a record. It is put together in the thread's buffer for new stacks: the program's stack may be
 * small. */
struct text {
    uint64_t *words; /* NULL: no buffer, so no text */
    uint32_t bytes;
};
_Static_assert(CALL_TEXT_MAX <= WIRE_STACK_MAX * sizeof(uint64_t), "the buffer's room");

/* After this thread's stack was taken, which uses the same buffer. */
static struct text text_begin(const struct thread *t)
{
    return (struct text){t->unwind ? t->addresses + (t->depth > 1 ? WIRE_STACK_MAX : 0) : NULL, 0};
}

static void add_byte(struct text *t, unsigned char byte)
{
    uint32_t shift = t->bytes % 8 * 8;
    uint64_t *word = &t->words[t->bytes / 8];
    *word = (shift ? *word : 0) | (uint64_t)byte << shift;
    t->bytes++;
}

static void add_wide(struct text *t, const int32_t *wide)
{
    for (; *wide && t->bytes + 4 <= CALL_TEXT_MAX; wide++) {
        uint32_t c = (uint32_t)*wide;
        if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
            c = 0xfffd;
        if (c < 0x80) {
            add_byte(t, (unsigned char)c);
            continue;
        }
        unsigned more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        add_byte(t, (unsigned char)((0xff00 >> (more + 1) & 0xff) | c >> (6 * more)));
        while (more--)
            add_byte(t, (unsigned char)(0x80 | (c >> (6 * more) & 0x3f)));
    }
}

static void add(struct text *t, const struct call_text *part)
{
    if (!t->words)
        return;
    if (part->wide)
        add_wide(t, part->wide);
    for (const char *p = part->bytes; p && *p && t->bytes < CALL_TEXT_MAX; p++)
        add_byte(t, (unsigned char)*p);
}

/* word1 lacks its count of words. */
static void write_record(struct thread *t, uint64_t word1, const uint64_t *arguments, unsigned argument_count,
                         const struct text *text)
{
    unsigned text_words = text ? (text->bytes + 7) / 8 : 0, words = 2 + argument_count + text_words;
    if (!record_room(t, words))
        return;
    uint64_t stamp = record_begin(t), at = record_reserve(t, words);
    record_word(t, at, stamp);
    record_word(t, at + 1, word1 | (uint64_t)words << 32);
    for (unsigned i = 0; i < argument_count; i++)
        record_word(t, at + 2 + i, arguments[i]);
    for (unsigned i = 0; i < text_words; i++)
        record_word(t, at + 2 + argument_count + i, text->words[i]);
    record_end(t);
}

static int is_recorded(void)
{
    return gate.on && sys_getpid() == process.pid;
}

void call_record(struct unwind_state s, unsigned hook, unsigned call, unsigned device, const uint64_t *arguments,
                 unsigned argument_count, const struct call_text *part)
{
    struct thread *t = &self;
    uint64_t words[ARGUMENTS_MAX + 2];
    unsigned n = 0;
    int saved = errno;
    if (!is_recorded())
        return;
    words[n++] = WIRE_CALL_WORD(call, device & 0xff, device >> 8);
    for (unsigned i = 0; i < argument_count && i < ARGUMENTS_MAX; i++)
        words[n++] = arguments[i];
    if (thread_enter(t, s)) {
        uint32_t stack = record_stack(t, s);
        struct text text = text_begin(t);
        if (part) {
            add(&text, part);
            words[n++] = text.bytes;
        }
        write_record(t, (uint64_t)WIRE_CALL << 56 | (uint64_t)hook << 48 | stack, words, n, part ? &text : NULL);
        thread_leave(t);
    }
    errno = saved;
}

void call_mark(struct unwind_state s, enum wire_mark kind, uint64_t id, const struct call_text *parts,
               unsigned part_count)
{
    struct thread *t = &self;
    int saved = errno, has_id = kind == WIRE_MARK_START || kind == WIRE_MARK_END;
    if (!is_recorded())
        return;
    if (thread_enter(t, s)) {
        struct text text = text_begin(t);
        for (unsigned i = 0; i < part_count; i++) {
            if (i && text.words && text.bytes < CALL_TEXT_MAX)
                add_byte(&text, WIRE_MARK_SEPARATOR);
            add(&text, &parts[i]);
        }
        write_record(t, (uint64_t)WIRE_MARK << 56 | (uint64_t)kind << 48 | text.bytes, &id, (unsigned)has_id, &text);
        thread_leave(t);
    }
    errno = saved;
}
