#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int error_set(struct error *err, int code, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        for (char *p = err->text; *p; p++)
            if ((unsigned char)*p < 0x20 || *p == 0x7f)
                *p = '?';
    }
    return -code;
}

_Noreturn void bug_at(const char *file, int line, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "memprof: broken invariant at %s:%d: ", file, line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs("; please report this\n", stderr);
    abort();
}

static void *need(void *p, unsigned long size_bytes)
{
    if (p || size_bytes == 0)
        return p;
    fprintf(stderr, "memprof: out of memory (%lu bytes)\n", size_bytes);
    _exit(1);
}

void *xmalloc(unsigned long size_bytes)
{
    return need(malloc(size_bytes), size_bytes);
}

void *xcalloc(unsigned long count, unsigned long size_bytes)
{
    return need(calloc(count, size_bytes), count ? size_bytes : 0);
}

void *xrealloc(void *p, unsigned long size_bytes)
{
    return need(realloc(p, size_bytes), size_bytes);
}

char *xstrdup(const char *s)
{
    return need(strdup(s), strlen(s) + 1);
}
