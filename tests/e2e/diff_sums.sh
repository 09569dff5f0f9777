# The rows of a diff add up to what the totals of the two recordings differ by, by every key.
. "$ROOT/tests/lib.sh"
need gawk python3

# take NAME PROGRAM [ARG]...: NAME.db
take() {
    name=$1
    shift
    "$MEMPROF" run -q -o "$name.db" -- "$@" >/dev/null 2>run.err || true
    [ -f "$name.db" ] || { cat run.err; fail "no recording of $*"; }
}
rows='with recursive c(x) as (select 1 union all select x + 1 from c where x < %d)
    insert into t select x, x * 2 from c;'
for count in 500 1500; do
    # shellcheck disable=SC2059
    take sqlite$count sqlite3 ':memory:' "create table t(a, b); $(printf "$rows" $count) select count(*) from t;"
    take gawk$count gawk "BEGIN { for (i = 0; i < $count; i++) a[i] = i \"x\"; n = asort(a, b) }"
    take python$count python3 -c "import json; x = [str(i) for i in range($count)]; print(json.dumps(x))"
    take tree$count sh -c "gawk 'BEGIN { for (i = 0; i < $count; i++) a[i] = i }'; sort /etc/passwd"
done
take ls ls -l /usr/bin
# these have packed stacks
take many30000 "$PROGRAMS/many_stacks" 30000
take many30500 "$PROGRAMS/many_stacks" 30500
equal 'packed' 2 "$(for count in 30000 30500; do
    sqlite3 many$count.db "SELECT 1 FROM packed WHERE table_name = 'site' LIMIT 1"
done | wc -l)"
take net "$SAMPLES/net"
take churn "$SAMPLES/churn"
take threads "$SAMPLES/threads"
take templates "$SAMPLES/templates"

# columns of the CSV, and of `total`: the sums that rows of every key have
query= totals=
for pair in at_peak_bytes=peak_active_bytes alloc_bytes=alloc_bytes alloc_count=alloc_count \
    temporary_count=temporary_count end_bytes=end_active_bytes; do
    column=${pair%=*}
    query="$query${query:+, }coalesce(sum(${column}_new - ${column}_old), 0)"
    totals="$totals${totals:+, }n.${pair#*=} - o.${pair#*=}"
done
pairs=0
# adds_up OLD NEW: by each key, the sums over the rows of new less old
adds_up() {
    pairs=$((pairs + 1))
    expected=$(sqlite3 "$2.db" "ATTACH '$1.db' AS old; SELECT $totals FROM main.total n JOIN old.total o
        USING(device_id, kind) WHERE device_id = 0 AND kind = 'all'")
    [ -n "$expected" ] || fail "$1, $2: no totals"
    for by in line function file module device stack op; do
        "$MEMPROF" diff "$1.db" "$2.db" --by $by --csv >rows.csv
        equal "$1, $2 by $by" "$expected" "$(sqlite3 :memory: -cmd '.import --csv rows.csv d' "SELECT $query FROM d")"
    done
    # what is in no row has one of its own: by operator alone
    "$MEMPROF" diff "$1.db" "$2.db" --top 0 >got
    lacks "$1, $2" got '(in no row)'
}
adds_up sqlite500 sqlite1500
adds_up gawk500 gawk1500
adds_up gawk1500 gawk500
adds_up python500 python1500
adds_up tree500 tree1500
adds_up sqlite500 gawk500
adds_up python500 ls
adds_up net churn
adds_up threads templates
adds_up templates net
adds_up churn tree500
adds_up many30000 many30500
equal pairs 12 $pairs

# kinds that peak at different times: each counts at its own peak, in the rows and in the totals
expected=$(sqlite3 ls.db "ATTACH 'gawk500.db' AS old; SELECT (SELECT sum(peak_active_bytes) FROM main.total
    WHERE kind <> 'all') - (SELECT sum(peak_active_bytes) FROM old.total WHERE kind <> 'all')")
for by in line stack device; do
    "$MEMPROF" diff gawk500.db ls.db --by $by --sort active.at_kind_peak --csv >rows.csv
    equal "at the kinds' peaks by $by" "$expected" \
        "$(sqlite3 :memory: -cmd '.import --csv rows.csv d' 'SELECT sum(difference) FROM d')"
done
