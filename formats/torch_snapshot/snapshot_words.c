#include "snapshot_words.h"

const char *const snapshot_words[WORD_COUNT] = {
#define X(name) #name,
#include "snapshot_words.def"
#undef X
};

void snapshot_put_word(struct snapshot_writer *w, enum snapshot_word word)
{
    if (w->word_memo[word]) {
        pickle_put_again(&w->pickle, w->word_memo[word] - 1);
        return;
    }
    w->word_memo[word] = pickle_put_text(&w->pickle, snapshot_words[word]) + 1;
}

void snapshot_put_item(struct snapshot_writer *w, enum snapshot_word key, int64_t value)
{
    snapshot_put_word(w, key);
    pickle_put_number(&w->pickle, value);
}
