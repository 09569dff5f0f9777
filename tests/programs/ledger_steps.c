/*
 * Allocates as it is told on standard input, a letter and Enter at a time, and prints what it holds then: its ledger.
 * g: grow() takes 10 blocks of 50,000 bytes; f: they are freed, as many; q, or the end: it ends. From the start hold()
 * has 100 blocks of 1,000 bytes and one() has one of 4,096.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *grown[10000], *held[101];
static unsigned grown_count;
static char input[4096], output[4096]; /* so that stdio allocates none */

static void hold(void)
{
    for (int i = 0; i < 100; i++)
        held[i] = memset(malloc(1000), 1, 1000);
}

static void one(void)
{
    held[100] = memset(malloc(4096), 1, 4096);
}

static void grow(void)
{
    for (int i = 0; i < 10 && grown_count < 10000; i++)
        grown[grown_count++] = memset(malloc(50000), 1, 50000);
}

static void shrink(void)
{
    for (int i = 0; i < 10 && grown_count; i++)
        free(grown[--grown_count]);
}

static void print(void)
{
    printf("ledger %u %u\n", 101 + grown_count, 104096 + 50000 * grown_count);
    fflush(stdout);
}

int main(void)
{
    int c;
    setvbuf(stdin, input, _IOFBF, sizeof input);
    setvbuf(stdout, output, _IOFBF, sizeof output);
    hold();
    one();
    print();
    while ((c = getchar()) != EOF && c != 'q') {
        if (c == 'g')
            grow();
        else if (c == 'f')
            shrink();
        if (c != '\n')
            print();
    }
    return 0;
}
