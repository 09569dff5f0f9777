# git log -p of 600 commits: counts and bytes against libcount.so in the same process.
need git
sh "$ROOT/tests/bench/inputs.sh" "$BUILD/inputs-small" 20
eval "$(command_of "$BUILD/inputs-small/run-git")"
same_counts "$@"
at_least "allocations" 10000 "$(total alloc_count)"
