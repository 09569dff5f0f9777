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

static void (*when_out_of_memory)(void *arg);
static void *when_out_of_memory_arg;

void out_of_memory_then(void (*then)(void *arg), void *arg)
{
    when_out_of_memory_arg = arg;
    __atomic_store_n(&when_out_of_memory, then, __ATOMIC_RELEASE);
}

_Noreturn void out_of_memory(unsigned long size_bytes)
{
    static int is_ending;
    static __thread int is_ending_here;
    if (is_ending_here) /* what was to end the process needed memory, too */
        _exit(1);
    is_ending_here = 1;
    while (__atomic_exchange_n(&is_ending, 1, __ATOMIC_ACQ_REL))
        pause(); /* another thread came first, and ends the process */
    void (*then)(void *) = __atomic_load_n(&when_out_of_memory, __ATOMIC_ACQUIRE);
    const char *end = then ? "; " : "\n";
    if (size_bytes)
        fprintf(stderr, "memprof: out of memory (%lu bytes)%s", size_bytes, end);
    else
        fprintf(stderr, "memprof: out of memory%s", end);
    if (then)
        then(when_out_of_memory_arg);
    _exit(1);
}

static void *need(void *p, unsigned long size_bytes)
{
    if (!p && size_bytes)
        out_of_memory(size_bytes);
    return p;
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

char *xstrdup_if(const char *s)
{
    return s ? xstrdup(s) : NULL;
}
