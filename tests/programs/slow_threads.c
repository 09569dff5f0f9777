/* slow_threads COUNT: takes COUNT rings of the recording's as threads do, and leaves them at that, as threads that were
 * held up right there. Then 10 children, one after the other, with rings behind these: each allocates 20 blocks of 30
 * bytes in `child_work`, frees half of them and ends with 7. */
#include "../unit/ring_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

static __attribute__((noinline)) void child_work(void)
{
    for (int i = 0; i < 20; i++) {
        void *p = malloc(30);
        if (i % 2)
            free(p);
    }
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 300, fd = open(getenv(WIRE_ENV_SESSION), O_RDWR);
    struct wire_control *control = mmap(NULL, WIRE_DATA_OFFSET, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct writer w;
    if (fd < 0 || control == MAP_FAILED)
        return 1;
    for (int i = 0; i < count; i++)
        if (writer_take(&w, control))
            return 2;
    for (int i = 0; i < 10; i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            child_work();
            _exit(7);
        }
        if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
            return 3;
    }
    return 0;
}
