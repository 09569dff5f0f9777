# run --torch-names against what PyTorch says of each tensor: tied weights, an LSTM's in one buffer, views that overlap,
# views of views and of other types, gradients and what an optimizer keeps.
python=/usr/bin/python3
has_modules "$python" torch || skip "no torch for $python"
"$MEMPROF" run -q -o out.db --paused --torch-names --python-module "$python" "$ROOT/tests/programs/torch_names.py" \
    ledger.json
"$MEMPROF" report out.db --names --top 0 --json >names.json
"$python" - ledger.json out.db names.json <<'END'
import json, sqlite3, sys
ledger = json.load(open(sys.argv[1]))
db = sqlite3.connect(sys.argv[2])
live = {}
for name, *row in db.execute("SELECT name, block_address, address - block_address, shape, stride, item_bytes, category "
                             "FROM block_name n JOIN process p USING(process_id) WHERE free_ns IS NULL OR free_ns >= "
                             "(SELECT time_ns FROM teardown t WHERE t.process_id = n.process_id)"):
    live[name] = list(row)
assert live == ledger, (live, ledger)
report = json.load(open(sys.argv[3]))
assert sorted(n["name"] for n in report["names"]) == sorted(ledger), report["names"]
storages = {address for address, *_ in ledger.values()}
assert report["named_blocks"] == len(storages), (report["named_blocks"], storages)
shared = {n["name"]: n["shared_with"] for n in report["names"] if n["shared_with"]}
assert shared == {"out.weight": "embed.weight", "out.weight.grad": "embed.weight.grad", "mask1": "mask0",
                  "mask2": "mask0", "mask3": "mask0", "across": "mask0", "high": "low", "nested": "low", "ints": "low",
                  "pairs": "low", "lstm.weight_hh_l0": "lstm.weight_ih_l0", "lstm.bias_ih_l0": "lstm.weight_ih_l0",
                  "lstm.bias_hh_l0": "lstm.weight_ih_l0"}, shared
END
equal "categories" "buffer,69632,2 gradient,272640,3 optimizer,545292,9 parameter,274944,4" \
    "$("$MEMPROF" report out.db --by category --csv | awk -F, 'NR > 1 && $5 > 0 { print $2 "," $3 "," $4 }' | sort |
        paste -sd' ')"
# Who names takes next to nothing: a list of all of Python's objects was a part of the peak (torch alone makes 100,000).
largest=$("$MEMPROF" report out.db --by file --csv --sort alloc.largest --top 0 | "$python" -c '
import csv, sys
print(max(int(r["largest_bytes"]) for r in csv.DictReader(sys.stdin) if "memprof-names-" in r["file"]))')
at_most "largest block of who names" 100000 "$largest"

# Where there is nothing to name, a line says so, and the program is as it was.
"$MEMPROF" run -o none.db --torch-names "$python" -c 'print("hello")' >none.txt 2>none.err
equal "output" hello "$(cat none.txt)"
contains "nothing was named" none.err "--torch-names: nothing was named: no process imported torch"

# The page by category over time, with activations and what backward makes, at each of its instants.
"$MEMPROF" report out.db --html=page.html >/dev/null
python3 "$ROOT/tests/page/categories.py" page.html out.db "$MEMPROF" >most.txt || fail "the page's categories"
contains "activations" most.txt "activation "
contains "parameters" most.txt "parameter 274944"

# Nothing is wrong with its names: what is tied stays so, and the views of the buffer are all of it.
"$MEMPROF" advise out.db >advise.txt
lacks "tied weights" advise.txt 'Sharing came apart'
lacks "views of all of a buffer" advise.txt 'Views keep a block'

# Each part of the module is a range while it runs: what a Linear of 64 x 64 makes of 32 rows is all that it makes.
equal "ranges" "Net 5,embed 5,hidden 5,out 5" "$(sqlite3 out.db "SELECT name || ' ' || count(*) FROM mark WHERE
    coalesce(domain, '') NOT IN ('pytorch', 'pause') AND name NOT LIKE 'aten.%' GROUP BY name ORDER BY name" |
    paste -sd,)"
equal "tensors of a part" "5 of $((32 * 64 * 4))" "$("$MEMPROF" sql --csv out.db "SELECT count(*), min(size_bytes) FROM
    v_event e JOIN mark m ON m.name = 'hidden' AND e.time_ns BETWEEN m.start_ns AND m.end_ns WHERE e.op = 'alloc' AND
    e.hook = 'posix_memalign'" | tail -1 | sed 's/,/ of /')"
"$MEMPROF" report out.db --every hidden --csv >every.csv
equal "executions" 5 "$(tail -n +2 every.csv | wc -l)"

# Each operator is a range by its name, and numbered: three of a Linear, one that fails; each makes 32 x 64 floats.
equal "operators" "aten.addmm.default 3 of 3,aten.mm.default 1 of 1,aten.zeros.default 6 of 6" "$(sqlite3 out.db "SELECT
    name || ' ' || count(*) || ' of ' || count(end_ns) FROM mark WHERE name IN ('aten.addmm.default', 'aten.mm.default',
    'aten.zeros.default') GROUP BY name ORDER BY name" | paste -sd,)"
equal "what one makes" "1 of $((32 * 64 * 4))" "$("$MEMPROF" sql --csv out.db "SELECT count(*), sum(size_bytes) FROM
    v_event e JOIN (SELECT * FROM mark WHERE name = 'aten.addmm.default' ORDER BY start_ns LIMIT 1 OFFSET 2) m ON
    e.time_ns BETWEEN m.start_ns AND m.end_ns WHERE e.op = 'alloc' AND e.hook = 'posix_memalign'" | tail -1 |
    sed 's/,/ of /')"
"$MEMPROF" report out.db --every 'aten.*' --top 0 >every.txt
equal "running numbers" "#1 #2 #3" "$(grep -o 'aten.addmm.default#[0-9]*' every.txt | grep -o '#.*' | paste -sd' ')"
"$MEMPROF" lines out.db --during 'aten.addmm.default#3' >lines.txt
contains "one of them" lines.txt "Window: aten.addmm.default, #3 of 3"

# operators are those of the stacks, whichever functions are skipped
"$MEMPROF" report out.db --by op --csv >whole
contains "phases" whole ,forward,
"$MEMPROF" report out.db --by op --csv --skip Net.forward | cmp - whole || fail "operators with --skip"
