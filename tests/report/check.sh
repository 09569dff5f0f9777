# memprof check on a synthetic recording with GPUs: rules by device against what SQLite reads of the file, JUnit's XML,
# annotations, hostile names and files.
. "$ROOT/tests/report/setup.inc"
total() { sqlite3 net.db "SELECT $1 FROM v_total WHERE device = '$2' AND kind = '${3:-all}'"; }
# check STATUS ARGUMENTS...
check() {
    want=$1 status=0
    shift
    timeout 20 "$MEMPROF" check "$@" >got 2>got.err || status=$?
    [ "$want" = $status ] || { cat got got.err; fail "check $*: status $want expected, not $status"; }
}
at_least devices 2 "$(sqlite3 net.db "SELECT count(*) FROM v_total WHERE kind = 'all'")"
for device in $(sqlite3 net.db "SELECT device FROM v_total WHERE kind = 'all' AND alloc_count > 0"); do
    for rule in max-peak:peak_active_bytes max-reserved:peak_reserved_bytes max-allocs:alloc_count \
        max-allocated:alloc_bytes max-temporary:temporary_count; do
        bound=$(total "${rule#*:}" "$device")
        check 0 net.db "--${rule%:*}" "$device=$bound"
        [ "$bound" = 0 ] || check 1 net.db "--${rule%:*}" "$device=$((bound - 1))"
        check 0 net.db "--${rule%:*}" "$bound" --device "$device"
        equal "lines with --device" 1 "$(grep -c '^kept' got)"
    done
    "$MEMPROF" leaks net.db --device "$device" --json >leaks.json
    leak=$(sqlite3 :memory: "SELECT j ->> '$.end_bytes' FROM (SELECT CAST(readfile('leaks.json') AS TEXT) j)")
    check 0 net.db --max-leak "$device=$leak"
    [ "$leak" = 0 ] || check 1 net.db --max-leak "$device=$((leak - 1))"
    echo "  $device"
done
# without a device: each that no other rule names
check 1 net.db --max-peak 1 --max-peak host=1G
contains 'of one device' got 'kept    max-peak host'
contains 'of the others' got 'broken  max-peak cuda:0'
lacks 'twice' got 'broken  max-peak host'
check 0 net.db --max-peak cuda:77=5
contains 'a device that is not there' got 'this recording has no device cuda:77'
heap=$(total peak_active_bytes host heap)
check 0 net.db --kind heap --max-peak "host=$heap"
check 1 net.db --kind heap --max-peak "host=$((heap - 1))"
pid=$(sqlite3 net.db 'SELECT min(pid) FROM process')
check 0 net.db --process "$pid" --max-peak 1G --max-allocs 100000000
check 1 net.db --process "$pid" --max-reserved host=1G
contains 'reserved bytes of one process' got 'unknown  max-reserved host'

# as memprof lines tells: the own peak of a function
"$MEMPROF" report net.db --by function --csv --device host >functions.csv
own=$(sqlite3 :memory: -cmd '.import --csv functions.csv r' \
    "SELECT max(CAST(own_peak_bytes AS INTEGER)) FROM r WHERE function = 'worker'")
check 0 net.db --device host --max-line "worker=$own"
check 1 net.db --device host --max-line "worker=$((own - 1))"

# names of instances: short where people read, whole where they tell rules apart
cp net.db instances.db
key='std::map<int, std::allocator<char> >'
sqlite3 instances.db "UPDATE function SET name = 'Cache<$key >::put($key const&)' WHERE plain_name = 'worker'"
check 1 instances.db --device host --max-line "Cache<$key >::put=$((own - 1))" --junit instances.xml
contains 'the rule' got 'broken  max-line Cache::put  '
contains 'the title' got 'max-line Cache::put, own peak:'
contains 'the code' got 'MiB  Cache::put  src'
xmllint --xpath 'string(//testcase/@name)' instances.xml >name
contains 'the case' name "max-line Cache<$key >::put"
contains 'its text' instances.xml 'Cache&lt;std::map&lt;int'
check 1 instances.db --device host --max-line "Cache<$key >::put=$((own - 1))" --json
equal 'JSON' "Cache<$key >::put" \
    "$(sqlite3 :memory: "SELECT CAST(readfile('got') AS TEXT) ->> '$.rules[0].subject'")"
check 1 instances.db --device host --max-line "Cache<$key >::put=$((own - 1))" --max-line 'Cache<long>::put=1'
contains 'two instances' got "max-line Cache<long>::put  "
check 1 instances.db --device host --max-line "Cache<*put*=$((own - 1))"
contains 'a pattern' got "max-line Cache<*put*  "

# JUnit's XML is what its schema says, whatever the names are
. "$ROOT/tests/report/junit.inc"
check 1 net.db --max-peak 1 --max-leak 1G --max-growth-per nothing=0 --junit out.xml
valid out.xml
counts() { xmllint --xpath "concat(//testsuite/@tests, ' ', //testsuite/@failures, ' ', //testsuite/@errors, ' ', \
    count(//testcase), ' ', count(//failure), ' ', count(//error))" "$1"; }
rules=$(grep -c -E '^(kept|broken|unknown) ' got)
broken=$(grep -c '^broken ' got)
equal 'counts' "$rules $broken 1 $rules $broken 1" "$(counts out.xml)"
equal "the run's 1,250 ms" '1.250 0' \
    "$(xmllint --xpath 'concat(//testsuite/@time, " ", count(//testcase/@time))' out.xml)"
equal 'a failure' 'max-peak' "$(xmllint --xpath 'string(//testcase[@name="max-peak host"]/failure/@type)' out.xml)"
xmllint --xpath 'string(//testcase[@name="max-peak host"]/failure)' out.xml >failure
contains 'its stack' failure '#0  '
printf '<testsuites><testsuite name="x" tests="1"/></testsuites>' >bad.xml
! xmllint --noout --schema "$ROOT/tests/report/junit.xsd" bad.xml 2>/dev/null || fail 'the schema takes anything'
cp net.db odd.db
sqlite3 odd.db "UPDATE function SET name = char(27) || ']]>' || char(1) || '<&\"' || name || char(10) || x'ff';
    UPDATE file SET path = path || char(10) || '::error::%,:' || char(65535);
    UPDATE meta SET value = char(8) || '<x>' WHERE key IN ('command', 'cwd'); UPDATE device SET name = name || '<&'"
check 1 odd.db --max-peak 1 --max-leak 0 --junit odd.xml --github
valid odd.xml
if grep -q '^::error::' got; then fail 'a name became an annotation of its own'; fi
equal 'annotations' "$(grep -c '^broken ' got)" "$(grep -c '^::error ' got)"
! LC_ALL=C tr -d '\n' <got | LC_ALL=C grep -q '[[:cntrl:]]' || fail 'control characters get through'
check 1 odd.db --max-peak 1 --max-leak 0 --json
python3 -m json.tool got >/dev/null || fail JSON
check 0 odd.db --write-baseline odd.txt
check 2 odd.db --rules odd.txt # a device of that name is none
contains 'its line' got.err "odd.txt:"

# what is written replaces a file whole, and never a recording
cp net.db mine.db
for option in --write-baseline --junit; do
    check 2 mine.db --max-peak 1G $option ./mine.db
    contains 'the recording' got.err 'is the recording itself'
    check 2 net.db --baseline mine.db $option mine.db
    check 2 net.db --max-peak 1G $option no/such/directory
    contains 'no directory' got.err 'no/such/directory'
done
cmp net.db mine.db || fail 'a recording was overwritten'

# nor what the check reads and runs, by whatever name, nor another recording
check 0 net.db --write-baseline base.txt
echo 'max-peak 100G' >rules.txt
echo 'leak:x' >supp.txt
cp "$(command -v touch)" prog
cp net.db b.db
mkdir kept
cp base.txt rules.txt supp.txt prog b.db kept
for option in --write-baseline --junit; do
    for input in --rules:rules.txt --suppressions:supp.txt --baseline:base.txt; do
        file=${input#*:}
        ln -s "$file" soft
        ln "$file" hard
        for name in "$file" ./soft hard; do
            check 2 net.db --max-peak 100G "${input%%:*}" "$file" $option "$name"
            contains 'an input' got.err "check: $name: is read by this check; give what is written by $option another"
            [ "$(wc -l <got.err)" = 1 ] && [ ! -s got ] || fail "$input: one line expected"
        done
        rm soft hard
    done
    check 2 net.db --rules rules.txt --rules base.txt $option rules.txt # not the last one alone
    check 2 -q -o y.db --max-peak 1G $option prog -- ./prog ran
    contains 'the program' got.err 'check: prog: is read by this check'
    PATH=$PWD:$PATH check 2 -q -o y.db --max-peak 1G $option prog -- prog ran
    check 2 -q -o y.db --rules rules.txt $option rules.txt -- ./prog ran
    [ ! -e ran ] && [ ! -e y.db ] || fail 'it ran'
    check 2 net.db --max-peak 100G $option b.db
    contains 'another recording' got.err 'b.db: is a recording of memprof; it is left as it is'
done
for file in base.txt rules.txt supp.txt prog b.db; do cmp "$file" "kept/$file" || fail "$file was overwritten"; done
check 0 net.db --max-peak 100G --suppressions /dev/null --junit /dev/null
check 0 net.db --max-peak 100G --junit out.xml # what was written before is replaced
check 0 net.db --write-baseline base.txt

# mistakes: one line that names the thing
bad() {
    text=$1
    shift
    check 2 "$@"
    [ "$(wc -l <got.err)" = 1 ] || { cat got.err; fail "'$*': one line expected"; }
    contains "$*" got.err "$text"
    [ ! -s got ] || fail "$*: output in spite of the error"
}
bad 'no rule given' net.db
bad "--max-peak: max-peak '2Q': expected [DEVICE=]BYTES, such as 2G or cuda:0=10G" net.db --max-peak 2Q
for value in '' -1 1e9 0x10 ' 5' 5x 5% =5 hots=5 cuda:=5 :0=5 99999999999999999999 9223372036854775807K; do
    bad '[DEVICE=]BYTES' net.db --max-peak "$value"
done
bad '[DEVICE=]NUMBER' net.db --max-allocs 5K
bad 'FILE:FUNCTION=BYTES' net.db --max-line 5
bad 'FILE:FUNCTION=BYTES' net.db --max-line =5
bad 'FILE:FUNCTION=BYTES' net.db --max-line :f=5
bad 'FILE:FUNCTION=BYTES' net.db --max-line net.c:0=5
bad 'RANGE=BYTES' net.db --max-growth-per =5
bad 'RANGE=BYTES' net.db --max-growth-per 5
bad 'a whole number of executions' net.db --max-growth-per a=5 --warmup x
for value in x% % -5% 1e3% 5%% 5x nan% inf% 1.2.3%; do
    bad 'per cent or bytes' net.db --baseline net.db --max-growth "$value"
done
bad 'measured from a --baseline' net.db --max-peak 1 --max-growth 5%
bad 'one FILE at a time' net.db net.db --max-peak 1
bad "a FILE or a PROGRAM, not 'net.db' and 'true'" net.db --max-peak 1 -- true
bad 'no program after --' --max-peak 1 --
bad 'belongs to a program that is run' net.db --max-peak 1 -o x.db
bad 'both write to standard output' net.db --max-peak 1 --github --json
bad "no device 'cuda:9' in this recording" net.db --max-peak 1 --device cuda:9
bad "--skip 'nosuch'" net.db --max-peak 1 --skip nosuch
bad 'no.db: No such file' no.db --max-peak 1
bad 'no.txt: No such file' net.db --rules no.txt
bad 'no.txt: No such file' net.db --baseline no.txt
bad 'no.txt: No such file' net.db --max-leak 0 --suppressions no.txt
bad 'cannot be read' net.db --rules .
printf '# nothing\nmax-growth 5%%\n' >nothing.txt
for file in /dev/null nothing.txt; do
    bad "$file: no rule in it to measure growth from" net.db --baseline $file
    bad "$file: no rule in it to measure growth from" net.db --baseline $file --max-peak 100G
done
bad 'not a memprof file' "$ROOT/LICENSE" --max-peak 1

# files of rules: the line that is wrong
rules() { printf "$1" >bad.txt; }
rules 'max-peak 2G\n\nmax-peek 2G\n'; bad "bad.txt:3: no rule 'max-peek'" net.db --rules bad.txt
rules 'max-peak 2Q\n'; bad "bad.txt:1: max-peak '2Q'" net.db --rules bad.txt
rules '# x\nmax-peak\n'; bad "bad.txt:2: 'max-peak': expected NAME VALUE" net.db --rules bad.txt
rules 'max-peak 1\000\n'; bad 'bad.txt:1: a NUL' net.db --rules bad.txt
rules 'max-leak 5 5\n'; bad "bad.txt:1: max-leak '5 5'" net.db --baseline bad.txt
head -c 5000 /dev/zero | tr '\0' a >bad.txt; bad 'bad.txt:1: a line of more than' net.db --rules bad.txt
head -c 1100000 /dev/zero | tr '\0' '\n' >bad.txt; bad 'at most 1048576 bytes' net.db --rules bad.txt
yes 'max-leak 5' | head -n 10001 >bad.txt; bad 'bad.txt:10001: more than 10000 rules' net.db --rules bad.txt
cp "$MEMPROF" program.txt; bad 'program.txt' net.db --rules program.txt

# pipes: what a command writes is read, and what nobody writes, or reads, ends in one line; all at once, as each waits
mkfifo pipe.txt pipe2.txt
# alone NAME STATUS TEXT ARGUMENTS...
alone() {
    (
        name=$1 want=$2 text=$3
        shift 3
        status=0
        timeout 60 "$MEMPROF" "$@" >"$name.out" 2>"$name.err" </dev/null || status=$?
        equal "status of $*" "$want" $status
        contains "$*" "$name.err" "$text"
        : >"$name.ok"
    ) >"$name.log" 2>&1 &
}
n=0
for words in 'check net.db --rules pipe.txt' 'check net.db --baseline pipe.txt' \
    'check net.db --max-peak 1G --suppressions pipe.txt'; do
    name=in$((n += 1))
    # shellcheck disable=SC2086
    alone $name 2 'pipe.txt: cannot be read: a pipe to which nobody writes' $words
done
name=in$((n += 1))
alone $name 1 'pipe.txt: cannot be read: a pipe to which nobody writes' import pipe.txt -o imported.db
for words in '2 check net.db --max-peak 1G --junit pipe2.txt' '2 check net.db --write-baseline pipe2.txt' \
    '1 report net.db --html=pipe2.txt' '1 diff net.db net.db --html=pipe2.txt'; do
    name=in$((n += 1))
    # shellcheck disable=SC2086
    alone $name ${words%% *} 'pipe2.txt: a pipe that nobody reads' ${words#* }
done
wait
for i in $(seq $n); do [ -f in$i.ok ] || { cat in$i.log; fail 'a pipe'; }; done
{ sleep 1; echo 'max-peak 900000'; } >pipe.txt &
check 1 net.db --rules pipe.txt
contains 'rules from a pipe' got 'broken  max-peak host'
"$MEMPROF" check net.db --write-baseline base.txt
cat base.txt >pipe.txt &
check 0 net.db --baseline pipe.txt
cat pipe2.txt >read.xml &
check 0 net.db --max-peak 1G --junit pipe2.txt
wait
contains 'a pipe with a reader' read.xml '<testsuite'
check 0 net.db --max-peak 1G --junit /dev/stdout
contains 'standard output' got '<testsuite'
rules 'max-peak 1G # a comment\r\n  # another\n\t max-line?  a#b=1G\t#c\n\n'
check 0 net.db --rules bad.txt
equal 'comments' 'a#b' "$("$MEMPROF" check net.db --rules bad.txt --csv | tail -n 1 | cut -d , -f 3)"

# damaged recordings: never a crash
size=$(wc -c <net.db)
for part in 100 4096 20000 70000 $((size / 2)) $((size - 4096)); do
    head -c "$part" net.db >cut.db
    for rule in '--max-peak 1' '--max-leak 0' '--max-line forward=1' '--baseline net.db' '--max-growth-per a=0' \
        '--write-baseline cut.txt' '--max-reserved 0' '--max-largest 0'; do
        status=0
        # shellcheck disable=SC2086
        timeout 20 "$MEMPROF" check cut.db $rule >got 2>&1 || status=$?
        [ $status -lt 3 ] || { cat got; fail "$rule on $part bytes: status $status"; }
        timeout 20 "$MEMPROF" check net.db --baseline cut.db >got 2>&1 || status=$?
        [ $status -lt 3 ] || { cat got; fail "a baseline of $part bytes: status $status"; }
    done
done
