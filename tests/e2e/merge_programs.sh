# Eight ranks of real programs as one: by every key, the sums of what each recording says.
. "$ROOT/tests/lib.sh"
need gawk python3

# rank NUMBER PROGRAM [ARG]...: NUMBER.db
rank() {
    RANK=$1
    export RANK
    shift
    "$MEMPROF" run -q -o '%q{RANK}.db' -- "$@" >run.out 2>&1 || { cat run.out; fail "run $*"; }
}
for count in 1 2 3; do
    rank $count gawk "BEGIN { for (i = 0; i < ${count}00; i++) a[i] = i \"x\"; n = asort(a, b) }"
done
rank 4 python3 -c 'import json; print(len(json.dumps(list(range(1000)))))'
rank 5 sort --parallel=2 /etc/passwd
if command -v xmllint >/dev/null; then rank 6 xmllint --version; else rank 6 sqlite3 :memory: 'SELECT 1'; fi
rank 7 sh -c 'ls -l / | sort | gawk "{ print }"'
rank 8 ls -l /usr/bin
"$MEMPROF" merge -o all.db '?.db' 2>merge.err || { cat merge.err; fail merge; }
equal 'ranks' '1,2,3,4,5,6,7,8' "$(DB=all.db sql 'SELECT group_concat(rank) FROM recording')"
DB=all.db
balance
peaks=0
for file in ?.db; do peaks=$((peaks + $(DB=$file total peak_active_bytes all))); done
equal 'sum of peaks' $peaks "$(total peak_active_bytes all)"
equal 'one instant' 1 "$(sql "SELECT least_bytes <= most_bytes AND most_bytes <= (SELECT peak_active_bytes FROM total
    WHERE device_id = 0 AND kind = 'all') AND least_bytes >= (SELECT max(peak_active_bytes) FROM recording_total)
    FROM common_peak")"
python3 "$ROOT/tests/e2e/merge.py" "$MEMPROF" all.db ?.db || fail 'sums'
