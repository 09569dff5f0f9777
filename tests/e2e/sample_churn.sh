# samples/churn
record_ok "$SAMPLES/churn"
equal "join, self" "200000|9600000|200000|200000|0|0" "$(by_function join)"
equal "pretty, self" "100000|6400000|100000|0|0|0" "$(by_function pretty)"
equal "peak" 112 "$(total peak_active_bytes)"
equal "peak blocks" 2 "$(total peak_active_count)"
"$MEMPROF" report out.db --by size --csv >sizes
equal "from 32 to 64 bytes" "200000,9600000,200000,200000" "$(grep '^host,all,32,64,' sizes | cut -d, -f5-8)"
equal "blocks of all sizes" "$(total alloc_count)" "$(tail -n +2 sizes | awk -F, '{ n += $5 } END { print n }')"
