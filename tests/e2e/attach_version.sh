# memprof attach to a process that has the library of another memprof in it: one line that says which, and nothing is
# touched.
need python3 readelf
[ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ] || [ "$(id -u)" = 0 ] ||
    skip "this user may not trace"
. "$ROOT/tests/e2e/attach.inc"

# refused MESSAGE: the library that library.c is was loaded by it before
refused() {
    mkdir -p other
    $CC -shared -fPIC -o other/libmemprof.so library.c
    start_target "$PROGRAMS/attach_life"
    equal "the library" "loaded 100" "$(ask "load $PWD/other/libmemprof.so")"
    slots slots.before >/dev/null
    bad 1 "$target: the library of $1" attach "$target"
    slots slots.after >/dev/null
    cmp slots.before slots.after || fail "slots differ from before"
    end_target good
}
echo 'unsigned long allocate(unsigned n) { return n; }' >library.c
other="is in it already ($PWD/other/libmemprof.so), and stays until it ends; attach"
refused "an older memprof $other"
cat >>library.c <<'END'
struct { unsigned wire; char version[28]; } memprof_hook_version = {1, "0.1.7"};
END
refused "another memprof, 0.1.7 $other"
# one that says to be the same, without what is to be called: at 0 there is nothing
wire=$(sed -n 's/^#define WIRE_VERSION \([0-9]*\)$/\1/p' "$ROOT/profiler/wire.h")
sed -i "s/{1, \"0.1.7\"}/{$wire, \"0.1.8\"}/" library.c
refused "memprof in it ($PWD/other/libmemprof.so) has no memprof_hook_attach, and stays until it ends; start"

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
