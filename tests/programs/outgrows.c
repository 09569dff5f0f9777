/* outgrows COUNT: keeps 1,000 blocks of 100 bytes, lets 1.5 s pass, and then replaces a random one of 500 blocks by one
 * of another size, COUNT times; keeps those, too, and ends with status 6. */
#include <stdlib.h>
#include <unistd.h>

static void *kept[1000], *changing[500];

__attribute__((noinline)) static void keep(void)
{
    for (int i = 0; i < 1000; i++)
        kept[i] = malloc(100);
}

__attribute__((noinline)) static void churn(long count)
{
    unsigned long random = 88172645463325252ul;
    for (long i = 0; i < count; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        void **block = &changing[random % 500];
        free(*block);
        *block = malloc((random >> 20) % 3000);
    }
}

int main(int argc, char **argv)
{
    keep();
    usleep(1500000);
    churn(argc > 1 ? atol(argv[1]) : 0);
    return 6;
}
