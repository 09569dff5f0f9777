/*
 * snapshot_words.h: the texts of which a snapshot is made, by number: the keys first, then the actions. For reading and
 * for writing.
 */
#ifndef MEMPROF_SNAPSHOT_WORDS_H
#define MEMPROF_SNAPSHOT_WORDS_H

#include "../pickle/pickle_write.h"

enum snapshot_word {
#define X(name) WORD_##name,
#include "snapshot_words.def"
#undef X
    WORD_COUNT,
    WORD_KEYS = WORD_alloc
};

enum snapshot_action {
    SNAPSHOT_NO_ACTION, /* one that is not known */
#define X(name) SNAPSHOT_##name,
#include "snapshot_actions.def"
#undef X
    SNAPSHOT_ACTIONS
};

extern const char *const snapshot_words[WORD_COUNT];

/* SNAPSHOT_NO_ACTION has none. */
static inline const char *snapshot_action_name(unsigned action)
{
    return snapshot_words[WORD_KEYS + action - 1];
}

/* A snapshot being written: a word once, then by its number in the pickle's memo. */
struct snapshot_writer {
    struct pickle_writer pickle;
    uint32_t word_memo[WORD_COUNT]; /* number plus 1; 0: not written yet */
};

void snapshot_put_word(struct snapshot_writer *w, enum snapshot_word word);
void snapshot_put_item(struct snapshot_writer *w, enum snapshot_word key, int64_t value);

#endif
