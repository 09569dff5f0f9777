# What keeps a recording from saying much is said, with the next step: code without lines or symbols, cut stacks.
need strip
cp "$SAMPLES/net" whole
cp whole names && strip -g names
cp whole bare && strip -s bare
for name in whole names bare; do
    record_ok ./$name
    "$MEMPROF" report out.db >$name.txt
    "$MEMPROF" report out.db --json >$name.json
done
lacks "a program with debug information" whole.txt '! '
contains "a program with names only" names.txt '! 100 % of the peak is in code without line information, most of it in names: install its -dbgsym package or set DEBUGINFOD_URLS'
contains "a program without symbols" bare.txt '! 100 % of the peak is in code without symbols, most of it in bare'
equal "in JSON" '0 1 1' "$(for name in whole names bare; do python3 -c 'import json, sys; print(len(json.load(sys.stdin)["advice"]))' <$name.json; done | paste -sd' ')"

# samples/net: pool_alloc is called by forward and others, and they by main: one frame is not enough for anything
RUN_OPTIONS='--depth 1'
record_ok ./whole
"$MEMPROF" report out.db >cut.txt
contains "cut stacks" cut.txt '% of the allocations have cut stacks, whose outer callers are not known: record again with a larger --depth'
