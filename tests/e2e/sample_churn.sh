# samples/churn
record_ok "$SAMPLES/churn"
equal "join, self" "200000|9600000|200000|200000|0|0" "$(by_function join)"
equal "pretty, self" "100000|6400000|100000|0|0|0" "$(by_function pretty)"
equal "peak" 112 "$(total peak_active_bytes)"
equal "peak blocks" 2 "$(total peak_active_count)"
