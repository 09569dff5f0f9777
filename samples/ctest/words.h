/* The code that is tested: splits a text at its spaces. */
#ifndef WORDS_H
#define WORDS_H

/* The words, NULL behind the last; yours to free with words_free. */
char **words_split(const char *text);
void words_free(char **words);

#endif
