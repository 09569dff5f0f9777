/*
 * error.h: errors with context. A function that can fail for reasons outside the program returns 0 or a negative errno
 * and, where there is something to tell, fills a struct error once; only cli/ prints it.
 */
#ifndef MEMPROF_ERROR_H
#define MEMPROF_ERROR_H

struct error {
    char text[1024]; /* one line, no newline: names the thing and the next step */
};

/* Fills err (may be NULL), cut at its size; control characters become '?'. Returns -code, so that `return
 * error_set(...)` works. */
int error_set(struct error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A broken invariant of ours: says where and aborts. */
#define bug(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
_Noreturn void bug_at(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A line with the size (0: not known), which the function asked for with out_of_memory_then (NULL: none) ends: it takes
 * no memory and may end the process itself; then exit 1. */
_Noreturn void out_of_memory(unsigned long size_bytes);
void out_of_memory_then(void (*then)(void *arg), void *arg);

/* malloc, calloc, realloc, strdup that do not return NULL but end in out_of_memory. */
void *xmalloc(unsigned long size_bytes);
void *xcalloc(unsigned long count, unsigned long size_bytes);
void *xrealloc(void *p, unsigned long size_bytes);
char *xstrdup(const char *s);
char *xstrdup_if(const char *s); /* NULL for NULL */

#endif
