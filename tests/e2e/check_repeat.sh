# memprof check --repeat: a program whose runs differ by what a file says. Run i allocates i times 1,000 bytes.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/report/junit.inc"
cat >runs.c <<'END'
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
static char *hold(size_t size) { return calloc(1, size); }
int main(int argc, char **argv) {
    char digit = '0', input[8];
    int fd = open("count", O_RDWR | O_CREAT, 0600);
    if (read(fd, &digit, 1) < 0)
        return 9;
    digit++;
    if (pwrite(fd, &digit, 1, 0) < 1)
        return 9;
    char *p = hold((digit - '0') * 1000u);
    free(p);
    if (argc > 2) /* what a run reads it holds at the end */
        hold(100 * (1 + (size_t)read(0, input, sizeof input)));
    if (argc > 1 && argv[1][0] == digit && argv[1][1])
        abort();
    return argc > 1 && *argv[1] == digit ? 7 : 0;
}
END
"$CC" -g -O0 -o runs runs.c
# check STATUS ARGUMENTS...: its text in got
check() {
    want=$1 status=0
    shift
    rm -f count ./*.db
    "$MEMPROF" check "$@" >got 2>got.err || status=$?
    [ "$want" = $status ] || { cat got got.err; fail "check $*: status $want expected, not $status"; }
}
check 0 --repeat 3 -q --max-peak 3000 --max-allocs 1 --max-leak 0 -- ./runs
cat got
contains 'spread' got '2.93 KiB (3,000)  at most 2.93 KiB; 1,000 to 3,000 in 3 runs'
contains 'no spread' got 'at most 1; the same in 3 runs'
equal 'recordings' 'out-1.db out-2.db out-3.db' "$(echo *.db)"
for i in 1 2 3; do
    equal "run $i" ${i}000 "$(DB=out-$i.db value "SELECT peak_active_bytes FROM v_total WHERE kind = 'all'")"
done
# any run that breaks it does; what is shown is that of the worst
check 1 --repeat 3 -q --max-peak 1500 --max-line hold=2999 -o kept.db -- ./runs
contains 'broken in some' got ': 1,500 B more; 1,000 to 3,000 in 3 runs, broken in 2, most in run 3'
contains 'in one' got ': 1 B more; 1,000 to 3,000 in 3 runs, broken in 1, most in run 3'
contains 'its stack' got '  2.93 KiB  hold  '
equal 'recordings with -o' 'kept-1.db kept-2.db kept-3.db' "$(echo *.db)"
check 1 --repeat 3 -q --max-peak 1500 --junit junit.xml --json -- ./runs
equal 'JSON' '3|broken|3000|3|1000|3000|3|2' "$(sqlite3 :memory: "SELECT j ->> '$.runs', j ->> '$.rules[0].verdict',
    j ->> '$.rules[0].measured', j ->> '$.rules[0].run', j ->> '$.rules[0].least', j ->> '$.rules[0].most',
    j ->> '$.rules[0].known_runs', j ->> '$.rules[0].broken_runs' FROM (SELECT CAST(readfile('got') AS TEXT) j)")"
valid junit.xml
contains 'JUnit' junit.xml 'broken in 2, most in run 3'
# the program's own failing status wins, and no further run is made
check 7 --repeat 3 -q --max-peak 1500 -- ./runs 2
equal 'recordings until it failed' 'out-1.db out-2.db' "$(echo *.db)"
contains 'verdicts all the same' got '1,000 to 2,000 in 2 runs, broken in 1'
contains 'why the status is none of ours' got 'The program ended with exit status 7 in run 2 of 3.'
check 7 -q --max-peak 3000 --junit junit.xml --github -- ./runs 1
contains 'in an annotation' got '::error title=memprof%3A program::The program ended with exit status 7'
valid junit.xml
equal 'as an error' 'The program ended with exit status 7 failed' \
    "$(xmllint --xpath 'concat(//testcase[@name="program"]/error/@message, " ", //error/@type)' junit.xml)"
check 7 -q --max-peak 3000 --json -- ./runs 1
equal 'in JSON' 'The program ended with exit status 7|1' "$(sqlite3 :memory: "SELECT j ->> '$.failed',
    j ->> '$.killed' IS NULL FROM (SELECT CAST(readfile('got') AS TEXT) j)")"
# a program that a signal ended is said to be, and is an error where a machine reads
check 134 --repeat 3 -q --max-peak 3000 --junit junit.xml -- ./runs 2a
contains 'killed' got 'The program was killed by signal 6 (Aborted) in run 2 of 3.'
contains 'the rules all the same' got '1 rule: 1 kept, 0 broken.'
check 134 -q --max-peak 3000 --github -- ./runs 1a
contains 'its annotation' got '::error title=memprof%3A program::The program was killed by signal 6 (Aborted)'
valid junit.xml
equal 'an error' '2 0 1' "$(xmllint --xpath 'concat(//testsuite/@tests, " ", //testsuite/@failures, " ",
    //testsuite/@errors)' junit.xml)"
equal 'which one' 'The program was killed by signal 6 (Aborted) in run 2 of 3' \
    "$(xmllint --xpath 'string(//testcase[@name="program"]/error/@message)' junit.xml)"
check 134 -q --max-peak 3000 --json -- ./runs 1a
equal 'in JSON' 'The program was killed by signal 6 (Aborted)' \
    "$(sqlite3 :memory: "SELECT CAST(readfile('got') AS TEXT) ->> '$.killed'")"
check 0 -q --max-peak 3000 --json --junit junit.xml -- ./runs
equal 'none' 1 "$(sqlite3 :memory: "SELECT CAST(readfile('got') AS TEXT) ->> '$.killed' IS NULL")"
equal 'no error' '1 0' "$(xmllint --xpath 'concat(//testsuite/@tests, " ", //testsuite/@errors)' junit.xml)"
# the most of each is a budget that holds for all
check 0 --repeat 3 -q --write-baseline budget.txt -- ./runs
for line in 'max-peak host=3000  # 2.93 KiB' 'max-allocs host=1' 'max-line runs.c:hold=3000  # 2.93 KiB' \
    '# The most of 3 runs.'; do
    grep -qxF -- "$line" budget.txt || { cat budget.txt; fail "no line '$line'"; }
done
equal 'each once' 1 "$(grep -c '^max-peak' budget.txt)"
check 0 --repeat 3 -q --rules budget.txt -- ./runs
# each run reads the same file
printf 1234567 >input
check 0 --repeat 2 -q --max-leak 800 -- ./runs 9 input <input
contains 'both read it' got 'at most 800 B; the same in 2 runs'
# one run is as without it
check 0 --repeat 1 -q --max-peak 1000 -- ./runs
equal 'one recording' out.db "$(echo *.db)"
lacks 'one run' got 'runs'
check 2 --repeat 0 --max-peak 1 -- ./runs
check 2 --repeat 101 --max-peak 1 -- ./runs
check 2 --repeat 2 --max-peak 1
contains 'without a program' got.err '--repeat belongs to a program that is run'
