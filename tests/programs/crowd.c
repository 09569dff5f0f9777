/* crowd COUNT LATE CHILDREN: so many children live at once; each of the last LATE ones makes CHILDREN of its own. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int count = atoi(argv[1]), late = atoi(argv[2]), children = atoi(argv[argc - 1]), all[2];
    char byte;
    if (pipe(all))
        return 1;
    for (int i = 0; i < count; i++) {
        if (fork())
            continue;
        close(all[1]);
        free(malloc(5));
        for (int k = 0; i >= count - late && k < children; k++)
            if (fork() == 0) {
                free(malloc(6));
                _exit(0);
            }
        while (wait(NULL) > 0)
            ;
        _exit(read(all[0], &byte, 1) != 0); /* until all were made */
    }
    sleep(1);
    close(all[1]);
    while (wait(NULL) > 0)
        ;
    return 0;
}
