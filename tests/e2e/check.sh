# memprof check: every rule, kept and broken by one, on samples whose numbers follow from their source.
. "$ROOT/tests/lib.sh"

# record_as NAME PROGRAM [ARG]...
record_as() {
    name=$1
    shift
    "$MEMPROF" run -q -o "$name.db" -- "$@" >/dev/null 2>run.err || { cat run.err; fail "recording $name"; }
}
# check STATUS ARGUMENTS...: its text in got
check() {
    want=$1 status=0
    shift
    "$MEMPROF" check "$@" >got 2>got.err || status=$?
    [ "$want" = $status ] || { cat got got.err; fail "check $*: status $want expected, not $status"; }
}
# both FILE RULE SUBJECT EXACT: the bound EXACT is kept; one less is broken, by 1, and names something
both() {
    subject=${3:+$3=}
    check 0 "$1" "--$2" "$subject$4"
    grep -q "^kept  *$2 " got || { cat got; fail "$2 $3 $4: not kept"; }
    check 1 "$1" "--$2" "$subject$(($4 - 1))"
    grep -q "^broken  *$2 .* 1 \(B \)\?more" got || { cat got; fail "$2 $3 $4: not broken by 1"; }
    grep -q '^  .*#0  ' got || { cat got; fail "$2 $3 $4: no stack"; }
    echo "  $2 $3 = $4"
}
record_as net "$SAMPLES/net"
record_as leak "$SAMPLES/leak"
record_as churn "$SAMPLES/churn"
record_as cache "$SAMPLES/cache"

# samples/net.c: its peak and what holds it; 104 temporaries of forward's scratch and 100 of update's
both net.db max-peak '' 963072
both net.db max-peak host 963072
both net.db max-allocs '' 216
both net.db max-allocated '' 7472128
both net.db max-temporary '' $((104 + 100))
both net.db max-largest '' 524288
both net.db max-line net.c:update 65536
both net.db max-line net.c:pool_alloc $((544768 + 67072))
both net.db max-line forward 2048
both net.db max-line "net.c:$(grep -n 'malloc(size_bytes)' "$ROOT/samples/net.c" | head -n 1 | cut -d : -f 1)" \
    $((544768 + 67072))
both net.db max-line net.c: 963072
# samples/leak.c: 100 names of 32 bytes, and a table of 4,096
both leak.db max-leak '' $((100 * 32 + 4096))
both leak.db max-leak-blocks '' 101
both leak.db max-allocs '' 2001
# samples/churn.c
both churn.db max-temporary '' 200000
both churn.db max-peak '' 112
# samples/cache.c: 5,000 answers and a table of 8,192 slots, and at that instant one request
both cache.db max-peak '' 1131136
# with what it calls: all of main; whose stack is another function's
check 0 net.db --max-line-total main=963072
check 1 net.db --max-line-total main=963071
contains 'main' got 'broken  max-line-total main'
# whose figures stand beside what broke a rule: blocks of a rule on blocks; of a function or a file all of it, without a
# line that has a part only
check 1 leak.db --max-leak-blocks 99
contains 'blocks' got '  100  parse_line  '
check 1 net.db --max-line net.c:pool_alloc=1K
grep -qE '^ +597.50 KiB  pool_alloc  [^ :]*net.c$' got || { cat got; fail 'the function'; }
check 1 net.db --max-line net.c:=1K
grep -qE '^ +940.50 KiB  [^ :]*net.c$' got || { cat got; fail 'the file'; }
# reserved bytes: as the recording's own table has them
reserved=$(DB=net.db value "SELECT peak_reserved_bytes FROM v_total WHERE device = 'host' AND kind = 'all'")
check 0 net.db --max-reserved "$reserved"
check 1 net.db --max-reserved host=$((reserved - 1))

# what names no code of the recording is not kept, but where a file of rules allows it; code that is there, and
# allocated nothing itself, is
check 1 net.db --max-line net.c:updte=1G
contains 'a slip' got "did you mean 'net.c:update'?"
grep -q '^unknown  max-line net.c:updte' got || { cat got; fail 'a mistyped function is kept'; }
check 1 net.db --max-line nett.c:update=1G
contains 'a slip of the file' got "did you mean 'net.c:update'?"
check 1 net.db --max-line other.c:update=1G
contains 'another file' got "did you mean 'net.c:update'?"
check 1 net.db --max-line nothing_like_it=1G
lacks 'no name is near' got 'did you mean'
check 1 net.db --max-line net.cc:=1G
contains 'a slip of a file alone' got "did you mean 'net.c:'?"
check 1 net.db --max-line net.c:1=1G
contains 'a line' got "did you mean 'net.c:"
check 1 net.db --max-line-total updat=1G
check 1 net.db --max-line updat=1G --json
equal 'JSON of a slip' 'unknown|1' "$(sqlite3 :memory: "SELECT j ->> '$.rules[0].verdict', j ->> '$.unknown'
    FROM (SELECT CAST(readfile('got') AS TEXT) j)")"
check 0 net.db --max-line train=0
contains 'it called what allocated' got 'it allocated nothing itself'
printf 'max-line? net.c:updte=1K\nmax-line-total? gone=0\n' >optional.txt
check 0 net.db --rules optional.txt
equal 'optional ones' 2 "$(grep -c '^kept .*no code of that name' got)"
echo 'max-line? net.c:update=1K' >optional.txt
check 1 net.db --rules optional.txt
contains 'it is there' got 'broken  max-line net.c:update'
echo 'max-peak? 1K' >optional.txt
check 2 net.db --rules optional.txt
contains 'of a device' got.err "no rule 'max-peak?'"

# suppressions leave 3,200 bytes in 100 blocks; --kind, --skip
echo leak:load_defaults >suppressions
check 0 leak.db --max-leak 3200 --max-leak-blocks 100 --suppressions suppressions
check 1 leak.db --max-leak 3199 --suppressions suppressions
contains 'a leak' got 'parse_line'
lacks 'what is suppressed' got 'load_defaults'
check 0 net.db --kind heap --max-peak 963072
check 2 net.db --kind map --max-allocs 0
# pool_alloc skipped: its blocks are forward's, of which nothing says how much they were at most; at least at the peak
check 1 net.db --skip pool_alloc --max-line forward=567K
contains 'own peak' got 'unknown  max-line forward'
# at most what its stacks held, each for itself: what the pool has of it, and its scratch of a step and of a validation
most=$((32768 + 524288 + 1536 + 20480 + 2048 + 128))
contains 'at most' got '; at most 567.62 KiB' # 581,248 / 1,024
check 0 net.db --skip pool_alloc --max-line forward=$most
check 1 net.db --skip pool_alloc --max-line forward=$((most - 1))
check 1 net.db --skip pool_alloc --max-line forward=100K
contains 'own peak' got 'broken  max-line forward'

# all rules at once, one a line
check 1 net.db --max-peak 1M --max-leak 0 --max-temporary 203
equal 'rules' '2 1' "$(grep -c '^kept' got) $(grep -c '^broken' got)"
equal 'sum' '3 rules: 2 kept, 1 broken.' "$(tail -n 1 got)"

# a file of rules
cat >budget.txt <<'END'
# what net may hold
max-peak host=1M   # more than now
max-leak 0

	max-line net.c:update=64K
max-allocs 216
END
check 0 net.db --rules budget.txt
equal 'rules of the file' 4 "$(grep -c '^kept' got)"
check 1 leak.db --rules budget.txt
check 1 leak.db --rules budget.txt --json
contains 'their origin' got '"budget.txt:3"'

# what --write-baseline writes holds exactly, and is the same text for the same numbers
check 0 net.db --write-baseline written.txt
[ ! -s got ] || fail 'output without rules'
for line in 'max-peak host=963072  # 940.50 KiB' 'max-leak host=0' 'max-allocs host=216' 'max-temporary host=204' \
    'max-allocated host=7472128  # 7.13 MiB' 'max-line net.c:update=65536  # 64.00 KiB' \
    'max-line net.c:pool_alloc=611840  # 597.50 KiB'; do
    grep -qxF -- "$line" written.txt || { cat written.txt; fail "no line '$line'"; }
done
check 0 net.db --rules written.txt
record_as again "$SAMPLES/net"
"$MEMPROF" check again.db --write-baseline again.txt
cmp written.txt again.txt || fail 'another run has other numbers'
sed 's/=963072/=963071/' written.txt >tight.txt
check 1 again.db --rules tight.txt
equal 'broken rules' 1 "$(grep -c '^broken' got)"

# --- growth from a baseline: a cache of 10 blocks of 5,000 bytes grows to 10 of 8,000; three lines stand above it now
mkdir new
cache_sources a.c new/a.c
for where in . new; do (cd $where && "$CC" -g -O0 -o program a.c); done
record_as old ./program
record_as new new/program
"$MEMPROF" check old.db --write-baseline old.txt
for baseline in old.db old.txt; do # a recording and a file of rules say the same
    check 1 new.db --baseline $baseline
    contains "$baseline: the peak" got 'broken  max-peak host, growth'
    contains "$baseline: the function" got 'broken  max-line a.c:make, growth'
    contains "$baseline: the count" got 'kept    max-allocs host, growth'
    contains "$baseline: measured and bound" got 'was 48.83 KiB (50,000): +30,000 (+60.00 %), at most +0 % (+0)'
    check 0 new.db --baseline $baseline --max-growth 60%
    check 1 new.db --baseline $baseline --max-growth 59.9%
    check 0 new.db --baseline $baseline --max-growth 30000 # bytes alone: counts are not bounded
    lacks "$baseline: counts" got max-allocs
    check 1 new.db --baseline $baseline --max-growth 29999
    check 1 new.db --baseline $baseline --max-growth 60% --max-growth 29999 # both hold: either breaks
    contains "$baseline: both" got 'at most +60 % (+30,000) and +29.30 KiB'
    check 1 new.db --baseline $baseline --max-growth 59% --max-growth 30000
    check 0 new.db --baseline $baseline --max-growth 60% --max-growth 30000
    check 0 new.db --baseline $baseline --max-growth 5% --growth-floor 30000
    check 1 new.db --baseline $baseline --max-growth 5% --growth-floor 29999
    check 0 old.db --baseline $baseline
    contains "$baseline: itself" got '+0 (+0.00 %)'
    check 0 old.db --baseline $baseline --max-growth 0
done
# the file has another name now: its function is the one that was there, and not gone
cp new/a.c new/b.c
(cd new && "$CC" -g -O0 -o program b.c)
record_as renamed new/program
for baseline in old.db old.txt; do
    check 1 renamed.db --baseline $baseline
    contains "$baseline: a renamed file" got 'broken  max-line b.c:make, growth'
    contains "$baseline: what it was" got '+30,000 (+60.00 %), at most +0 % (+0); renamed from a.c:make'
    check 0 renamed.db --baseline $baseline --max-growth 60%
done
# main was in a.c, too, so what is in b.c alone is another one
sed 's/make/other/' old.txt >others.txt
check 0 renamed.db --baseline others.txt --max-growth 60%
contains 'a function that is gone' got 'kept  max-line a.c:other, growth'
check 1 new.db --baseline old.db
contains 'what grew' got 'max-peak host, growth, what grew most:'
contains 'what grew, by how much and where' got '+29.30 KiB  make  new/a.c:6'
# from nothing, per cent are nothing: 4,096 bytes at the end where there were none
record_as leaky "$SAMPLES/leak"
cat >none.txt <<'END'
max-leak host=0
max-growth 1000%
END
check 1 leaky.db --baseline none.txt
contains 'from nothing' got 'broken  max-leak host, growth'

# --- in one step with the program
check 0 --max-leak 0 --max-peak 963072 -q -o step.db -- "$SAMPLES/net"
contains 'one step' got 'kept  max-leak host'
[ -f step.db ] || fail 'no recording'
check 1 --max-leak 0 -q -- "$SAMPLES/leak"
[ -f out.db ] || fail 'no recording of the default name'
check 7 --max-leak 1M -q -- sh -c 'exit 7'
check 7 --max-peak 0 -q -- sh -c 'exit 7'
contains 'the verdict all the same' got 'broken  max-peak host'
check 143 --max-leak 1M -q -- sh -c 'kill -TERM $$'
equal 'its output' 'hello' "$("$MEMPROF" check --max-peak 1G -q -- sh -c 'echo hello' | head -n 1)"
check 127 --max-peak 1G -q -- ./no-such-program
# what cannot be recorded is not run, and never kept
printf 'int main(void) { return 0; }\n' >static.c
"$CC" -static -o static static.c 2>/dev/null && {
    check 2 --max-peak 1G -q -- ./static
    contains 'a static program' got.err 'statically linked'
    lacks 'a static program' got.err 'running it'
}

# --- for programs
check 1 net.db --max-peak 900000 --max-leak 0 --json
equal 'JSON' '1|1|broken|max-peak|host|963072|900000|63072|net.c' "$(sqlite3 :memory: "SELECT j ->> '$.broken',
    j ->> '$.kept', j ->> '$.rules[0].verdict', j ->> '$.rules[0].rule', j ->> '$.rules[0].subject',
    j ->> '$.rules[0].measured', j ->> '$.rules[0].limit', j ->> '$.rules[0].over',
    replace(j ->> '$.rules[0].culprits[0].file', rtrim(j ->> '$.rules[0].culprits[0].file', 'net.c'), '')
    FROM (SELECT CAST(readfile('got') AS TEXT) j)")"
equal 'frames' pool_alloc "$(sqlite3 :memory: "SELECT j ->> '$.rules[0].culprits[0].frames[0].function'
    FROM (SELECT CAST(readfile('got') AS TEXT) j)")"
check 1 net.db --max-peak 900000 --max-leak 0 --csv
equal 'CSV' 'broken|963072
kept|0' "$(sqlite3 :memory: -cmd '.import --csv got c' 'SELECT verdict, measured FROM c')"
GITHUB_WORKSPACE=$ROOT check 1 net.db --max-line net.c:update=1K --max-leak 0 --github
line=$(grep -n 'malloc(.*)' "$ROOT/samples/net.c" | sed -n 's/^\([0-9]*\):.*/\1/p')
equal 'annotations' 1 "$(grep -c '^::error ' got)"
at=$(sed -n 's/^::error file=samples\/net.c,line=\([0-9]*\),title=memprof%3A max-line net.c%3Aupdate::.*/\1/p' got)
echo "$line" | grep -qx "$at" || { cat got; fail "the annotation's line '$at' allocates nothing"; }
