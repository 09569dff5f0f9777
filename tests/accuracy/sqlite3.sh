# sqlite3, 200,000 rows and an index: counts and bytes against libcount.so in the same process.
need sqlite3
sh "$ROOT/tests/bench/inputs.sh" "$BUILD/inputs-small" 20
eval "$(command_of "$BUILD/inputs-small/run-sqlite3")"
same_counts "$@"
at_least "allocations" 400000 "$(total alloc_count)"
