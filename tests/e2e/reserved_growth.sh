# The column reserved.growth: what the segments of a line grew, in windows and over the run, on a running recording and
# afterwards, as the program's own ledger has it; PyTorch's caching allocator (a stand-in) in both its ways; what is not
# known of the host, of pools and of one kind.
. "$ROOT/tests/cuda/lib.sh"
need python3
python=$(python3 -c 'import sys; print(sys.executable)')
export PYTHONDONTWRITEBYTECODE=1
RUN_OPTIONS=--python-module
record_ok "$python" "$ROOT/tests/programs/python_reserved.py" rows.json ledger.json
grown() { "$MEMPROF" lines --func step --columns reserved.growth --device cuda:0 --json "$@"; }
grown >all
for window in first second third; do grown --during $window >$window; done
"$python" - <<'END' || fail 'the ledger'
import json
ledger, live = json.load(open('ledger.json')), json.load(open('rows.json'))
MIB = 1 << 20
named = {name: {int(line): size for line, size in lines.items() if size} for name, lines in ledger.items()}
first = min(named['before'])  # the line of step that takes 2 MiB; the next ones 3 MiB, and 5, 5 and 7
want = {'before': {0: 2, 1: 3, 2: 17}, 'first': {1: 3}, 'second': {1: 3}, 'third': {0: -2, 1: -3, 2: -17},
        'all': {1: 6}}
want = {name: {first + line: size * MIB for line, size in lines.items()} for name, lines in want.items()}
assert named == want, named
for name in 'all', 'first', 'second', 'third':
    rows = {row['line']: row['reserved_growth_bytes'] for row in json.load(open(name))['lines']}
    assert {line: size for line, size in rows.items() if size} == named[name], (name, rows, named[name])
    if name in live:
        assert {int(line): size for line, size in live[name].items()} == rows, (name, live[name], rows)
END
"$MEMPROF" lines --func step --columns reserved.growth,free.count --device cuda:0 --during third >third.txt
contains 'a line without a block' third.txt '-17.00M'
"$MEMPROF" lines --func step --columns reserved.growth --kind sub --device cuda:0 >kind.txt
contains 'of one kind' kind.txt 'reserved growth -: known'
"$MEMPROF" lines --func step --columns alloc.bytes --device cuda:0 >without.txt
! grep -q 'reserved growth' without.txt || fail 'said where nobody asked'
"$MEMPROF" lines --func take --columns reserved.growth,alloc.bytes --device host >host.txt
contains 'of the host' host.txt 'reserved growth -: known'

# PyTorch's: nothing is given back, so the lines of a function that does it all have what it counted
export SIM_CUDA_DEVICES=2
RUN_OPTIONS=
for how in plain expandable; do
    record_ok "$BUILD/torch/3/caching" $how
    "$MEMPROF" lines --func main --device cuda --json >lines.json
    "$python" - run.out <<'END' || fail "$how"
import collections, json, sys
grown = collections.Counter()
for row in json.load(open('lines.json'))['lines']:
    grown[row['device']] += row['reserved_growth_bytes']
counted = [line.split('|') for line in open(sys.argv[1]) if line.startswith('cuda:')]
assert len(counted) == 2 and grown == {row[0]: int(row[4]) for row in counted}, (grown, counted)
END
done

# what the driver's pools reserve is in no line, and said
record_ok "$PROGRAMS/cuda_frees"
"$MEMPROF" lines --func make --columns reserved.growth --device cuda:0 >pools.txt
contains 'pools' pools.txt "the driver's pools"
"$MEMPROF" lines --columns help >help.txt
contains 'help' help.txt 'reserved.growth  '
! "$MEMPROF" report --sort reserved.growth >sort.out 2>sort.err || fail 'by it no report is sorted'
contains 'and it says so' sort.err "'memprof lines' alone"
