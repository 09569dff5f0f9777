# A program that is one file under several names (redis-server is a link to redis-check-rdb) has the name that it was
# started by; a link that only leaves out a version has its file's.
need strip
cat >many.c <<'END'
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
void *volatile kept;
__attribute__((noinline)) static void work(int size)
{
    kept = malloc((size_t)size);
}
int main(void)
{
    work(1000);
    if (fork() == 0) {
        work(2000);
        return 0;
    }
    wait(NULL);
    return 0;
}
END
"$CC" -O1 -fno-builtin -o many-check-2.1 many.c
ln -s many-check-2.1 server
ln -s many-check-2.1 many-check
ln -s server again
for name in server again; do
    record_ok ./$name --port 1
    "$MEMPROF" report out.db >report.txt
    contains "$name" report.txt "work      [$name]"
    lacks "$name" report.txt many-check
    equal "$name, and its fork" "$PWD/$name|2" "$(sql "SELECT exe, count(*) FROM process GROUP BY exe")"
    equal "its module" 1 "$(value "SELECT count(DISTINCT path) FROM module WHERE path LIKE '$PWD/%'")"
done
record_ok ./many-check
equal "a version" "$PWD/many-check-2.1" "$(sql "SELECT DISTINCT exe FROM process")"
# called by another name that is no file
record_ok python3 -c 'import os, sys; os.execv("./many-check-2.1", ["other name", "x"])'
equal "a name without a file" 2 "$(value "SELECT count(*) FROM process WHERE exe = '$PWD/many-check-2.1'")"
