# A profile as go tool pprof reads it: what it says of functions, lines, labels and modules, two of them compared, and
# names that are traps. Totals: export_totals.sh.
. "$ROOT/tests/report/export.inc"
need go gzip
PPROF_TMPDIR=$PWD
export PPROF_TMPDIR
# pprof OPTION... FILE
pprof() { go tool pprof -symbolize=none -unit=B -nodecount=100000 -nodefraction=0 -edgefraction=0 "$@" 2>pprof.err; }
profile() { "$MEMPROF" export --format pprof "$@" 2>err || { cat err; fail "export $*"; }; }
# flat NAME: of the function of that name in top.txt, without "B"
flat() { awk -v name="$1" 'seen && $6 == name { sub("B", "", $1); print $1 } $1 == "flat" { seen = 1 }' top.txt; }

record_ok "$SAMPLES/net"
profile out.db
equal "written" "memprof: 15 samples written to out.pb.gz" "$(head -n 1 err | sed 's/ (.*//')"
pprof -raw out.pb.gz >raw.txt
contains "the program" raw.txt "$(sql "SELECT '/samples/net ' || build_id FROM module WHERE path LIKE '%/samples/net'")"
contains "the type that is shown" raw.txt 'peak_space/bytes[dflt]'
equal "train, inlined into main" "$(printf '%s\n' backward train main)" \
    "$(awk '/M=1 backward/ { n = 3; print $4; next } n-- > 1 { print $1 }' raw.txt)"
contains "labels" raw.txt 'device:[host] kind:[heap]'
# of samples/net.c at the peak: see there
pprof -top out.pb.gz >top.txt
equal "pool_alloc" 611840 "$(flat pool_alloc)"
equal "update" 65536 "$(flat update)"
pprof -top -sample_index=alloc_space out.pb.gz >top.txt
equal "update, all of it" 6553600 "$(flat update)"
pprof -list '^forward$' -sample_index=alloc_objects out.pb.gz >list.txt
equal "the line of the scratch" 104B "$(awk '/scratch = malloc/ { print $1 }' list.txt)"
pprof -top -lines out.pb.gz >lines.txt
contains "lines" lines.txt 'samples/net.c:159'

# against another version: pprof's difference of two profiles is that of memprof diff, function by function
same_growth() { # OLD NEW STATISTIC TYPE
    pprof -top -functions -sample_index="$4" -diff_base "$1.pb.gz" "$2.pb.gz" >top.txt
    "$MEMPROF" diff "$1.db" "$2.db" --by function --stat "$3" --json --top 0 >diff.json
    python3 "$ROOT/tests/report/export_growth.py" top.txt diff.json || fail "the growth of $4 from $1 to $2"
}
cache_sources old.c new.c
for version in old new; do
    "$CC" -g -O1 -fno-inline -o $version $version.c
    record_ok ./$version >/dev/null && mv out.db $version.db && profile $version.db
done
same_growth old new active.at_peak peak_space
equal "10 blocks, each 3,000 bytes larger" 30000 "$(flat make)"
for count in 300 900; do
    record_ok gawk "BEGIN { for (i = 0; i < $count; i++) a[i] = i \"x\"; print length(a) }" >/dev/null
    mv out.db gawk$count.db && profile gawk$count.db
done
for type in active.at_peak:peak_space alloc.bytes:alloc_space alloc.count:alloc_objects end.bytes:inuse_space; do
    same_growth gawk300 gawk900 "${type%:*}" "${type#*:}"
done

# and a profile of one has for each function what the report has: of C, and of Python with the interpreter's C
same_functions() { # RECORDING [OPTION]...
    recording=$1
    shift
    profile "$recording" -o flat.pb.gz "$@"
    pprof -top -functions flat.pb.gz >top.txt
    "$MEMPROF" report "$recording" --by function --json "$@" >report.json
    python3 "$ROOT/tests/report/export_growth.py" top.txt report.json || fail "the functions of $recording $*"
}
same_functions gawk900.db
same_functions new.db --skip make
record_ok /usr/bin/python3 -c 'import json; print(len([json.dumps({"a": i}) for i in range(500)]))' >/dev/null
same_functions out.db
same_functions out.db --native

# two devices apart by label; an instant; a kind
profile net.db
for device in $(devices_of net.db); do
    equal "$device" "$(held net.db "$device" peak_active_bytes)" \
        "$(pprof -top -tagfocus "device=$device" net.pb.gz |
            sed -n 's/^Showing nodes accounting for \([0-9]*\)B.*/\1/p')"
done
profile net.db --at end -o end.pb.gz
pprof -raw end.pb.gz | grep dflt >types
equal "types of an instant" 'inuse_objects/count inuse_space/bytes[dflt]' "$(cat types)"
profile net.db --kind heap -o kind.pb.gz
pprof -raw kind.pb.gz | grep dflt >types
lacks "blocks at the peak of a kind, which nobody counted" types peak_objects
profile net.db --stat temporary.bytes -o temporary.pb.gz
pprof -raw temporary.pb.gz | grep -q ' temporary.bytes/bytes\[dflt\]' || fail "no statistic of --stat"

hostile trap.db
profile trap.db
for file in net trap; do
    pprof -raw $file.pb.gz >$file.raw || fail "pprof cannot read $file: $(cat pprof.err)"
    pprof -top $file.pb.gz | sed -n 's/^Showing nodes accounting for //p' >$file.top
done
cmp net.top trap.top || fail "another total with names that are traps"
"$MEMPROF" export --format pprof net.db -o - 2>/dev/null | cmp - net.pb.gz || fail "another file on standard output"
gzip -t net.pb.gz || fail "not gzip"
