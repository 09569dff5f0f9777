# memprof attach to a process that has the library of another memprof in it: one line that says which, and nothing is
# touched.
need python3 readelf
[ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ] || [ "$(id -u)" = 0 ] ||
    skip "this user may not trace"
. "$ROOT/tests/e2e/attach.inc"

# refused TEXT: the library that library.c is was loaded by it before
refused() {
    mkdir -p other
    $CC -shared -fPIC -o other/libmemprof.so library.c
    start_target "$PROGRAMS/attach_life"
    equal "the library" "loaded 100" "$(ask "load $PWD/other/libmemprof.so")"
    slots slots.before >/dev/null
    bad 1 "$target: the library of $1 is in it already ($PWD/other/libmemprof.so), and stays until it ends; attach" \
        attach "$target"
    slots slots.after >/dev/null
    cmp slots.before slots.after || fail "slots differ from before"
    end_target good
}
echo 'unsigned long allocate(unsigned n) { return n; }' >library.c
refused "an older memprof"
cat >>library.c <<'END'
struct { unsigned wire; char version[28]; } memprof_hook_version = {1, "0.1.7"};
END
refused "another memprof, 0.1.7"

# the same memprof's, at another place, does
mkdir -p same
cp "$BUILD/libmemprof.so" same
start_target "$PROGRAMS/attach_life"
ask "load $PWD/same/libmemprof.so" >/dev/null
attach_to "$target"
until_true "something is recorded" has_events
equal "libraries" 1 "$(sed -n 's/.* \(.*libmemprof.so\)$/\1/p' /proc/"$target"/maps | sort -u | grep -c .)"
"$MEMPROF" detach "$target" || fail "detach failed"
wait $collector || fail "attach ended with $?"
end_target good
