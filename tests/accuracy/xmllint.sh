# xmllint, a document of 5 MB: counts and bytes against libcount.so in the same process.
need xmllint
sh "$ROOT/tests/bench/inputs.sh" "$BUILD/inputs-small" 20
eval "$(command_of "$BUILD/inputs-small/run-xmllint")"
same_counts "$@"
at_least "allocations" 400000 "$(total alloc_count)"
