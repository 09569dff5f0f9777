# Where a row has no own peak, a line under its table says why: in the report, by line, in `memprof lines`.
said='(own peaks are not known of what several stacks make'
tables() {
    "$MEMPROF" report out.db >report.txt
    "$MEMPROF" report out.db --by line >line.txt
    "$MEMPROF" report out.db --by process >process.txt
    "$MEMPROF" lines out.db --func forward >lines.txt
}
record_ok "$SAMPLES/net"
tables
for file in report.txt line.txt process.txt lines.txt; do lacks "all are known" $file "$said"; done
RUN_OPTIONS=--aggregate
record_ok "$SAMPLES/net"
tables
for file in report.txt line.txt lines.txt; do
    contains "without events" $file "$said: not all events were kept)"
    equal "said once in $file" 1 "$(grep -cF "$said" $file)"
done
lacks "of one thread it is known" process.txt "$said"
"$MEMPROF" report out.db --by line --json >rows.json
lacks "in JSON" rows.json "$said"
# a recording of which the sums were too much work, as many small objects of Python make it
RUN_OPTIONS=
record_ok "$SAMPLES/net"
sqlite3 out.db "INSERT INTO meta VALUES('own_peak_incomplete', 'a reason'); UPDATE account SET own_peak_bytes = NULL"
tables
contains "why" line.txt "$said: a reason)"
