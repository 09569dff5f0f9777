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
# What the first quarter took is the beginning. What follows has two halves: the second's median is no more than the
# first's, a tenth and 8 MiB. Medians, as one sample may be the only one that meets a moment at which a part is copied:
# 4 MiB more of the collector's, and a file more on the disk. That file's size all files may have more at any time, and
# they may be KEEP and this one. With it, the most that was seen stays within the same limit: nothing jumps at the end.
# shellcheck disable=SC2011,SC2012 # names of memprof's own
copy_kib=$(ls out.2*.db 2>/dev/null | xargs -r du -k | sort -n | tail -n 1 | cut -f1)
awk -v rows=$rows -v keep="$keep" -v copy_kib="${copy_kib:-0}" '
    function median(part, column, count, i, k, x, sorted) {
        for (i = 1; i <= count; i++) {
            x = seen[part, column, i]
            for (k = i; k > 1 && sorted[k - 1] > x; k--) sorted[k] = sorted[k - 1]
            sorted[k] = x
        }
        return sorted[int((count + 1) / 2)]
    }
    function compare(what, before, after, beside) {
        printf "%s: %d KiB, then %d KiB\n", what, before, after
        if (after > before * 1.1 + 8192 + beside) { print "FAIL: it grows"; bad = 1 }
    }
    { part = NR <= rows / 4 ? 0 : NR <= rows * 5 / 8 ? 1 : 2
      rows_of[part]++
      for (i = 2; i <= 5; i++) {
          seen[part, i, rows_of[part]] = $i
          if ($i > most[part, i]) most[part, i] = $i
          if ($i > most_of_all[i]) most_of_all[i] = $i } }
    END { if (rows < 8) { print "too short to say whether anything grows"; exit }
      split(" collector running_file all_files", name, " ")
      for (i = 2; i <= 4; i++) {
          beside = i == 4 ? copy_kib : 0
          compare(name[i - 1] ", median", median(1, i, rows_of[1]), median(2, i, rows_of[2]), beside)
          compare(name[i - 1] ", most", most[1, i], most[2, i], beside) }
      if (most_of_all[5] > keep + 1) { printf "FAIL: %d files are kept\n", most_of_all[5]; bad = 1 }
      exit bad }' table
# Totals are of the last part, and --keep removed others: of the run are the number of events, and what is live.
recorded=$("$memprof" sql --csv out.db "SELECT (SELECT value FROM meta WHERE key = 'event_count') || '|' || end_count ||
    '|' || end_active_bytes FROM v_total WHERE device = 'host' AND kind = 'heap'" | tail -n 1 | tr -d '\r')
echo "recorded events, blocks and bytes that are live: $recorded"
# what the C library itself allocates, and mappings, are not in the program's ledger
echo "$recorded|$(cat ledger)" | awk -F'|' '
    function is_near(recorded, counted, beside) { return recorded >= counted && recorded - counted < beside }
    { exit !(is_near($1, $4 + $6, 1000) && is_near($2, $4 - $6, 100) && is_near($3, $5 - $7, 100000)) }' ||
    { echo 'FAIL: not what the program counted'; exit 1; }
