# Reports on a running file keep the names that they looked up and the cache has no place for: beside it.
need objcopy
cat >work.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
void *kept[10];
void work(int i)
{
    kept[i] = malloc(1000);
}
int main(void)
{
    for (int i = 0; i < 10; i++)
        work(i);
    puts("ready");
    fflush(stdout);
    getchar();
    return 0;
}
END
# no build-id, so the cache has no name for it; its lines are in a file of their own
$CC -g -O0 -Wl,--build-id=none -o work work.c
objcopy --only-keep-debug work work.debug
objcopy --strip-debug --add-gnu-debuglink=work.debug work
cp work.debug whole.debug

mkfifo more
start() {
    : >started
    "$MEMPROF" run -o out.db -- ./work <more >started 2>run.err &
    run=$!
    exec 9>more
    for _ in $(seq 200); do
        grep -q ready started &&
            [ "$(sqlite3 -readonly out.db "SELECT sum(alloc_count) >= 10 FROM site" 2>err)" = 1 ] && return
        sleep 0.1
    done
    cat run.err err
    fail "it does not record"
}
stop() { exec 9>&-; wait $run; }
# The debug file says nothing from now on, and looks as it did.
spoil() {
    dd if=/dev/zero of=work.debug bs="$(wc -c <work.debug)" count=1 conv=notrunc 2>dd.err
    touch -r whole.debug work.debug
}
report() { "$MEMPROF" report out.db --by line >"$1" 2>report.err || { cat report.err; fail "report: status $?"; }; }

touch -r work.debug whole.debug
start
report first
contains "a running file has lines" first 'work.c:7'
equal "kept beside it, for its user alone" "600" "$(stat -c %a out.db-symbols)"
equal "nothing is left of writing it" "out.db-symbols" "$(echo out.db-symbols*)"
spoil
report second
contains "kept names are used" second 'work.c:7'
# What killed reports left goes with the next write (no process has a number of eight digits); what may be somebody
# else's stays.
gone=$(sh -c 'echo $$')
cp out.db-symbols "out.db-symbols.$gone"
head -c 3 out.db-symbols >out.db-symbols.99999990
cp out.db-symbols "out.db-symbols.$$"
echo mine >out.db-symbols.99999991
chmod 600 out.db-symbols.*
cp -p out.db-symbols "out.db-symbols.0$gone"
ln -s out.db-symbols out.db-symbols.99999992
cp out.db-symbols out.db-symbols.99999993 && chmod 640 out.db-symbols.99999993
touch work.debug # which is another one
report third
equal "what stays" "$(printf 'out.db-symbols%s\n' '' ".$$" ".0$gone" .99999991 .99999992 .99999993 | sort)" \
    "$(printf '%s\n' out.db-symbols* | sort)"
rm out.db-symbols.*
lacks "old ones are not" third 'work.c:7'
cp whole.debug work.debug
report fourth
contains "looked up again" fourth 'work.c:7'
for damage in 'echo x >out.db-symbols' 'head -c 100 /dev/zero >out.db-symbols' \
    'rm out.db-symbols; mkdir out.db-symbols' 'rmdir out.db-symbols; ln -s /nowhere/at/all out.db-symbols'; do
    sh -c "$damage"
    report damaged
    contains "$damage" damaged 'work.c:7'
done
stop
equal "gone when the recording is finished" "" "$(ls | grep symbols)"
equal "and the finished file has the lines" 1 "$(value "SELECT count(*) FROM line JOIN file USING(file_id)
    WHERE path LIKE '%/work.c' AND line = 7")"

# of a recording that was replaced nothing is left
cp whole.debug work.debug
start
report live
cp out.db-symbols left
stop
cp left out.db-symbols
start
[ ! -e out.db-symbols ] || fail "the older recording's names are still there"
stop
equal "none of the older one either" "" "$(ls | grep symbols)"
