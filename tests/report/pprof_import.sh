# Imported heap profiles of pprof: profiles made by hand, whose numbers are in pprof_profile.py, and one that Go wrote.
need python3 gzip
make() { python3 "$ROOT/tests/report/pprof_profile.py" "$1" "$2" || fail "making $2"; }

make all all.pb.gz
"$MEMPROF" import all.pb.gz -o out.db 2>err || { cat err; fail 'import'; }
lacks 'the peak is known' err 'The peak is not known'
balance
totals="SELECT device, kind, alloc_count, alloc_bytes, free_count, free_bytes, end_count, end_active_bytes,
    peak_active_count, peak_active_bytes FROM v_total ORDER BY device, kind"
equal 'totals' 'cuda:0|all|2|600|2|600|0|0|2|600
cuda:0|sub|2|600|2|600|0|0|2|600
host|all|12|1057|6|600|6|457|9|850
host|heap|11|1050|6|600|5|450|9|850
host|map|1|7|0|0|1|7|0|0' "$(sql "$totals")"
equal 'lines' 'inner|a.c|4|1050
prog+0x1030||0|7
step|/w/t.py|7|600' "$(sql "SELECT substr(function, instr(function, ' ') + 1), file, line, alloc_bytes FROM v_line
    WHERE kind = 'all' ORDER BY 1")"
equal 'the stack of a device' 'step|python|0
inner|native|1
outer|native|0
main|native|0' "$(sql "SELECT function, language, is_inline FROM v_stack WHERE stack_id = (SELECT stack_id FROM site
    WHERE kind = 'sub') ORDER BY depth")"
equal 'module' '/bin/a prog|abcdef' "$(sql "SELECT path, build_id FROM module")"
equal 'start and length' "$(((1700000000 - 5) * 1000000000))|5000000000" \
    "$(sql "SELECT (SELECT value FROM meta WHERE key = 'start_unix_ns'),
    (SELECT value FROM meta WHERE key = 'duration_ns')")"
equal 'own peaks are not known' 0 "$(value "SELECT count(own_peak_bytes) FROM account")"
"$MEMPROF" report out.db >report
contains 'the report says what is not known' report 'nothing is known of times'
equal 'reserved memory, which the file does not know' null \
    "$(value "SELECT DISTINCT typeof(peak_reserved_bytes) FROM v_total")"
"$MEMPROF" advise out.db >advice
contains 'what an import lacks' advice 'holds sums by stack and no events'
lacks 'what would not help' advice '--aggregate'
"$MEMPROF" report out.db --at peak --device host >report
contains 'at the peak' report '850 B'
bad 2 'an imported profile holds sums' report out.db --at 1s
bad 2 'profile' report out.db --from 1s
"$MEMPROF" report out.db --html=page.html >/dev/null 2>&1 || fail 'the page'
"$MEMPROF" diff out.db out.db >/dev/null || fail 'diff'
"$MEMPROF" check out.db --max-leak host=457 >report || fail 'check: the leak is allowed'
contains 'check says what is not known' report 'nothing is known of times'
if "$MEMPROF" check out.db --max-leak host=456 >/dev/null; then fail 'check: one byte less'; fi

# without the allocated, without a peak, sampled, not packed
make live live.pb
"$MEMPROF" import live.pb -o out.db 2>err || { cat err; fail 'import of a live profile'; }
contains 'the peak is not known' err 'The peak is not known'
contains 'what was freed is not known' err 'allocated is what was live'
contains 'estimates' err 'one allocation in 512.00 KiB: its numbers are estimates'
equal 'live' 'host|all|4|400|0|0|4|400|4|400
host|heap|4|400|0|0|4|400|4|400' "$(sql "$totals")"

# what makes no sense is left out, and counted
make odd odd.pb.gz
"$MEMPROF" import odd.pb.gz -o out.db 2>err || { cat err; fail 'import of an odd profile'; }
contains 'a negative value' err '1 values below 0'
contains 'a sample of two values' err '1 samples of another number of values'
contains 'a location that is not there' err '1 numbers that lead to nothing'
equal 'odd' '2|10' "$(sql "SELECT alloc_count, alloc_bytes FROM v_total WHERE kind = 'all'")"

# what is none is refused, with a reason
make cpu cpu.pb.gz
head -c $(($(wc -c <all.pb.gz) - 20)) all.pb.gz >cut.pb.gz
head -c 60 live.pb >cut.pb
echo 'heap profile:      1:      100 [     1:      100] @ heap_v2/524288' >text
refused() { # WHAT FILE TEXT
    status=0
    "$MEMPROF" import "$2" -o other.db 2>err || status=$?
    equal "$1: exit status" 1 $status
    equal "$1: one line" 1 "$(wc -l <err)"
    contains "$1" err "$3"
    [ ! -e other.db ] || fail "$1: there is a database"
}
refused 'a profile of time' cpu.pb.gz 'is no heap profile: its values are samples/count, cpu/nanoseconds'
refused 'cut' cut.pb.gz 'it was cut'
refused 'cut, not packed' cut.pb 'damaged'
refused 'a text' text 'pprof -proto'

# our own profile comes back as it was, and goes out again as it came
DB=net.db
"$MEMPROF" run -q -o net.db -- "$SAMPLES/net" >/dev/null
before=$(sql "$totals")
"$MEMPROF" export --format pprof net.db -o net.pb.gz 2>/dev/null
"$MEMPROF" import -q net.pb.gz -o back.db
"$MEMPROF" export --format pprof back.db -o again.pb.gz 2>/dev/null
DB=back.db
equal 'there and back' "$before" "$(sql "$totals")"
contains 'no difference' /dev/stdin 'Nothing differs' <<END
$("$MEMPROF" diff net.db back.db)
END
DB=out.db

# Go's own
command -v go >/dev/null || skip 'go is not installed; all else passed'
cat >heap.go <<'END'
package main

import (
	"os"
	"runtime"
	"runtime/pprof"
)

var kept [][]byte
var sink []byte

//go:noinline
func keep(n int) { kept = append(kept, make([]byte, n)) }

//go:noinline
func drop(n int) { sink = make([]byte, n) }

func main() {
	runtime.MemProfileRate = 1
	for i := 0; i < 100; i++ {
		keep(4096)
		drop(8192)
	}
	sink = nil
	runtime.GC()
	f, _ := os.Create(os.Args[1])
	pprof.Lookup("heap").WriteTo(f, 0)
	f.Close()
}
END
export GOCACHE="$BUILD/go-cache" GO111MODULE=off GOFLAGS=-p=1
go build -o heap heap.go || fail 'go build'
./heap go.pb.gz
"$MEMPROF" import -q go.pb.gz -o out.db
for pair in alloc_objects:alloc_count alloc_space:alloc_bytes inuse_objects:end_count inuse_space:end_active_bytes; do
    theirs=$(go tool pprof -sample_index="${pair%:*}" -nodefraction=0 -unit=B -top go.pb.gz 2>/dev/null |
        sed -n 's/^Showing nodes.* of \([0-9]*\)B\{0,1\} total.*/\1/p')
    [ "$theirs" ] || fail "go tool pprof says nothing of ${pair%:*}"
    equal "Go: ${pair%:*}" "$theirs" "$(value "SELECT ${pair#*:} FROM v_total WHERE kind = 'all'")"
done
for type in alloc_space peak_space; do
    for file in net again; do
        go tool pprof -sample_index=$type -nodefraction=0 -unit=B -top $file.pb.gz 2>/dev/null |
            sed 1,3d >"$file.$type"
    done
    cmp net.$type again.$type || fail "$type: there, back and there again"
done
equal 'Go: 100 slices of 4096' 4096 \
    "$(value "SELECT max(largest_bytes) FROM v_line WHERE function = 'main.keep' AND line = 13")"
at_least 'Go: what was dropped' 819200 "$(value "SELECT alloc_bytes FROM v_line WHERE function = 'main.drop'
    AND kind = 'all'")"
