/* What memprof.h says of code that no file has: its text, in parts, for the recording's file.source. */
#include "record.h"

#include <errno.h>

static uint64_t said_bytes; /* so far, of this process and what it was forked from */
static uint32_t said_count;

struct stream { /* lengths, then name and text, each padded to words */
    const unsigned char *name, *text;
    uint64_t name_bytes, text_bytes;
};

static uint64_t words_of(uint64_t bytes)
{
    return (bytes + 7) / 8;
}

static uint64_t word_of(const unsigned char *data, uint64_t bytes, uint64_t at)
{
    uint64_t word = 0;
    for (uint64_t k = at * 8; k < at * 8 + 8 && k < bytes; k++)
        word |= (uint64_t)data[k] << (8 * (k & 7));
    return word;
}

static uint64_t stream_word(const struct stream *s, uint64_t at)
{
    uint64_t name_words = words_of(s->name_bytes);
    if (at == 0)
        return s->name_bytes << 32 | s->text_bytes;
    at--;
    return at < name_words ? word_of(s->name, s->name_bytes, at) : word_of(s->text, s->text_bytes, at - name_words);
}

/* 0: no room. */
static int write_stream(struct thread *t, const struct stream *s)
{
    const uint64_t words = 1 + words_of(s->name_bytes) + words_of(s->text_bytes);
    const uint32_t number = __atomic_add_fetch(&said_count, 1, __ATOMIC_RELAXED);
    for (uint64_t before = 0; before < words;) {
        unsigned part = words - before < WIRE_CODE_PART ? (unsigned)(words - before) : WIRE_CODE_PART;
        if (!record_room(t, part + 3))
            return 0;
        uint64_t stamp = record_begin(t);
        uint64_t at = record_reserve(t, part + 3);
        record_word(t, at, stamp);
        record_word(t, at + 1, (uint64_t)WIRE_SOURCE << 56 | (uint64_t)(part + 3) << 32 | number);
        record_word(t, at + 2, before << 32 | words);
        for (unsigned i = 0; i < part; i++)
            record_word(t, at + 3 + i, stream_word(s, before + i));
        record_end(t);
        before += part;
    }
    return 1;
}

/* Whether there is room for so many bytes more of what a process may say. */
static int take(uint64_t bytes)
{
    uint64_t before = __atomic_load_n(&said_bytes, __ATOMIC_RELAXED);
    do {
        if (bytes > WIRE_SOURCE_BYTES_MAX - before)
            return 0;
    } while (!__atomic_compare_exchange_n(&said_bytes, &before, before + bytes, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return 1;
}

EXPORT int memprof_hook_source(const char *name, const char *text, size_t bytes);
EXPORT int memprof_hook_source(const char *name, const char *text, size_t bytes)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    struct thread *t = &self;
    struct stream stream = {(const unsigned char *)name, (const unsigned char *)text, 0, bytes};
    int saved = errno, is_said = 0;
    if (!name || !*name || !text || !gate.on || sys_getpid() != process.pid)
        return -1;
    while (name[stream.name_bytes])
        stream.name_bytes++;
    if (stream.name_bytes > WIRE_CODE_TEXT_MAX || bytes > WIRE_SOURCE_BYTES_MAX || !take(stream.name_bytes + bytes))
        return -1;
    if (thread_enter(t, s)) {
        is_said = write_stream(t, &stream);
        thread_leave(t);
    }
    errno = saved;
    return is_said ? 0 : -1;
}
