# --also-json FILE: the text on standard output is that without it, FILE is what --json writes; --at now.
record_ok "$BUILD/samples/net"
for report in "report" "report --by line --top 3" "report --names" "report --segments" "lines --func forward"; do
    # shellcheck disable=SC2086
    "$MEMPROF" $report >text
    # shellcheck disable=SC2086
    "$MEMPROF" $report --json >json
    # shellcheck disable=SC2086
    "$MEMPROF" $report --also-json also >both || fail "$report"
    cmp -s text both || fail "$report: the text"
    cmp -s json also || fail "$report: JSON"
done
cp out.db before.db
"$MEMPROF" report --also-json out.db >said 2>said.err && fail "the recording was written over"
contains "the recording" said.err "is the recording itself"
cmp -s before.db out.db || fail "the recording changed"
"$MEMPROF" report --also-json /no/where/x >said 2>said.err && fail "nowhere"
contains "nowhere" said.err "memprof: /no/where/x: No such file or directory"
"$MEMPROF" report --at now >said 2>said.err && fail "--at now"
contains "--at now" said.err "the recording has ended; --at end is its last instant"
"$MEMPROF" export --format torch-snapshot --at now -o x >said 2>said.err && fail "export --at now"
contains "export --at now" said.err "the recording has ended"
"$MEMPROF" export --format torch-snapshot --at peak -o at >said 2>said.err || fail "export --at peak"
"$MEMPROF" export --format torch-snapshot --to peak -o to >said 2>said.err
cmp -s at to || fail "--at peak is --to peak"
