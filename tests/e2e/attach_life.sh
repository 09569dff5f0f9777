# memprof attach to a process that changes: threads that begin and end, a library loaded later, a child, its end,
# another program in its place; and what cannot be attached to.
need python3 readelf
[ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ] || [ "$(id -u)" = 0 ] ||
    skip "this user may not trace"
. "$ROOT/tests/e2e/attach.inc"

# 100 blocks of 1,000 to 1,099 bytes from a library that came later, and nothing of its child
start_target "$PROGRAMS/attach_life"
attach_to "$target"
equal "the library" "loaded 104950" "$(ask "load $PROGRAMS/lib_attach_late.so")"
child=$(ask fork | cut -d' ' -f2)
at_least "slots of the process" 6 "$(slots slots.on)"
parent=$target target=$child
equal "slots of its child" 0 "$(slots slots.child)"
kill "$child"
target=$parent
"$MEMPROF" attach "$target" -o other.db >two.out 2>two.err && fail "a second one attached"
contains "the second one" two.err "records it already"
equal "lines that the second one says" 1 "$(wc -l <two.err | tr -d ' ')"
"$MEMPROF" detach "$target"
wait $collector || fail "attach ended with $?"
equal "of the late library" "100|104950" "$(sql "SELECT a.alloc_count || '|' || a.alloc_bytes FROM account a
    JOIN function f ON f.function_id = a.key_id WHERE a.scope = 'function' AND a.inclusive = 0 AND a.kind = 'heap'
    AND f.plain_name = 'allocate' AND a.end_count = 100")"
equal "processes" 1 "$(value "SELECT count(*) FROM process")"
equal "slots after it" 0 "$(slots slots.after)"
end_target good

# its end; ps shows what it has written over its arguments, and nothing behind it
start_target "$PROGRAMS/attach_life" one two three
ask "title alone" >/dev/null
attach_to "$target"
echo end >&9
status=0
wait "$target" || status=$?
equal "the program's status" 7 $status
wait $collector || fail "attach ended with $?"
equal "its arguments" alone "$(sql "SELECT command_line FROM process")"
equal "state, exit status" "complete|7" "$(sql "SELECT value || '|' || exit_status FROM meta, process
    WHERE key = 'state'")"

# another program in its place
start_target "$PROGRAMS/attach_life"
attach_to "$target"
echo "exec $(command -v sleep)" >&9
wait $collector || fail "attach ended with $?"
equal "state, end" "complete|exec" "$(sql "SELECT value || '|' || end_kind FROM meta, process WHERE key = 'state'")"
kill "$target"
wait "$target" || :
exec 9>&-

# its memprof is killed: it goes on, and is put in order and recorded again
start_target "$PROGRAMS/attach" 4 busy
attach_to "$target"
kill -9 $collector
wait $collector 2>/dev/null || :
at_least "slots without a collector" 6 "$(slots slots.on)"
"$MEMPROF" detach "$target" || fail "detach failed"
equal "slots after detach" 0 "$(slots slots.after)"
attach_to "$target"
"$MEMPROF" detach out.db || fail "detach of a file failed"
wait $collector || fail "attach ended with $?"
equal "state" complete "$(sql "SELECT value FROM meta WHERE key = 'state'")"
end_target good

# what cannot be
bad 1 'no such process' attach 4194305
bad 2 'expected the PID' attach x
bad 2 'expected: memprof detach PID|FILE' detach
bad 1 'expected a PID or a recording' detach nowhere.db
bad 1 'its recording has ended' detach out.db
"$MEMPROF" run -q -o run.db sleep 60 &
run=$!
until_true "it is recorded" "$MEMPROF" mark $run begun 2>/dev/null
recorded=$(cat /proc/$run/task/$run/children)
bad 1 'records it already' attach $recorded
bad 1 "only what 'memprof attach' records" detach $recorded
kill $run
wait $run || :
echo 'int main(void) { for (;;) __asm__ volatile("pause"); }' >static.c
if $CC -static -o static static.c 2>/dev/null; then
    ./static &
    bad 1 'statically linked' attach $!
    kill $!
fi
