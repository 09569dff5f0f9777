/* impossible [STATUS [US]]: asks for what no machine has, takes less instead, and ends after US microseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) static void *ask(size_t size)
{
    return malloc(size); /* ask */
}

int main(int argc, char **argv)
{
    void *volatile p = ask((size_t)1 << 50);
    void *volatile items = calloc((size_t)argc << 62, 16);
    void *volatile had = p ? NULL : ask(1000);
    free(had);
    if (argc > 2)
        usleep((useconds_t)atoi(argv[2]));
    return p || items || !had ? 99 : argc > 1 ? atoi(argv[1]) : 0;
}
