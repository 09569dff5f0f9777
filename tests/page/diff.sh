# The page of two recordings: its rows are those of memprof diff, its flame graph adds up to both totals, hostile text
# stays text, and of very many stacks it says what it left out.
. "$ROOT/tests/page/page.inc"
open_browser

# check_diff NAME OLD NEW [FLAG]...
check_diff() {
    name=$1 old=$2 new=$3
    shift 3
    "$MEMPROF" diff "$old" "$new" --html=page.html >page.out 2>&1 || { cat page.out; fail "no page of $name"; }
    equal "what it says" page.html "$(cat page.out)"
    python3 -S "$ROOT/tests/page/check_diff.py" page.html "$old" "$new" "$name" "$SHOTS" "$@" || fail "page of $name"
}

# three lines inserted above a cache that grows from 10 x 5000 to 10 x 8000 bytes, all live at the peak
cache_sources a.c b.c
for name in a b; do
    "$CC" -g -O0 -o $name $name.c
    "$MEMPROF" run -q -o $name.db -- ./$name
done
check_diff diff-cache a.db b.db --cache

# text of strangers, several devices, a recording that has less
synthetic 40000
mv out.db old.db
synthetic 60000
cp out.db '<img src=x onerror=window.owned=1>.db'
check_diff diff-hostile old.db '<img src=x onerror=window.owned=1>.db' --hostile
check_diff diff-alone old.db a.db

# more stacks than a page shows: both sides leave out the same ones
for count in 10000 10200; do
    "$MEMPROF" run -q -o many$count.db -- "$PROGRAMS/many_stacks" $count >/dev/null
done
check_diff diff-many many10000.db many10200.db --folded

# where it goes
"$MEMPROF" diff a.db b.db --html >said
equal "beside the new one" b-diff.html "$(cat said)"
"$MEMPROF" diff a.db b.db -o - --skip make >stdout.html
contains "what was skipped" stdout.html "have the blocks: make</p>"
equal "on stdout" 1 "$(grep -c '^</html>' stdout.html)"
status=0
"$MEMPROF" diff a.db b.db --html=./a.db 2>err || status=$?
equal "status of a page over a recording" 2 $status
contains "over a recording" err "is the recording itself"
status=0
"$MEMPROF" diff a.db b.db --html --device cuda:7 2>err || status=$?
equal "status of another device" 2 $status
contains "another device" err "no device 'cuda:7'"
