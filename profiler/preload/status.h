/*
 * status.h: a number of /proc/self/status, whose lines are "Name:\t12\t34".
 */
#ifndef MEMPROF_PRELOAD_STATUS_H
#define MEMPROF_PRELOAD_STATUS_H

#include <stdint.h>

/* Behind "\nName:"; NULL: there is no such line. text ends with a NUL. */
static inline const char *status_line(const char *text, const char *name)
{
    for (; *text; text++) {
        unsigned k = 0;
        while (name[k] && text[k] == name[k])
            k++;
        if (!name[k])
            return text + k;
    }
    return 0;
}

static inline unsigned status_digit(char c)
{
    return c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

/* The next number of the line, behind which it then is. */
static inline uint64_t status_number(const char **line, unsigned base)
{
    uint64_t number = 0;
    const char *p = *line;
    while (*p == ' ' || *p == '\t')
        p++;
    for (; status_digit(*p) < base; p++)
        number = number * base + status_digit(*p);
    *line = p;
    return number;
}

#endif
