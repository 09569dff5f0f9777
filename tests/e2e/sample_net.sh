# samples/net: the numbers that its comment states.
record_ok "$SAMPLES/net"
equal "status" 0 $status
equal "totals" "216|216|7472128|7472128|0|0" \
    "$(sql "SELECT alloc_count, free_count, alloc_bytes, free_bytes, end_count, end_active_bytes FROM v_total
    WHERE kind = 'heap'")"
equal "peak" 963072 "$(total peak_active_bytes)"
equal "peak of all kinds" 963072 "$(total peak_active_bytes all)"
# self: the scratch is forward's own, 104 temporaries; the pool's blocks are pool_alloc's
equal "forward, self" "104|20992|104|104|0|0" "$(by_function forward)"
equal "pool_alloc, self" "5|611840|5|0|0|0" "$(by_function pool_alloc)"
equal "update, self" "100|6553600|100|100|0|0" "$(by_function update)"
# with callees: 4 of the pool's 5 blocks were asked for by forward, the fifth by backward
equal "forward, total" "108|600064|108|104|0|0" "$(by_function forward 1)"
equal "backward, total" "1|32768|1|0|0|0" "$(by_function backward 1)"
line() { # pattern in net.c -> its number
    awk -v p="$1" 'index($0, p) { print NR; exit }' "$ROOT/samples/net.c"
}
per_line() {
    sql "SELECT sum(alloc_count), sum(alloc_bytes) FROM v_line_total
        WHERE kind = 'heap' AND function LIKE 'forward%' AND file LIKE '%samples/net.c' AND line = $1"
}
equal "hidden" "2|557056" "$(per_line "$(line 'a.hidden = pool_alloc')")"
equal "out" "2|22016" "$(per_line "$(line 'a.out = pool_alloc')")"
equal "scratch" "104|20992" "$(per_line "$(line 'float *scratch = malloc')")"
# at the peak update holds its step, forward what the pool keeps for it
equal "at peak: update" 65536 \
    "$(value "SELECT sum(at_peak_bytes) FROM v_line WHERE kind = 'heap' AND function LIKE 'update%'")"
equal "at peak: forward with callees" 579072 \
    "$(value "SELECT sum(at_peak_bytes) FROM v_line_total WHERE kind = 'heap' AND function LIKE 'forward%'")"
equal "largest block" 524288 "$(value "SELECT max(size_bytes) FROM block")"
equal "timeline's maximum" 963072 "$(value "SELECT max(active_max_bytes) FROM timeline WHERE level = 0")"
equal "recorded peak" 963072 \
    "$(value "SELECT value_bytes FROM peak WHERE kind = 'all' AND what = 'active' AND rank = 0")"
equal "steps" 100 "$(value "SELECT count(*) FROM mark WHERE name = 'step' AND is_range = 1 AND end_ns >= start_ns")"
equal "validations" 4 "$(value "SELECT count(*) FROM mark WHERE name = 'validation' AND is_range = 0")"

# the host has its layers where there is no GPU
equal "layers of the host" "host last,host looked at,host most used" \
    "$(sql "SELECT group_concat(v) FROM (SELECT device || ' ' || instant AS v FROM v_layer ORDER BY 1)")"
equal "used is the largest RSS" "$(value "SELECT max(rss_last_bytes) FROM timeline WHERE level = 0")" \
    "$(value "SELECT max(used_bytes) FROM v_layer WHERE instant = 'most used'")"
"$MEMPROF" report out.db --json >report.json
equal "its layers in JSON, as the page has them" "$(sql "SELECT printf('%s %d %d %d %d', instant, time_ns, active_bytes,
    used_bytes, coalesce(untracked_bytes, -1)) FROM v_layer ORDER BY instant")" "$(python3 -c '
import json
for l in sorted(json.load(open("report.json"))["layers"], key=lambda l: l["instant"]):
    outside = l["untracked_bytes"]
    print(l["instant"], l["time_ns"], l["active_bytes"], l["used_bytes"], -1 if outside is None else outside)')"
equal "what is not tracked only a look tells" "host looked at" "$(sql "SELECT device || ' ' || instant FROM v_layer
    WHERE untracked_bytes IS NOT NULL")"
equal "as its rows say" "$(value "SELECT sum(resident_bytes) FROM v_resident WHERE what IN ('file', 'anonymous',
    'stack', 'memprof', 'shared')")" "$(value "SELECT untracked_bytes FROM v_layer WHERE instant = 'looked at'")"

"$MEMPROF" report out.db >report.txt
contains "report" report.txt 940.50
"$MEMPROF" lines out.db --func forward >lines.txt
contains "lines" lines.txt 'a.hidden = pool_alloc'
# the active bytes when the validation's hidden layer, output and scratch were allocated: 285,696 + 67,072 + 524,288 and
# on
for peak in 856.50K 876.50K 878.50K; do
    contains "lines" lines.txt $peak
done
"$MEMPROF" leaks out.db >leaks.txt
"$MEMPROF" info out.db >info.txt
contains "info" info.txt samples/net
