# Mistakes of the user: one line that names the thing and the next step; 2 for usage, 1 for failure.
. "$ROOT/tests/report/setup.inc"

bad 2 "did you mean 'report'?" reprot
bad 2 "to record it: memprof run ls" ls -l
bad 2 'to read it: memprof report a.db' a.db
bad 2 "unknown command 'nosuchthing'" nosuchthing
bad 2 "unknown option '--nonsense'" --nonsense
bad 2 'no program given' run
bad 2 'no program given' run --
bad 2 "'0': expected a whole number from 1 to 1024" run --depth 0 true
bad 2 'give one of them' run --aggregate --max-events 5 true
bad 2 'not set' run -o '%q{NO_SUCH_VARIABLE}.db' true
bad 1 "no.db: No such file or directory; 'memprof run PROGRAM' makes one" report no.db
bad 1 "out.db: No such file" report
bad 2 "one FILE at a time" lines net.db b.db
bad 2 "to name the page: --html=b.html" report net.db --html b.html
bad 2 "did you mean 'function'?" report net.db --by functoin
bad 2 'thread, device, stack, process, op, size, name or category' report net.db --by foo
bad 2 'does not go with --at' report net.db --by size --at peak
bad 2 'expected peak, end, now, mark:NAME, or a time' report net.db --at soon
bad 2 "no device 'cuda:9' in this recording; it has: " report net.db --device cuda:9
bad 2 "no kind 'heat'" leaks net.db --kind heat
bad 2 'the run ended at 1.250 s; --at end shows' report net.db --at 10s
bad 2 "'a': no such statistic" report net.db --sort a
bad 2 "no such statistic" report net.db --sort size
bad 2 'exclude each other' report net.db --json --csv
bad 2 'two recordings expected: memprof diff OLD NEW' diff
bad 2 'two recordings expected' diff net.db
bad 2 'two recordings expected' diff net.db --new
bad 2 'two recordings expected' diff --new net.db net.db
bad 2 '3 files; which are the new side?' diff net.db net.db net.db
bad 2 '--new once' diff net.db --new net.db --new net.db
bad 2 "did you mean 'function'?" diff net.db net.db --by functoin
bad 2 'expected line, function, file, module, device, stack or op' diff net.db net.db --by thread
bad 2 "'nothing': no such statistic; 'memprof diff --sort help' lists them" diff net.db net.db --sort nothing
bad 2 "diff: --sort 'end': did you mean end.bytes or end.count?" diff net.db net.db --sort end
bad 2 "report: --sort 'active.at_end': did you mean end.bytes, end.count or resident.end?" report net.db \
    --sort active.at_end
bad 2 "report: --sort 'own.peek': did you mean own.peak?" report net.db --sort own.peek
bad 2 "no statistic 'active.at_end'; did you mean end.bytes, " lines net.db --columns own.peak,active.at_end
bad 2 "report: --sort 'free': did you mean free.count or free.bytes?" report net.db --sort free
bad 2 "no device 'cuda:9' in this recording; it has: " diff net.db net.db --device cuda:9
bad 2 "diff: --skip 'nobody': no such function in these recordings" diff net.db net.db --skip main --skip nobody
bad 1 "no.db: No such file or directory" diff net.db no.db
bad 2 'diff: --html writes one page of everything; leave out --by' diff net.db net.db --html --by function
bad 2 'leave out --json' diff net.db net.db --html=- --json
bad 2 'diff: --html compares two recordings, not 3' diff net.db --html --new net.db net.db
bad 2 'diff: --open belongs to --html' diff net.db net.db --open
bad 2 'does not go with --by thread' report net.db --by thread -i
bad 2 'does not go with' report net.db --by thread --at 1s
bad 2 'expected auto, always or never' report net.db --color=maybe
bad 2 'belong to --html' report net.db --open
bad 1 "no function 'backwrd'" lines net.db --func backwrd
bad 1 "no function 'a', 'b' in this recording" lines net.db --func a --func b
bad 1 "no matching function in a file 'nosuch.c'" lines net.db --file nosuch.c
bad 2 "no statistic 'size'" lines net.db --columns size
bad 2 "nosuchfile: No such file" leaks net.db --suppressions nosuchfile
bad 2 'expected a whole number from 1 to 255' leaks net.db --error-exitcode 256
bad 2 "--skip 'nosuch'" report net.db --skip nosuch
bad 2 "no process 17" report net.db --process 17
bad 2 'no Python code' lines net.db --python-only
bad 2 'exclude each other' leaks net.db --python-only --native
bad 2 "--skip 'nosuch'" report net.db --html --skip nosuch
bad 2 'does not go with --process' report net.db --html --native
bad 2 'ask for one at a time' report net.db --segments --transfers
bad 2 '--segments goes with --device' report net.db --segments --by function
bad 2 '--transfers covers the whole run' report net.db --transfers --at peak
bad 2 "no device 'cuda:7'" report net.db --segments --device cuda:7
bad 2 '--callers belongs' report net.db --by line --callers 3
bad 2 'does not go with --by process' report net.db --by process --at 1s
bad 2 'the run ended at 1.250 s; --at end shows' report net.db --segments --at 10s
bad 2 'the run ended at 1.250 s; --at end shows' report net.db --names --at 10s
bad 2 'ask for one at a time' report net.db --names --segments
bad 2 '--names goes with --device' report net.db --names --by function
bad 2 '--by name and --by category go with --device' report net.db --by category --sort own
bad 2 '--names does not go with --from' report net.db --names --from 1ms
bad 2 '--plan belongs to --names' report net.db --plan
bad 2 "did you mean 'category'?" report net.db --by categry

# names that are missing are said beside what the others show
status=0
"$MEMPROF" lines net.db --func backward --func nosuch --func 'no*' --file '*.c' --file no.c >got 2>got.err || status=$?
equal "some names missing: status" 1 $status
contains "some names missing: what is there" got '## backward'
equal "some names missing" \
    "memprof: no function 'nosuch', 'no*' in this recording; try a pattern such as '*nosuch*', \
or 'memprof report --by function'" "$(cat got.err)"
"$MEMPROF" lines net.db --func backward --file '*.c' --file no.c >got 2>got.err || status=$?
contains "a file missing" got.err "no matching function in a file 'no.c'"
"$MEMPROF" lines net.db --func backward --func nosuch --json 2>got.err | python3 -m json.tool >/dev/null ||
    fail 'JSON with a missing name'

cp net.db itself.db
ln -s itself.db soft.db
ln itself.db hard.db
for name in itself.db ./itself.db soft.db hard.db "$PWD/itself.db"; do
    bad 2 "$name: is the recording itself; give the export another name with -o" export itself.db --format \
        torch-snapshot -o "$name"
    bad 2 "$name: is the recording itself; give the page another name with --html=PAGE" report itself.db --html \
        -o "$name"
    bad 2 "$name: is the recording itself" report itself.db --html="$name"
done
bad 2 'itself.db: is the recording itself' report soft.db --html -o itself.db
cmp net.db itself.db && cmp net.db hard.db && [ -L soft.db ] || fail "a recording was overwritten"
cp net.db other.db
ln -s other.db other-soft.db
for name in other.db other-soft.db; do
    bad 2 "$name: is a recording of memprof; it is left as it is" report net.db --html -o $name
    bad 2 "$name: is a recording of memprof; it is left as it is" report net.db --html=$name
    bad 2 "$name: is a recording of memprof; it is left as it is" diff net.db net.db --html=$name
    bad 2 "$name: is a recording of memprof; it is left as it is" export net.db --format torch-snapshot -o $name
done
cmp net.db other.db && [ -L other-soft.db ] || fail "another recording was overwritten"
bad 2 'no file given' sql
bad 2 'put it in quotes' sql net.db SELECT 1
bad 1 'only SELECT' sql net.db 'DELETE FROM site'
bad 1 'syntax error' sql net.db 'SELEKT'

status=0; "$MEMPROF" leaks net.db --error-exitcode 7 >/dev/null || status=$?
equal "--error-exitcode with leaks" 7 $status
printf 'leak:*\n' >all
status=0; "$MEMPROF" leaks net.db --error-exitcode 7 --suppressions all >/dev/null || status=$?
equal "--error-exitcode without" 0 $status
"$MEMPROF" --version >version
contains --version version 'memprof 0'
contains --version version libmemprof.so
contains --version version 'CUDA        yes'
status=0; "$MEMPROF" report net.db >/dev/full 2>full.err || status=$?
equal "status with a full disk" 1 $status
contains 'full disk' full.err 'memprof: standard output: No space left on device'
status=0; "$MEMPROF" report net.db --html -o /dev/full 2>full.err || status=$?
equal "status of a page on a full disk" 1 $status
contains 'a page on a full disk' full.err 'memprof: writing the page: No space left on device'
cmp net.db net.db && "$MEMPROF" sql net.db 'SELECT 1' >/dev/null
