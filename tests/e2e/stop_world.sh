# A program that stops its threads by signals wherever they are, as garbage collectors do: none may stand in what the
# recorder itself asked of the allocator, nor wait there for one that stands.
for mode in '' quiet; do
    "$PROGRAMS/stop_world" 0.1 $mode >/dev/null
    record_ok "$PROGRAMS/stop_world" 1 $mode
    at_least "stops" 2 "$(cut -d' ' -f1 run.out)"
    equal "blocks of the workers" "$(cut -d' ' -f2 run.out)" "$(by_function work | cut -d'|' -f1)"
    equal "freed" "$(cut -d' ' -f2 run.out)" "$(by_function work | cut -d'|' -f3)"
    at_least "samples of the heap" 2 "$(value "SELECT sum(value) FROM counter WHERE name = 'heap_sample'")"
    # an arena beside the first one for each worker: at least 132 KiB each
    at_least "reserved bytes" $((3 * 132 * 1024)) "$(total peak_reserved_bytes)"
done
