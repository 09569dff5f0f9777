# The peak of resident memory is the kernel's, however short it lasted: 48 MiB for less than two samples.
near() { # what expected actual, in KiB: the program's own last pages lie between
    at_least "$1" "$(($2 - 64))" "$3"
    at_most "$1" "$(($2 + 512))" "$3"
}
for ms in 0 100; do
    record_ok "$PROGRAMS/rss" 48 $ms
    true_kib=$(cat run.out)
    near "peak after $ms ms" "$true_kib" "$(value "SELECT peak_rss_bytes / 1024 FROM process")"
    equal "sampled" 0 "$(value "SELECT peak_rss_sampled FROM process")"
    near "timeline" "$true_kib" "$(value "SELECT max(rss_max_bytes) / 1024 FROM timeline WHERE device_id = 0")"
    "$MEMPROF" report out.db >report.txt
    contains "report" report.txt "peak RSS "
    lacks "report" report.txt "(sampled)"
    "$MEMPROF" report out.db --json >report.json
    near "report --json" "$true_kib" "$(($(sed -n 's/^"peak_rss_bytes": \([0-9]*\),$/\1/p' report.json) / 1024))"
    contains "report --json" report.json '"peak_rss_sampled": 0,'
    contains "report --json" report.json '"last_rss_bytes": '
done
# after the peak it held no more than before
at_most "resident after the peak, KiB" 16384 \
    "$(value "SELECT rss_last_bytes / 1024 FROM timeline WHERE device_id = 0 AND rss_last_bytes > 0
    ORDER BY level, time_ns DESC LIMIT 1")"

# which the report says beside it: of the run of 100 ms and more, as its last sample
contains "resident at the last sample" report.txt "$(value "SELECT printf(', %.2f MiB at the last sample',
    rss_last_bytes / 1048576.0) FROM timeline WHERE device_id = 0 AND level = 0 AND rss_last_bytes > 0 ORDER BY time_ns
    DESC LIMIT 1")"

# each image has its own
record_ok "$PROGRAMS/rss" 48 0 exec
first=$(head -n 1 run.out) second=$(tail -n 1 run.out)
near "before exec" "$first" "$(value "SELECT peak_rss_bytes / 1024 FROM process WHERE process_id = 1")"
near "after exec" "$second" "$(value "SELECT peak_rss_bytes / 1024 FROM process WHERE process_id = 2")"
at_most "after exec" $((first / 2)) "$second"

# a killed process can tell nothing, but the kernel says to its parent, memprof, how much it was, however short
for ms in 0 200; do
    record "$PROGRAMS/rss" 48 $ms kill
    equal "status" 137 $status
    near "killed after $ms ms" "$(cat run.out)" "$(value "SELECT peak_rss_bytes / 1024 FROM process")"
    equal "sampled" 0 "$(value "SELECT peak_rss_sampled FROM process")"
    near "timeline" "$(cat run.out)" "$(value "SELECT max(rss_max_bytes) / 1024 FROM timeline WHERE device_id = 0")"
    "$MEMPROF" report out.db >report.txt
    lacks "report" report.txt "(sampled)"
done
# one that had an image before
record sh -c "exec '$PROGRAMS/rss' 48 0 kill"
near "after an exec" "$(cat run.out)" "$(value "SELECT peak_rss_bytes / 1024 FROM process WHERE process_id = 2")"
equal "sampled" 0 "$(value "SELECT sum(peak_rss_sampled) FROM process")"
# of the child of a process, or of less than memprof itself was before, the last sample is the least that it was
record sh -c "'$PROGRAMS/rss' 48 200 kill; true"
equal "sampled" 1 "$(value "SELECT peak_rss_sampled FROM process WHERE process_id = 2")"
"$MEMPROF" report out.db >report.txt
grep -q "peak RSS >= [0-9.]* MiB (sampled[;)]" report.txt || fail "report of a killed child"
"$MEMPROF" report out.db --json >report.json
contains "report --json of a killed child" report.json '"peak_rss_sampled": 1,'
"$MEMPROF" info out.db >info.txt
contains "info" info.txt ">= "
"$MEMPROF" info --json out.db >info.json
contains "info --json" info.json '"peak_rss_sampled"'
record "$PROGRAMS/rss" 1 200 kill
equal "small: sampled" 1 "$(value "SELECT peak_rss_sampled FROM process")"
"$MEMPROF" report out.db >report.txt
grep -q "peak RSS >= [0-9.]* MiB (sampled)" report.txt || fail "report of a small one"
