# The runner itself: what fails once passes the second time and is said; what fails twice, crashes or hangs has failed;
# more than SHAKY_MOST fail the run.
unset BROWSERS BROWSERS_OF SECOND AGAIN SHAKY_MOST TEST_TIMEOUT KEEP CHANGED_ONLY # those of this run
mkdir b t
shaky() { echo '[ -f ../../ran-'"$1"' ] && exit 0; : >../../ran-'"$1"'; echo first of '"$1"'; exit 1' >"t/$1.sh"; }
shaky one
shaky two
echo 'exit 0' >t/good.sh
echo 'echo twice; exit 1' >t/bad.sh
echo '[ -f ../../crashed ] && exit 0; : >../../crashed; echo Segmentation fault; exit 1' >t/crash.sh
# run NAME...: these tests; leaves its status and out.txt
run() {
    [ "$1" = unit ] || set -- $(printf "$PWD/t/%s.sh " "$@")
    status=0
    rm -f b/test-work/ran-*
    BUILD=$PWD/b JOBS=2 sh "$ROOT/tests/run.sh" "$@" >out.txt 2>&1 || status=$?
}
run good one two
equal 'two of three shaky' 0 $status
contains 'two of three shaky' out.txt '3 passed, 0 failed, 0 skipped'
contains 'two of three shaky' out.txt '      | first of one'
equal 'named' 't/one t/two' "$(sed -n 's/^passed the second time alone: //p' out.txt | xargs -n 1 | sort | xargs)"
SHAKY_MOST=1
export SHAKY_MOST
run good one two
equal 'more than one' 1 $status
contains 'more than one' out.txt 'failed: more than 1 shaky ones'
SHAKY_MOST=0
run good one
equal 'none may be' 1 $status
contains 'none may be' out.txt '1 passed, 1 failed, 0 skipped'
unset SHAKY_MOST
run good bad
equal 'twice' 1 $status
contains 'twice' out.txt '1 passed, 1 failed, 0 skipped'
run good crash
equal 'a crash' 1 $status
contains 'a crash' out.txt '1 passed, 1 failed, 0 skipped'
# a unit test that says this line, and leaks; only the first time
mkdir -p b/unit
for said in '  FAILED  ' '       OK '; do
    {
        echo '#!/bin/sh'
        echo "[ ! -f '$PWD/b/test-work/ran-leak' ] || { echo '[       OK ] one'; exit 0; }"
        echo ": >'$PWD/b/test-work/ran-leak'; echo '[$said] one'"
        echo "echo '==1==ERROR: LeakSanitizer: detected memory leaks'"
        echo "echo 'SUMMARY: AddressSanitizer: 10 byte(s) leaked in 1 allocation(s).'; exit 1"
    } >b/unit/test_account
    chmod +x b/unit/test_account
    run unit
    case $said in
    *OK*) equal 'a leak' 1 $status ;;
    *) equal 'a failed case that leaks' 0 $status ;;
    esac
done
# one that passed is not run again where only what changed is asked for, until its program is another
printf '#!/bin/sh\necho run >>"%s/runs"\necho "[       OK ] one"\n' "$PWD" >b/unit/test_account
run_changed() { CHANGED_ONLY=1 run unit; }
again='not run again, as their programs are those that passed: 1 unit tests'
sleep 0.05
run_changed
lacks 'first' out.txt 'not run again'
run_changed
contains 'unchanged' out.txt "$again"
contains 'unchanged' out.txt '1 passed, 0 failed, 0 skipped'
equal 'unchanged' 1 "$(wc -l <runs)"
run unit
equal 'all are asked for' 2 "$(wc -l <runs)"
sleep 0.05
touch b/unit/test_account
run_changed
equal 'changed' 3 "$(wc -l <runs)"
printf '#!/bin/sh\necho "[  FAILED  ] one"\nexit 1\n' >b/unit/test_account
run unit
equal 'fails' 1 $status
run_changed
equal 'failed before' 1 $status
lacks 'failed before' out.txt 'not run again'
