# Programs that can be recorded, but not as what they are executed: each row says which of the system's reasons it was.
cat >small.c <<'END'
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    free(malloc(70));
    usleep(argc > 1 ? (unsigned)atoi(argv[1]) * 1000 : 0);
    return 3;
}
END
$CC -O1 -fno-builtin small.c -o small
why() { sql "SELECT not_recorded FROM process WHERE not_recorded IS NOT NULL AND exe LIKE '%/${1:-small}'"; }
row() { equal "$1: rows" 1 "$(value "SELECT count(*) FROM process WHERE not_recorded IS NOT NULL")"; }
# because WHAT REASON COMMAND...: the program is executed so, in place and in a child, and is gone at once or not
because() {
    what=$1 reason=$2
    shift 2
    for wait in 0 30; do
        record "$@" ./small $wait
        equal "$what: status" 3 $status
        equal "$what" "$reason" "$(why)"
        record sh -c '"$@"; :' sh "$@" ./small $wait
        row "$what, in a child"
        equal "$what, in a child" "$reason" "$(why)"
    done
}

# what a program maps is less than what the recorder does
addresses="its limit of addresses is low: memprof's library found no room (ulimit -v)"
for wait in 0 30; do
    record sh -c 'ulimit -v 20000; exec ./small '$wait
    equal "addresses" "3 $addresses" "$status $(why)"
    record_ok sh -c 'ulimit -v 20000; ./small '$wait'; :'
    equal "addresses, in a child" "$addresses" "$(why)"
done
# nor does its library take the little that the program needs
least=1500
while ! (ulimit -v $least && ./small >/dev/null 2>&1 || [ $? = 3 ]) 2>/dev/null; do
    least=$((least + 250))
done
record sh -c "ulimit -v $least; exec ./small"
equal "as few addresses as the program needs: $least KiB" "3 $addresses" "$status $(why)"
record sh -c 'ulimit -v 400000; exec ./small'
equal "enough of them" "" "$(why)"

# a library that is not there
echo 'int lent(void) { return 0; }' >lent.c
echo 'int lent(void); int main(void) { return lent(); }' >lacking.c
$CC -shared -fPIC lent.c -o liblent.so
$CC lacking.c -o lacking -L. -llent -Wl,-rpath,"$PWD"
rm liblent.so
record sh -c './lacking 2>/dev/null; exec ./lacking 2>/dev/null'
lacking="it ended with status 127 before memprof's library started: a library that it needs may be missing"
equal "a library" "127 $lacking $lacking" "$status $(why lacking | paste -sd' ')"
# nothing is known of one that a library's constructor ends
cat >lent.c <<'END'
#include <unistd.h>
__attribute__((constructor)) static void leave(void)
{
    _exit(5);
}
int lent(void)
{
    return 0;
}
END
$CC -shared -fPIC lent.c -o liblent.so
record sh -c 'exec ./lacking'
equal "nothing is known" "5 memprof's library did not start in it" "$status $(why lacking)"

[ "$(id -u)" = 0 ] || skip "the rest is for root: capabilities, other users"
need setpriv
capabilities="it has fewer capabilities than memprof: the system does not let it at the recording"
because "no capabilities" "$capabilities" setpriv --bounding-set=-all
because "one less" "$capabilities" setpriv --bounding-set=-sys_ptrace
! command -v capsh >/dev/null ||
    because "capsh" "$capabilities" capsh --drop=cap_sys_ptrace,cap_chown --shell=./small --
record setpriv --bounding-set=-chown ./small
equal "one less, but that one matters to nobody who may trace all" "3 " "$status $(why)"
because "another real user" "its real and effective user or group differ: the system lets no library be preloaded" \
    setpriv --ruid 65534
# what its file says is worse
if $CC -static small.c -o static 2>/dev/null; then
    record setpriv --bounding-set=-all ./static
    equal "static as well" "statically linked; the library cannot be loaded into it" "$(why static)"
fi
