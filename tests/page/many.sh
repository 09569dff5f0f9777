# The page of several recordings: its table is that of memprof report, each has its timeline, a click chooses one,
# hostile text stays text, and files that cannot be read are named.
. "$ROOT/tests/page/page.inc"
open_browser

# check_many NAME FLAGS FILE...
check_many() {
    name=$1 flags=$2
    shift 2
    "$MEMPROF" report "$@" --html=page.html >page.out 2>&1 || { cat page.out; fail "no page of $name"; }
    equal "what it says" page.html "$(cat page.out)"
    # shellcheck disable=SC2086
    python3 -S "$ROOT/tests/page/check_many.py" page.html "$name" "$SHOTS" $flags -- "$@" || fail "page of $name"
}

# step N: N times 100,000 bytes, taken and given back step by step
cat >step.c <<'END'
#include <stdlib.h>
#include <unistd.h>
static char *hold(size_t size) {
    char *p = malloc(size);
    p[0] = 1;
    return p;
}
int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 0;
    char *p[100];
    for (int i = 0; i < n; i++) {
        p[i] = hold(100000);
        usleep(2000);
    }
    for (int i = 0; i < n; i++)
        free(p[i]);
}
END
"$CC" -g -O0 -o step step.c
runs=
for rank in 0 1 2 3; do
    RANK=$rank "$MEMPROF" run -q -o 'run.%q{RANK}.db' -- ./step $((rank + 2)) &
    runs="$runs $!"
done
wait $runs
check_many many-ranks --ranks run.0.db run.1.db run.2.db run.3.db

# an imported file that does not know what was reserved: 3 blocks of 16 bytes
printf '%s\n' 'v 10400 3' 'X prog' 'I 1000 64' 's 4 main' 'i 401000 0 1' 't 1 0' 'a 10 1' 'c a' '+ 0' '+ 0' '+ 0' \
    'c 14' '- 0' >three.heaptrack
"$MEMPROF" import -q three.heaptrack -o three.db
check_many many-imported '' three.db run.1.db
contains 'no sum of reserved bytes' page.html '<td>-</td><td>32 B</td>'

# text of strangers, several devices, one without GPUs, one that is empty and one that is cut
synthetic 40000
mv out.db a.db
synthetic 60000
mv out.db '<img src=x onerror=window.owned=1>.db'
: >empty.db
head -c 30000 a.db >'<!--<script>window.owned=1.db'
check_many many-hostile --hostile a.db '<img src=x onerror=window.owned=1>.db' run.1.db empty.db \
    '<!--<script>window.owned=1.db'

# more than are drawn at once
mkdir more
for i in $(seq 200); do ln run.$((i % 4)).db more/x$i.db; done
check_many many-more --more more/*.db

# where it goes
"$MEMPROF" report more/x1.db more/x2.db --html >said
equal "beside the first one" more/many.html "$(cat said)"
"$MEMPROF" report run.0.db run.1.db -o - >stdout.html
equal "on stdout" 1 "$(grep -c '^</html>' stdout.html)"
status=0
"$MEMPROF" report run.0.db run.1.db --html=./run.1.db 2>err || status=$?
equal "status of a page over a recording" 2 $status
contains "over a recording" err "is the recording itself"
"$MEMPROF" report a.db run.1.db -o one.html --device host >said
lacks "one device" one.html 'cuda:0'
