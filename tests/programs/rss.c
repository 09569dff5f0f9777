/* Touches memory for a moment, then lives on without it: rss MIB MILLISECONDS [exec | kill]. Prints what the kernel
 * calls its peak, in KiB. exec: becomes itself with a quarter of it; kill: ends by SIGKILL. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long peak_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "VmHWM: %ld kB", &kib);
    if (f)
        fclose(f);
    return kib;
}

int main(int argc, char **argv)
{
    char size[32];
    size_t bytes = (size_t)atol(argv[1]) << 20;
    char *block = malloc(bytes);
    memset(block, 1, bytes);
    free(block);
    usleep((unsigned)atoi(argv[2]) * 1000u);
    printf("%ld\n", peak_kib());
    fflush(stdout);
    if (argc > 3 && strcmp(argv[3], "exec") == 0) {
        snprintf(size, sizeof size, "%zu", (bytes >> 20) / 4);
        execl(argv[0], argv[0], size, argv[2], NULL);
        return 1;
    }
    if (argc > 3)
        raise(SIGKILL);
    return 0;
}
