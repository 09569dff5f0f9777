# samples/ctest: a unit test with cmocka that bounds what a scope allocates, and ctest with memprof check as the test's
# command. Alone, with memprof, and with a planted leak.
. "$ROOT/tests/lib.sh"
printf '#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <cmocka.h>\n' >c.c
"$CC" -fsyntax-only c.c 2>/dev/null || skip 'cmocka is not installed'
cp -r "$ROOT/samples/ctest" words
build() { "$CC" -std=gnu17 -Wall -Wextra -Werror -g -I"$ROOT/include" "$@" words/test_words.c words/words.c -lcmocka; }
build -o plain
build -DWORDS_LEAK -o leaky
"$MEMPROF" run -q ./plain >got 2>&1 || { cat got; fail 'the test fails with memprof'; }
contains 'nothing is skipped' got '2 test(s)'
contains 'nothing is skipped' got '[  PASSED  ] 2'
for program in plain leaky; do # alone nothing is known, and no test fails
    "./$program" >got 2>&1 || { cat got; fail "$program fails alone"; }
    contains 'what needs memprof' got '[  SKIPPED ] 1'
done
status=0
"$MEMPROF" run -q ./leaky >got 2>&1 || status=$?
equal 'status of a leak' 1 $status
contains 'the test that found it' got '[  FAILED  ] leaves_nothing'
contains 'the last word, "cde" and its 0' got '0x4 != 0'
# the rules find it, too, where the program's own tests do not look
status=0
"$MEMPROF" check -q --rules words/budget.txt -- ./leaky >got 2>&1 || status=$?
equal 'the program'"'"'s own status' 1 $status
contains 'the rule' got 'broken  max-leak host'

command -v ctest >/dev/null || { echo 'ctest (cmake) is not installed: not tried'; exit 0; }
run_ctest() {
    cmake -S words -B "$1" -DMEMPROF_INCLUDE="$ROOT/include" -DMEMPROF="$MEMPROF" -DCMAKE_C_COMPILER="$CC" \
        -DCMAKE_C_FLAGS="$2" >cmake.log 2>&1 && cmake --build "$1" >>cmake.log 2>&1 || { cat cmake.log; fail cmake; }
    ctest --test-dir "$1" --output-on-failure
}
run_ctest sound '' >got 2>&1 || { cat got; fail 'ctest'; }
contains 'both' got '100% tests passed, 0 tests failed out of 2'
[ -f sound/memory.xml ] || fail 'no JUnit'
status=0
run_ctest leaking -DWORDS_LEAK >got 2>&1 || status=$?
[ $status != 0 ] || { cat got; fail 'ctest does not see the leak'; }
contains 'one fails' got '1 tests failed out of 2'
contains 'which' got 'words-memory (Failed)'
contains 'why' got 'broken  max-leak host'
