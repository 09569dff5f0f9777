#include "record_parts.h"

/* Word `at` of the parts one after the other. */
static uint64_t word_at(const struct record_part *parts, unsigned count, uint64_t at)
{
    uint64_t word = 0;
    for (unsigned i = 0; i < count; i++) {
        uint64_t words = record_part_words(parts[i].bytes);
        if (at >= words) {
            at -= words;
            continue;
        }
        for (uint64_t k = at * 8; k < at * 8 + 8 && k < parts[i].bytes; k++)
            word |= (uint64_t)parts[i].data[k] << (8 * (k & 7));
        break;
    }
    return word;
}

int record_parts(struct thread *t, uint64_t kind, uint32_t number, const struct record_part *parts, unsigned count)
{
    uint64_t words = 0;
    for (unsigned i = 0; i < count; i++)
        words += record_part_words(parts[i].bytes);
    for (uint64_t before = 0; before < words;) {
        unsigned part = words - before < WIRE_CODE_PART ? (unsigned)(words - before) : WIRE_CODE_PART;
        if (!record_room(t, part + 3))
            return 0;
        uint64_t stamp = record_begin(t);
        uint64_t at = record_reserve(t, part + 3);
        record_word(t, at, stamp);
        record_word(t, at + 1, kind << 56 | (uint64_t)(part + 3) << 32 | number);
        record_word(t, at + 2, before << 32 | words);
        for (unsigned i = 0; i < part; i++)
            record_word(t, at + 3 + i, word_at(parts, count, before + i));
        record_end(t);
        before += part;
    }
    return 1;
}
