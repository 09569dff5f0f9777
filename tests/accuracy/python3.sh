# python3 with the C allocator: counts and bytes against libcount.so in the same process.
need python3
sh "$ROOT/tests/bench/inputs.sh" "$BUILD/inputs-small" 20
eval "$(command_of_python)"
same_counts "$@"
at_least "allocations" 1000000 "$(total alloc_count)"
