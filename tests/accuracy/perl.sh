# perl, hashes of lists: counts and bytes against libcount.so in the same process.
need perl
sh "$ROOT/tests/bench/inputs.sh" "$BUILD/inputs-small" 20
eval "$(command_of "$BUILD/inputs-small/run-perl")"
same_counts "$@"
at_least "allocations" 100000 "$(total alloc_count)"
