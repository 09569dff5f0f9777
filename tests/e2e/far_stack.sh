# A coroutine's stack far below the thread's own, beyond a gap: the way down to the gap is asked of the kernel once, not
# at each allocation.
need strace
record timeout 60 strace -f -qq -c -e trace=rt_sigprocmask -o calls "$PROGRAMS/far_stack"
[ $status != 124 ] || fail "it takes for ever"
[ $status = 0 ] || { cat run.err; skip "strace cannot trace here"; }
sound
for function in far near; do
    equal "$function" "200|10000|200" "$(by_function $function | cut -d'|' -f1-3)"
done
pages=$((48 * 1024 / 4))
at_most "questions to the kernel" $((pages + 1000)) "$(awk '$NF == "rt_sigprocmask" { print $4 }' calls)"
