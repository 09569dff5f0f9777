# Random calls of the driver against the program's own ledger: totals, peaks of active and reserved bytes, and every
# state between; with seed 1 also what memprof.h says of each device, of both and of all after each call.
. "$ROOT/tests/cuda/lib.sh"
SIM_CUDA_DEVICES=2
export SIM_CUDA_DEVICES
# every state of a device that the program printed comes in the events, in order
states_in_events() {
    events "$1" | sums | awk '{ print $1 }' >have.txt
    awk -v d="$1" '$1 == "state" && $2 == d { print $3 }' run.out >want.txt
    awk 'NR == FNR { have[++n] = $1; next }
         { while (++at <= n && have[at] != $1); if (at > n) { print "state " FNR " (" $1 " bytes) is not in the events";
         exit } }' have.txt want.txt >missing.txt
    [ ! -s missing.txt ] || { cat missing.txt; fail "$1"; }
    at_least "$1: states" 100 "$(wc -l <want.txt)"
}
# cuda is both devices: sums, and the most that was live on both at once, which the program prints
of_type() {
    "$MEMPROF" report out.db --device cuda --json >type.json
    python3 -c 'import json
rows = json.load(open("type.json"))["totals"]
devices = {r["device"]: r for r in rows if r["kind"] == "all"}
a, b, both = (devices[name] for name in ("cuda:0", "cuda:1", "cuda"))
sums = ("alloc_count", "free_count", "alloc_bytes", "end_active_bytes", "end_count")
print(len(devices), all(both[k] == a[k] + b[k] for k in sums), both["peak_active_bytes"])' >type.txt
    equal "rows, sums, and the peak of both" "3 True $(sed -n 's/^both //p' run.out)" "$(cat type.txt)"
    for command in 'report --by line' 'report --at 1ms --by line' 'report --segments' 'report --transfers' \
    'report --names' leaks \
        lines advise 'report --from 1ms' 'check --max-peak 100G' 'diff out.db'; do
        "$MEMPROF" $command out.db --device cuda --json >type.json || fail "$command --device cuda"
        lacks "$command" type.json '"device": "host"'
    done
    "$MEMPROF" export --format torch-snapshot --device cuda -o type.pickle out.db 2>type.err
    "$MEMPROF" report out.db --device cuda --html=type.html >type.out
    contains 'the page' type.html '<p class="asked-devices">cuda: cuda:'
    "$MEMPROF" diff out.db out.db --device cuda --html=type.html >type.out
    bad 2 'it has: ' report out.db --device cud
    bad 2 'cuda:1' report out.db --device cuda:2 --html=none.html
}
for seed in 1 2 3; do
    for mode in memory pools; do
        echo "seed $seed, $mode"
        ask=
        [ $seed != 1 ] || ask=ask
        record "$SIM/programs/random" $seed 3000 $mode $ask
        equal "status" 0 $status
        if [ "$ask" ]; then
            sed -n '/^step /p' run.err
            asked=$(sed -n 's/^asked \([0-9]*\), .*/\1/p' run.out)
            at_least "figures asked for" 5900 "${asked:-0}"
            equal "that differ from the ledger" 0 "$(sed -n 's/^asked .* differs //p' run.out)"
            of_type
        fi
        balance
        equal "unmatched frees" 0 "$(value "SELECT sum(value) FROM counter WHERE name = 'unmatched_free'")"
        [ $mode = memory ] || sed -i '/ segment /d' run.out
        grep -v ' segment ' run.out >blocks.out
        grep ' segment ' run.out >segments.out || true
        same_ledger blocks.out
        while read -r _ device _ _ _ _ _ peak; do
            equal "$device reserved" "$peak" "$(column "$device" all peak_reserved_bytes)"
        done <segments.out
        for device in cuda:0 cuda:1; do states_in_events $device; done
    done
done
