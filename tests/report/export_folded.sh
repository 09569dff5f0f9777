# Folded stacks: the lines that follow from a sample's source, what the options leave, names that are traps, and what
# flamegraph.pl makes of them. Totals of other programs: export_totals.sh.
. "$ROOT/tests/report/export.inc"
flamegraph=/usr/share/perl5/Devel/NYTProf/flamegraph.pl
[ -f $flamegraph ] || skip "flamegraph.pl (libdevel-nytprof-perl) is not installed"

# sum FILE: of its numbers
sum() { awk '{ n += $NF } END { print n + 0 }' "$1"; }
folded() { "$MEMPROF" export --format folded -o - "$@" 2>err || { cat err; fail "export $*"; }; }

recordings >/dev/null
# from the text of samples/net.c: see there
equal "hidden and output layers of the validation" 544768 \
    "$(folded c.db | grep -E '^main;train;forward;pool_alloc (524288|20480)$' | sum /dev/stdin)"
equal "temporaries of update" 6553600 "$(folded c.db --stat alloc.bytes | grep -F ';update ' | sum /dev/stdin)"
equal "nothing at the end" 0 "$(folded c.db --at end | wc -l)"
equal "skipped: 544,768, and 34,304 of training" 579072 \
    "$(folded c.db --skip pool_alloc | grep '^main;train;forward ' | sum /dev/stdin)"
equal "in one step" "main;train;forward 128 main;train;update 65536" \
    "$(folded c.db --during 'step#90' --stat alloc.bytes | tr '\n' ' ' | sed 's/ $//')"
folded c.db --all-frames >frames
equal "stacks without what calls main" 0 "$(grep -vc '^_start;.*__libc_start.*;main' frames)"
folded cxx.db --stat alloc.bytes >frames
lacks "the allocator family" frames 'operator new'
folded cxx.db --stat alloc.bytes --all-frames >frames
contains "the allocator family" frames 'operator new'
folded python-live.db --python-only --stat alloc.bytes >frames
contains "Python alone" frames '<listcomp>'
lacks "native code in it" frames ';PyObject_'
folded gpu.db --device cuda --kind pool >frames
equal "of a type of device and a kind" 16777216 "$(sum frames)"
equal "at an instant" "$("$MEMPROF" report gawk.db --at 1ms --by device --json | python3 -c \
    'import json, sys; print(sum(r["end_bytes"] for r in json.load(sys.stdin)["rows"]))')" \
    "$(folded gawk.db --at 1ms | sum /dev/stdin)"

hostile trap.db
folded trap.db >trap
equal "lines of traps" "$(folded net.db | wc -l)" "$(wc -l <trap)"
equal "bytes of traps" "$(folded net.db | sum /dev/stdin)" "$(sum trap)"
at_most "the longest name" 9000 "$(wc -L <trap)"
LC_ALL=C grep -q "$(printf '[\001-\011\013-\037]')" trap && fail "control characters in $(cat -v trap)"
contains "a name with separators" trap 'a,b?"c"'
perl $flamegraph --countname=bytes <trap >trap.svg 2>trap.err || fail "flamegraph.pl: $(cat trap.err)"
lacks "lines that it cannot read" trap.err Ignored

bad 2 "--format torch-snapshot does not go with --kind" export net.db --format torch-snapshot --kind heap
bad 2 "--stat own.peak: its values do not add up" export net.db --format folded --stat own.peak
bad 2 "--at says what was live then" export net.db --format folded --at end --stat alloc.bytes
bad 2 "no device 'tpu' in this recording" export net.db --format folded --device tpu -o -
bad 2 "no such function" export net.db --format folded --skip nosuch -o -
bad 2 "--max-events; leave that out" export net.db --format folded --max-events 3
"$MEMPROF" export --stat help >help
contains "statistics" help alloc.bytes
"$MEMPROF" diff net.db net.db --stat alloc.bytes >/dev/null || fail "diff --stat"
bad 2 "--sort and --stat say the same" diff net.db net.db --stat alloc.bytes --sort alloc.bytes
bad 2 "diff: --stat 'alocs'" diff net.db net.db --stat alocs
