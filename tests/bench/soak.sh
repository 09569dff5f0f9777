# A recording that goes on for long, rotated: what the collector's memory and its files come to, and that they stay
# there. SECONDS_MOST (3600) and EVENTS (1000000000) end it, whichever comes first; ROTATE (64M), KEEP (2), PACE (0)
# events a second, 0: as fast as it can; a row each EVERY seconds (a hundredth of SECONDS_MOST).
# tests/bench/soak.sh MEMPROF BUILD
set -eu
memprof=$1 build=$2
seconds=${SECONDS_MOST:-3600} events=${EVENTS:-1000000000} rotate=${ROTATE:-64M} keep=${KEEP:-2} pace=${PACE:-0}
dir=$build/soak
rm -rf "$dir" && mkdir -p "$dir" && cd "$dir"
"$memprof" run -q -o out.db --rotate "$rotate" --keep "$keep" --no-symbols -- \
    "$build/bench/soak" "$seconds" "$events" "$pace" >ledger &
collector=$!
trap 'kill $collector 2>/dev/null || true' EXIT
every=${EVERY:-$((seconds / 100 + 1))} rows=0
# processor_s PID: what it used so far
processor_s() {
    awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); printf "%.1f", ($12 + $13) / hz }' "/proc/$1/stat" 2>/dev/null
}
echo '  seconds  collector KiB  running KiB  all files KiB  files  processor s: collector  program   load'
begun=$(date +%s)
while [ ! -s ledger ] && kill -0 $collector 2>/dev/null; do
    sleep $every
    rss=$(awk '/^VmRSS/ { print $2 }' /proc/$collector/status 2>/dev/null || true)
    [ -n "$rss" ] || break
    # shellcheck disable=SC2012 # names of memprof's own
    printf '%9d %14d %12d %14d %6d %23s %8s %6s\n' $(($(date +%s) - begun)) "$rss" \
        "$(du -ck out.db out.db-wal | tail -n 1 | cut -f1)" "$(du -sk . | cut -f1)" \
        "$(ls out.2*.db 2>/dev/null | wc -l)" "$(processor_s $collector)" \
        "$(processor_s "$(cut -d' ' -f1 /proc/$collector/task/$collector/children)")" \
        "$(cut -d' ' -f1 /proc/loadavg)" | tee -a table
    rows=$((rows + 1))
done
wait $collector
trap - EXIT
cat ledger
# what the first quarter took is the beginning; from then on neither grows by more than a tenth and 8 MiB
awk -v rows=$rows '
    { part = NR <= rows / 4 ? 0 : NR <= rows * 5 / 8 ? 1 : 2
      for (i = 2; i <= 4; i++) if ($i > most[part, i]) most[part, i] = $i }
    END { split(" collector running_file all_files", name, " ")
      for (i = 2; i <= 4 && rows >= 8; i++) {
          printf "%s: %d KiB at most, then %d KiB\n", name[i - 1], most[1, i], most[2, i]
          if (most[2, i] > most[1, i] * 1.1 + 8192) { print "FAIL: it grows"; bad = 1 } }
      if (rows < 8) print "too short to say whether anything grows"
      exit bad }' table
totals=$("$memprof" sql --csv out.db "SELECT alloc_count || '|' || alloc_bytes || '|' || free_count || '|' || free_bytes
    FROM v_total WHERE device = 'host' AND kind = 'heap'" | tail -n 1 | tr -d '\r')
echo "recorded: $totals"
# what the C library itself allocates is not in the program's ledger
echo "$totals|$(cat ledger)" | awk -F'|' '{ exit !($1 >= $5 && $1 - $5 < 100 && $3 >= $7 && $3 - $7 < 100) }' ||
    { echo 'FAIL: not what the program counted'; exit 1; }
