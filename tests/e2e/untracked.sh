# Resident memory that was mostly not tracked has a line that says whose it was; what is tracked has none.
cat >touch.c <<'EOF'
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* FILE BYTES: reads a private map of the file, and writes to as much shared memory */
int main(int argc, char **argv)
{
    size_t bytes = 0, sum = 0;
    for (const char *c = argv[2]; *c; c++)
        bytes = bytes * 10 + (size_t)(*c - '0');
    int is_memory = !strcmp(argv[1], "memfd"), fd = is_memory ? memfd_create("touch", 0) : open(argv[1], O_RDONLY);
    if (argc < 3 || (is_memory && ftruncate(fd, (off_t)bytes)))
        return 1;
    char *p = mmap(NULL, bytes, PROT_READ | (is_memory ? PROT_WRITE : 0), is_memory ? MAP_SHARED : MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return 1;
    for (size_t i = 0; i < bytes; i += 4096) {
        if (is_memory)
            p[i] = 1;
        sum += (size_t)p[i];
    }
    usleep(200000); /* looks at the pages come meanwhile */
    return sum == 0 && is_memory;
}
EOF
"$CC" -g -O1 -D_GNU_SOURCE -o touch touch.c
head -c 50331648 /dev/zero >file # not a hole: pages of its own
record_ok ./touch file 50331648
"$MEMPROF" report out.db >file.txt
contains "pages of a file" file.txt ' was not tracked, most of it code and data of files ('
resident=$(value "SELECT resident_bytes FROM v_resident WHERE what = 'file'")
at_least "of which there are 48 MiB" 50331648 "$resident"
# the same figures as in the look's rows
said() { # COLUMN: of the rows' sizes, as the advice prints them
    sed -n "s/^! \\([0-9.]* [KMG]iB\\) of \\([0-9.]* [KMG]iB\\) resident.*files (\\(.*\\)): .*/\\$1/p" file.txt
}
rows() { # WHERE: their sum in MiB, two digits as in the terminal
    # printf's own way with 49.125, which is not SQLite's
    printf '%.2f MiB' "$(value "SELECT printf('%.17g', sum(resident_bytes) / 1048576.0) FROM v_resident WHERE $1")"
}
equal "not tracked" "$(rows "what IN ('file', 'anonymous', 'stack', 'memprof', 'shared')")" "$(said 1)"
equal "of all" "$(rows 1)" "$(said 2)"
equal "of files" "$(rows "what = 'file'")" "$(said 3)"
record_ok ./touch memfd 50331648
"$MEMPROF" report out.db >memfd.txt
lacks "shared memory" memfd.txt 'not tracked'
equal "which is tracked" 50331648 "$(total peak_active_bytes map)"

# Many small processes have the same files' and memprof's own pages: counted once each, nothing of them is a question.
record_ok bash -c 'for i in $(seq 60); do sleep 3 & done; wait'
"$MEMPROF" report out.db >many.txt
at_least "processes in one look" 40 "$(value "SELECT count(*) FROM resident_scan WHERE is_peak")"
at_least "what each counts of files and memprof" $((32 << 20)) \
    "$(value "SELECT sum(resident_bytes) FROM v_resident WHERE what IN ('file', 'memprof')")"
lacks "many small processes" many.txt 'not tracked'
# ... and what one of them has of a file beside these is one
record_ok bash -c 'for i in $(seq 20); do sleep 3 & done; sleep 1; ./touch file 50331648; wait'
"$MEMPROF" report out.db >one.txt
contains "one that reads a file beside them" one.txt ' was not tracked, most of it code and data of files ('
