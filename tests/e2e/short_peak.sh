# A short peak of a program with many stacks is looked at, near its highest: looks before it have not used up what they
# may take, and what they saw costs nothing until it is written.
# alone: a look that waits for a processor comes when the peak is over
highest=$((320 << 20)) # and what the program has beside it
record_ok "$PROGRAMS/short_peak"
at_least "stacks" 40000 "$(sites "SELECT count(*) FROM site")"
at_least "nine tenths of the peak's pages" $((highest / 10 * 9)) \
    "$(value "SELECT present_bytes FROM resident_scan WHERE is_peak")"
at_least "of its blocks" $((highest / 10 * 8)) "$(value "SELECT r.resident_bytes FROM resident_account r
    JOIN function f ON f.function_id = r.key_id
    WHERE r.scope = 'function' AND r.inclusive = 1 AND r.kind = 'all' AND f.plain_name = 'peak'")"
equal "the last look is another one" 0 "$(value "SELECT is_peak FROM resident_scan WHERE is_last")"
at_most "looks that were kept" 2 "$(value "SELECT count(*) FROM resident_scan")"
