/* For "ab cde": a list of 5 * 8 bytes, and blocks of 3 and 4. -DWORDS_LEAK forgets the last word. */
#include "words.h"

#include <stdlib.h>
#include <string.h>

char **words_split(const char *text)
{
    size_t count = 0;
    char **words = malloc((strlen(text) / 2 + 2) * sizeof *words);
    while (words && *(text += strspn(text, " "))) {
        size_t length = strcspn(text, " ");
        words[count++] = strndup(text, length);
        text += length;
    }
    if (words)
        words[count] = NULL;
    return words;
}

void words_free(char **words)
{
    for (size_t i = 0; words[i]; i++) {
#ifdef WORDS_LEAK
        if (!words[i + 1])
            break;
#endif
        free(words[i]);
    }
    free(words);
}
