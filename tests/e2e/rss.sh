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
done
# after the peak it held no more than before
at_most "resident after the peak, KiB" 16384 \
    "$(value "SELECT rss_last_bytes / 1024 FROM timeline WHERE device_id = 0 AND rss_last_bytes > 0
    ORDER BY level, time_ns DESC LIMIT 1")"

# each image has its own
record_ok "$PROGRAMS/rss" 48 0 exec
first=$(head -n 1 run.out) second=$(tail -n 1 run.out)
near "before exec" "$first" "$(value "SELECT peak_rss_bytes / 1024 FROM process WHERE process_id = 1")"
near "after exec" "$second" "$(value "SELECT peak_rss_bytes / 1024 FROM process WHERE process_id = 2")"
at_most "after exec" $((first / 2)) "$second"

# a killed process can tell nothing: the last sample counts, and is called one
record "$PROGRAMS/rss" 48 200 kill
equal "status" 137 $status
near "killed" "$(cat run.out)" "$(value "SELECT peak_rss_bytes / 1024 FROM process")"
equal "sampled" 1 "$(value "SELECT peak_rss_sampled FROM process")"
"$MEMPROF" report out.db >report.txt
contains "report" report.txt "(sampled)"
