# What names of blocks tell: "Sharing came apart" and "Views keep a block", with numbers of tests/programs/sharing.c's
# first comment; the same in report, JSON, page and advise; nothing of the mended twin, and of what only looks like it.
source=$ROOT/tests/programs/sharing.c
line() { grep -n "/\* $1 \*/" "$source" | cut -d : -f 1; }
peak() { value "SELECT peak_active_bytes FROM total WHERE kind = 'all'"; }
silent() { # WHAT: out.db has none of both
    "$MEMPROF" report out.db >report.txt
    "$MEMPROF" advise out.db >advise.txt
    for file in report.txt advise.txt; do
        lacks "$1" "$file" 'Sharing came apart'
        lacks "$1" "$file" 'Views keep a block'
    done
}
# found MODE RULE LINE BYTES: its one warning is of this rule and line, of so many bytes, all of them saved at the peak;
# and the twin's peak is lower by no more than that
found() {
    "$MEMPROF" run -q -o out.db "$PROGRAMS/sharing" "$1" mended
    silent "$1, mended"
    mended=$(peak)
    "$MEMPROF" run -q -o out.db "$PROGRAMS/sharing" "$1"
    same_findings
    contains "$1" report.txt '* '
    at_most "$1: what its twin saves" "$4" $(($(peak) - mended))
    python3 - "$2" "$(line "$3")" "$4" <<'END2' || fail "$1"
import json, sys
rule, line, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for file in 'report.json', 'advise.json':
    all = json.load(open(file))['findings']
    found = [f for f in all if f['severity'] == 'warning']
    assert [(f['rule'], f['line'], f['bytes']) for f in found] == [(rule, line, size)], (file, all)
assert (found[0]['saved'], found[0]['saved_bytes']) == ('at most', size), found
END2
}
found apart apart copy 4194304
contains 'apart' report.txt 'embed and out shared a block; from'
contains 'apart' report.txt 'they are in 2 blocks of their own, made by copy (sharing.c'
found overlap apart copy 1048576
contains 'overlap' report.txt 'which takes 1.00 MiB more.'
found views views make $((16777216 - 65536))
contains 'views' report.txt 'had 16.00 MiB in 1 block at the peak, of which names cover 64.00 KiB'

record_ok "$PROGRAMS/sharing" silent
silent "what only looks like it"
record_ok "$SAMPLES/views"
silent "views"
for program in true 'ls /usr/bin' 'sqlite3 :memory: .quit'; do
    "$MEMPROF" run -q -o out.db $program >/dev/null
    silent "$program"
done

# Names that say what cannot be.
"$MEMPROF" run -q -o out.db "$PROGRAMS/sharing" apart
sqlite3 out.db "UPDATE block_name SET block_bytes = 9223372036854775807, span_bytes = -1, address = 0" \
    "UPDATE block_name SET alloc_ns = -9223372036854775807, time_ns = 9223372036854775807 WHERE name = 'out'"
"$MEMPROF" advise out.db >/dev/null || fail "names that cannot be"
