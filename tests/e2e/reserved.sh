# What the heap reserved at most is sampled, and the table says so; other kinds are exact. At the end all is the heap
# where there is nothing else.
cat >two.c <<'EOF'
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* 20 MiB of blocks, of which every 64th stays, and with an argument a map; with "fork" a child's heap, too */
static char *blocks[20480];

int main(int argc, char **argv)
{
    if (argc > 1 && !mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
        return 1;
    for (int i = 0; i < 20480; i++)
        memset(blocks[i] = malloc(1000), 1, 1000);
    for (int i = 0; i < 20480; i++)
        if (i % 64)
            free(blocks[i]);
    if (argc > 1 && !strcmp(argv[1], "fork") && fork() == 0) {
        for (int i = 0; i < 10240; i++)
            memset(malloc(4000), 1, 4000);
        usleep(50000);
        free(malloc(10));
        _exit(0);
    }
    usleep(1500000); /* for more than a tenth of the run, and a second */
    free(malloc(10));
    wait(NULL);
    return 0;
}
EOF
"$CC" -g -O1 -fno-builtin -o two two.c
row() { "$MEMPROF" report out.db | sed -n "s/^host *$1 .*%  *[0-9.]* [KM]iB  *\(>= \|~ \)*[0-9.]* [KM]iB .*/\1/p"; }
record_ok ./two
equal "of one process the least" ">= |>= " "$(row all)|$(row heap)"
"$MEMPROF" report out.db >report.txt
# twice: of the heap, and of all, which is the heap alone
equal "reserved at the end" 1 "$(grep -c 'reserved *at end' report.txt)"
end=$("$MEMPROF" report out.db --json | grep -o '"heap_end_reserved_bytes": [0-9][0-9]*' |
    sort | uniq -c | awk '{ print $1 }')
equal "for programs" 2 "$end"
lacks "programs get numbers" report.txt '">='
record_ok ./two map
equal "a map is exact" ">= |>= |" "$(row all)|$(row heap)|$(row map)"
end=$("$MEMPROF" report out.db --json | grep -o '"heap_end_reserved_bytes": [0-9][0-9]*' | wc -l)
equal "what else was reserved at the end is not known" 1 "$end"
record_ok ./two fork
equal "of several about" "~ |~ |" "$(row all)|$(row heap)|$(row map)"
record_ok ./two
"$MEMPROF" lines out.db >lines.txt
contains "by line" lines.txt "(device reserved of the host: at least, as its heap is sampled"
RUN_OPTIONS=--no-heap-sample
record_ok ./two
"$MEMPROF" lines out.db >lines.txt
lacks "by line, without samples" lines.txt "(device reserved of the host"
equal "without samples" "|" "$(row all)|$(row heap)"
