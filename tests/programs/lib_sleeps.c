/* Preloaded: a file "slept" where anything slept, as SQLite does before it asks for a lock again. */
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

int usleep(useconds_t microseconds)
{
    int fd = open("slept", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    struct timespec t = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};
    return nanosleep(&t, NULL);
}
