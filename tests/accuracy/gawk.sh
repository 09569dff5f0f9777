# gawk counting words: counts and bytes against libcount.so in the same process.
need gawk
sh "$ROOT/tests/bench/inputs.sh" "$BUILD/inputs-small" 20
eval "$(command_of "$BUILD/inputs-small/run-gawk")"
same_counts "$@"
at_least "allocations" 1000000 "$(total alloc_count)"
