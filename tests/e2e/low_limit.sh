# A program that limits its own addresses: where it finds no more of them, the report says how many memprof itself has.
cat >low.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
static unsigned long mapped_kib(void)
{
    unsigned long kib = 0;
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmSize: %lu", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib;
}
/* low MIB: prints how much it has mapped, and then asks for more than it may have */
int main(int argc, char **argv)
{
    unsigned long kib = mapped_kib();
    rlim_t limit = (rlim_t)atoi(argv[argc - 1]) << 20;
    if (setrlimit(RLIMIT_AS, &(struct rlimit){limit, limit}))
        return 2;
    printf("%lu\n", kib);
    return malloc(limit - 4096) == NULL;
}
END
$CC -g -O1 -fno-builtin low.c -o low
plain=$(./low 100 || :)
record ./low 100
equal "status" 1 $status
recorded=$(cat run.out)
"$MEMPROF" report out.db >report.txt
contains "the limit" report.txt \
    "under the limit of 100.00 MiB of address space (setrlimit), of which memprof itself has "
said=$(sed -n 's/.*of which memprof itself has \([0-9]*\)\.\([0-9]*\) MiB mapped.*/\1\2/p' report.txt) # hundredths
real=$(((recorded - plain) * 100 / 1024))
echo "  said $said, mapped more than without memprof $real (hundredths of MiB)"
at_most "said and mapped: hundredths of MiB between them" 50 $((said > real ? said - real : real - said))
at_most "which is little: tables and rings for 16 threads" 3300 $real
! command -v python3 >/dev/null || same_findings
# beside a limit that is high it is nothing
record ./low 3000
"$MEMPROF" report out.db >report.txt
contains "a high limit" report.txt "under the limit of 2.93 GiB of address space (setrlimit)."
# a file of before that column
record ./low 100
sqlite3 out.db 'ALTER TABLE address_limit DROP COLUMN own_bytes'
"$MEMPROF" report out.db >older.txt
contains "an older file" older.txt "under the limit of 100.00 MiB of address space (setrlimit)."
