/*
 * lookup.c: prints what symbols_lookup says, a line a frame: address, depth, function, file:line:column. Addresses
 * (hexadecimal, a line each) come from stdin and are looked up as they are. Built and used by compare.sh.
 */
#include "../../profiler/symbols/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: lookup FILE <ADDRESSES\n");
        return 2;
    }
    double start = now_s();
    struct symbols *s = symbols_open(argv[1], NULL);
    double opened = now_s();
    struct symbols_frame frames[SYMBOLS_INLINE_MAX];
    char text[64];
    size_t count = 0, total = 0;
    while (fgets(text, sizeof text, stdin)) {
        unsigned long long address = strtoull(text, NULL, 16);
        int n = symbols_lookup(s, address, frames);
        count++;
        total += (size_t)n;
        for (int i = 0; i < n; i++)
            printf("%llx\t%d\t%s\t%s:%d:%d\n", address, i, frames[i].raw_name ? frames[i].raw_name : "??",
                   frames[i].file ? frames[i].file : "??", frames[i].line, frames[i].column);
        if (n == 0)
            printf("%llx\t0\t??\t??:0:0\n", address);
    }
    fprintf(stderr, "%s: %s, opened in %.3f s, %zu addresses, %zu frames in %.3f s\n", argv[1], symbols_source(s),
            opened - start, count, total, now_s() - opened);
    symbols_close(s);
    return 0;
}
