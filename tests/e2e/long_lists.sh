# Long lists and long commands: counts have their separators, and a pipe gets no line of a thousand characters.
cat >app.c <<'EOF'
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
void *volatile kept;
__attribute__((noinline)) static int deeper(int n)
{
    kept = malloc(10);
    return n > 1 ? deeper(n - 1) + 1 : 1;
}
int main(void)
{
    char *large = malloc(8 << 20);
    memset(large, 1, 8 << 20);
    if (fork() == 0) {
        memset(large, 2, 8 << 20);
        usleep(100000);
        return 0;
    }
    wait(NULL);
    return deeper(1200) != 1200;
}
EOF
"$CC" -O0 -g -fno-builtin -o app app.c
RUN_OPTIONS='--depth 1024'
long=$(printf '%0600d' 7)
record ./app "$long"
[ $status = 0 ] || fail "exit status $status"
stacks=$(value "SELECT count(*) FROM v_leak WHERE function = 'deeper'")
at_least "stacks" 1000 "$stacks"
all=$(value "SELECT count(*) FROM v_leak")
"$MEMPROF" leaks >leaks.txt
contains "leaks" leaks.txt ", from 1,$(printf '%03d' $((all - 1000))) stacks (20 shown; --top 0 shows all)"
for top in "" "--top 0"; do
    "$MEMPROF" leaks --json $top >leaks.json
    equal "rows of JSON $top" "$([ -z "$top" ] && echo 1000 || echo $all)" "$(grep -c '"stack_id"' leaks.json)"
    contains "all rows $top" leaks.json "\"row_count\": $all"
done
"$MEMPROF" report --by stack --top 5 >by.txt
contains "by stack" by.txt " (5 of 1,$(printf '%03d' $((all - 1000))))"
"$MEMPROF" report --by process --sort resident >process.txt
contains "the forked one" process.txt "Resident memory of forked processes"
at_most "columns of tables" 640 \
    "$(awk '/^Resident memory of forked/ { want = 1 } want { print length($0) }' process.txt | sort -n | tail -n 1)"
contains "what is cut" process.txt "00000..."
