# Thousands of threads and deep recursion cost no unbounded memory, in the program or in the collector.
# alone: a collector that gets no time lets memory grow
peak() { # KiB of a command's largest process
    "$BUILD/bench/measure" "$@" 2>&1 >/dev/null | sed -n 's/.*max_rss_kib=\([0-9]*\).*/\1/p'
}
plain=$(peak "$PROGRAMS/threads_many" 3000)
with=$(peak "$MEMPROF" run -q -o out.db -- "$PROGRAMS/threads_many" 3000)
echo "  plain $plain KiB, with memprof (the largest of all processes) $with KiB"
at_most "MiB above plain with 3,000 threads, 16 at a time" 96 $(((with - plain) / 1024))
sound
