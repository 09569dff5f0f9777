# How many threads were seen: one that executes another program is the same one after it.
cat >main.c <<'EOF'
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *work(void *arg)
{
    free(malloc(10));
    return arg;
}
static void *idle(void *arg)
{
    return arg;
}
int main(int argc, char **argv)
{
    pthread_t t;
    free(malloc(10));
    if (pthread_create(&t, NULL, work, NULL) || pthread_join(t, NULL) || pthread_create(&t, NULL, idle, NULL) ||
        pthread_join(t, NULL))
        return 1;
    return argc > 1 ? execv(argv[0], (char *[]){argv[0], NULL}) : 0;
}
EOF
"$CC" -g -O1 -fno-builtin -o main main.c -lpthread
record_ok "$PWD/main" again
"$MEMPROF" report out.db >report.txt
# two images of main's thread, and a thread of each; the other one did nothing that is seen
contains "main, and one in each image" report.txt ", 1 process, 3 threads seen, "
"$MEMPROF" info out.db >info.txt
contains "in info" info.txt "Threads: 3 in 4 images"
equal "rows" 4 "$(value "SELECT count(*) FROM thread")"
"$MEMPROF" report out.db --html=page.html >/dev/null
contains "on the page" page.html "1, 3 threads seen"
