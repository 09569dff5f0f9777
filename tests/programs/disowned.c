/* disowned COUNT: says in the shared memory that another program has taken its place, as its own library would after an
 * exec, then goes on: COUNT allocations on each of two threads. Its rings are given back, and nobody reads them. */
#include "../unit/ring_writer.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

static long count;

static void *work(void *unused)
{
    (void)unused;
    for (long i = 0; i < count; i++)
        free(malloc(16));
    return NULL;
}

int main(int argc, char **argv)
{
    count = argc > 1 ? atol(argv[1]) : 1000000;
    int fd = open(getenv(WIRE_ENV_SESSION), O_RDWR);
    struct wire_control *control = mmap(NULL, WIRE_DATA_OFFSET, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || control == MAP_FAILED)
        return 1;
    struct wire_proc *procs = (struct wire_proc *)((char *)control + WIRE_PROCS_OFFSET);
    uint32_t own = WIRE_PROCS; /* the newest: what it was before exec may not be over with yet */
    for (uint32_t i = 0; i < WIRE_PROCS; i++)
        if (procs[i].pid == getpid() && procs[i].state == WIRE_PROC_LIVE &&
            (own == WIRE_PROCS || procs[i].start_stamp > procs[own].start_stamp))
            own = i;
    if (own == WIRE_PROCS)
        return 2;
    writer_claim_slot(control, getpid(), getppid(), WIRE_START_EXEC, 0);
    for (int i = 0; i < 5000 && procs[own].state != WIRE_PROC_FREE; i++)
        usleep(1000);
    if (procs[own].state != WIRE_PROC_FREE)
        return 3;
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL))
        return 4;
    work(NULL);
    pthread_join(thread, NULL);
    return 0;
}
