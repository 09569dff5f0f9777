# Children that cannot be recorded are rows of the tree that say why, however short they live and whoever starts them.
cat >small.c <<'EOF'
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void small_work(void)
{
    for (int i = 0; i < 7; i++)
        free(malloc(70));
}
int main(int argc, char **argv)
{
    small_work();
    if (argc > 2)
        usleep((unsigned)atoi(argv[2]) * 1000);
    return argc > 1 ? atoi(argv[1]) : 0;
}
EOF
$CC -g -O1 -fno-builtin small.c -o small
missing() { # the rows that were not recorded: program, status, reason up to its first punctuation
    sql "SELECT replace(exe, '$PWD/', '') || ' ' || coalesce(exit_status, '-') || ' ' ||
        substr(not_recorded, 1, instr(not_recorded || ';', ';') - 1) FROM process WHERE not_recorded IS NOT NULL
        ORDER BY process_id"
}
small_work() { by_function small_work | cut -d'|' -f1,2; }

if $CC -static small.c -o static 2>/dev/null; then
    for how in spawn vfork; do
        record_ok "$PROGRAMS/missing" $how ./static 3
        equal "$how: not recorded" "static 3 statically linked" "$(missing)"
        equal "$how: a child of the first" 1 "$(value "SELECT parent_id FROM process WHERE not_recorded IS NOT NULL")"
    done
    record_ok sh -c './static 4; "$0" 5; (exec ./static 6); env ./static 7; ./static 8 100; ./nowhere; :' ./small
    missing | sort >rows
    printf '%s\n' 'static 4 statically linked' 'static 6 statically linked' 'static 7 statically linked' \
        'static 8 statically linked' | sort | cmp - rows || fail "not recorded: $(cat rows)"
    equal "recorded beside them" "7|490" "$(small_work)"
    equal "ends of those that executed them" 2 \
        "$(value "SELECT count(*) FROM process p JOIN process m ON m.parent_id = p.process_id AND m.pid = p.pid
        WHERE m.not_recorded IS NOT NULL AND p.end_kind = 'exec' AND p.exit_status IS NULL")"
    contains "closing line" run.err "4 programs of its children could not be recorded: 'memprof info out.db' says why"
    "$MEMPROF" report out.db >report.txt
    contains "report" report.txt "(4 not recorded)"
    "$MEMPROF" check out.db --max-peak 100M >check.txt
    contains "what a kept bound says nothing of" check.txt \
        "! 4 processes were not recorded, and in none of these numbers: 'memprof info' says why"
    "$MEMPROF" report out.db --html=page.html >/dev/null
    contains "the page" page.html "(4 not recorded), "
    equal "one count of processes" "$(sed -n 's/.* from [0-9]* of \([0-9]*\) processes .*/\1/p' run.err)" \
        "$(sed -n 's/.* \([0-9]*\) processes (4 not recorded).*/\1/p' report.txt)"
    "$MEMPROF" info out.db >info.txt
    contains "info" info.txt "not recorded (statically linked): $PWD/static"
    equal "info: in the order of their starts" "4 5 6 7 8" \
        "$(awk 'match($0, / exit [4-8] /) { printf "%s%s", n++ ? " " : "", substr($0, RSTART + 6, 1) }' info.txt)"
    "$MEMPROF" info --json out.db >info.json
    contains "json" info.json '"not_recorded": "statically linked'
    record sh -c 'exec ./static 9'
    equal "the first one itself" "9 static 9 statically linked" "$status $(missing)"
    RUN_OPTIONS=--no-follow
    record_ok sh -c './static; :'
    equal "nothing is missing that nobody asked for" "" "$(missing)"
    RUN_OPTIONS=
    # in a directory whose path is longer than what is told of a target, before one of the same name that could be
    long=$PWD/$(printf '%0150d' 0)/$(printf '%0150d' 1)
    mkdir -p "$long" later
    cp static "$long/tool"
    cp small later/tool
    PATH=$long:$PWD/later:$PATH record_ok sh -c 'env tool 3 300; :'
    equal "not the one that comes later" 0 "$(value "SELECT count(*) FROM process WHERE exe LIKE '%/later/tool'")"
    equal "in a long path" 1 \
        "$(value "SELECT count(*) FROM process WHERE not_recorded IS NOT NULL AND exit_status = 3")"
    # what a static program starts hangs below it
    cat >starter.c <<'EOF'
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    if (fork() == 0)
        execl("./small", "small", (char *)0);
    wait(NULL);
    return 0;
}
EOF
    $CC -static starter.c -o starter
    record_ok sh -c './starter; :'
    equal "a child of a static program" "starter" \
        "$(sql "SELECT replace(q.exe, '$PWD/', '') FROM process p JOIN process q ON q.process_id = p.parent_id
        WHERE p.exe LIKE '%/small'")"
fi

loader=/lib64/ld-linux-x86-64.so.2
record_ok sh -c "$loader ./small 0; :"
equal "by the loader: recorded" "7|490" "$(small_work)"
equal "by the loader: its own line" "small.c" \
    "$(sql "SELECT replace(f.path, '$PWD/', '') FROM function n JOIN file f USING(file_id)
    WHERE n.plain_name = 'small_work'")"
record_ok $loader ./small 0
equal "the loader as the program" "7|490" "$(small_work)"

[ "$(id -u)" = 0 ] || skip "the rest is for root: other users, set-user-ID, chroot"
chmod 755 . small
record "$PROGRAMS/missing" drop 65534 "$PWD/small"
equal "drop: status" 0 $status
sound
equal "drop: before" "10|1000" "$(by_function before_work | cut -d'|' -f1,2)"
equal "drop: goes on, in a thread and a child too" "3000|600000" "$(by_function after_work | cut -d'|' -f1,2)"
equal "drop: executed as another user" 1 \
    "$(value "SELECT count(*) FROM process WHERE not_recorded LIKE 'runs as another user%' AND exe LIKE '%/small'")"
cp small raised && chown 65534 raised && chmod 4755 raised
record_ok sh -c './raised; :'
equal "set-user-ID" "raised 0 set-user-ID: the system lets no library be preloaded" "$(missing)"
if command -v setpriv >/dev/null; then
    record sh -c 'setpriv --reuid 65534 --clear-groups ./small; :'
    equal "setpriv" "small - runs as another user or with other rights, without access to the recording" \
        "$(missing | sed 's/small [0-9]*/small -/')"
fi
mkdir -p root/lib64 root/lib/x86_64-linux-gnu
cp small root/ && cp $loader root/lib64/ && cp "$($CC -print-file-name=libc.so.6)" root/lib/x86_64-linux-gnu/
if chroot root /small 2>/dev/null; then
    record_ok sh -c 'chroot root /small 2>chroot.err; :'
    equal "chroot" "/small 0 memprof's library is not there in its root directory" "$(missing)"
    equal "chroot: its stderr" "" "$(cat chroot.err)"
fi

# a new /proc, in which the path of the session is not there; the process that executes it may be gone before it is seen
if unshare --mount-proc --pid --fork true 2>/dev/null; then
    for wait in "" "sleep 0.3;"; do
        record_ok unshare --mount-proc --pid --fork sh -c "$wait exec ./small"
        equal "another /proc" "1 the recording cannot be reached from its root directory or pid namespace" \
            "$(sql "SELECT count(*), not_recorded FROM process WHERE not_recorded IS NOT NULL" | tr '|' ' ')"
    done
    # nor is the end of a child that knows no parent the program's
    record unshare --pid sh -c "/bin/true; exit 5"
    "$MEMPROF" report >report.txt
    contains "a new pid namespace: the program's own end" report.txt "Ended: exit status 5"
    # how it ended its parent tells, though it was another program before it was looked for
    for _ in 1 2 3 4 5; do
        record unshare --mount-proc --pid --fork sh -c "sleep 0.5; exit 4"
        equal "another /proc: its end" "4 exit 4" \
            "$status $(sql "SELECT end_kind || ' ' || exit_status FROM process WHERE not_recorded IS NOT NULL")"
    done
    "$MEMPROF" run -o out.db -- unshare --mount-proc --pid --fork ./small 2>run.err || fail "another /proc: status"
    contains "another /proc: run" run.err "1 program of its children could not be recorded"
    contains "another /proc: run" run.err "'memprof info out.db' says why"
fi
