# A training script on PyTorch: Python's lines, operators and phases hold exactly the bytes that the script knows of its
# tensors (element_size * nelement); tensors' data come through posix_memalign.
python=/usr/bin/python3
need python3
has_modules "$python" torch ||
    skip "Debian's python3-torch is not installed"
script=$ROOT/samples/train.py
"$python" "$script" --steps 3 --ledger >alone || fail "alone"
"$MEMPROF" run -q -o out.db --torch-names -- "$python" "$script" --steps 3 --ledger >ledger 2>err || {
    cat err
    fail "under memprof"
}
equal "the script's own figures" "$(cat alone)" "$(cat ledger)"
known() { # NAME: bytes
    python3 -c 'import json, sys; print(json.load(open("ledger"))["bytes"][sys.argv[1]])' "$1"
}
line_of() { grep -n "$1" "$script" | cut -d: -f1; }
# Bytes of tensors' data, by one look at all events. scores has the same shape as weights, and so has no other tensor of
# its line: q * scale and the copies are smaller.
tensors=$("$MEMPROF" sql --csv out.db "WITH t AS (SELECT size_bytes, f.path LIKE '%/train.py' AS ours, l.line,
        o.name, o.phase
    FROM v_event e JOIN site_line USING(site_id) JOIN line l USING(line_id) JOIN file f USING(file_id)
    LEFT JOIN site_op USING(site_id) LEFT JOIN op o USING(op_id) WHERE e.op = 'alloc' AND e.hook = 'posix_memalign')
    SELECT sum(size_bytes) FILTER (WHERE ours AND line = $(line_of 'torch.softmax')),
        sum(size_bytes) FILTER (WHERE ours AND line = $(line_of 'scores = ') AND size_bytes = 32*4*48*48*4),
        sum(size_bytes) FILTER (WHERE ours AND name = 'aten::gelu' AND phase = 'forward'
            AND size_bytes = 32*48*256*4),
        sum(size_bytes) FILTER (WHERE phase = 'optimizer' AND name = 'aten::empty_strided') FROM t" |
    tail -n 1 | tr -d '\r')
equal "softmax's line, scores, gelu, Adam's moments" \
    "$(known weights),$(known scores),$(known activated),$(($(known 'first moments') + $(known 'second moments')))" \
    "$tensors"
equal "its module" "Sorter.Block" \
    "$("$MEMPROF" sql --csv out.db "SELECT DISTINCT module FROM op WHERE name = 'aten::gelu' AND phase = 'forward'" |
    tail -n 1)"
# three steps: forward, backward, optimizer, in that order
equal "phases" "forward Sorter,backward,optimizer,forward Sorter,backward,optimizer,forward Sorter,backward,optimizer" \
    "$("$MEMPROF" sql --csv out.db \
    "SELECT group_concat(name) FROM (SELECT name FROM mark WHERE domain = 'pytorch' ORDER BY start_ns)" | tail -n 1 |
    tr -d '"')"
"$MEMPROF" report out.db --by op >table || fail "report --by op"
grep -q 'aten::_softmax  *forward  *Sorter\.Block\.Attention$' table || { cat table; fail "no softmax in forward"; }
grep -q 'aten::mm  *backward' table || { cat table; fail "no mm in backward"; }
# what grows in forward is released in backward: a line of forward has no net growth, and something was live there at
# the peak
"$MEMPROF" lines out.db --func 'Attention.forward' --columns net.growth,alloc.bytes >lines || {
    cat lines
    fail "lines"
}
contains "lines" lines 'weights = torch.softmax'
# what is live there as the interpreter begins to end is PyTorch's own, and goes with it; the smallest tensor has 1 MiB
softmax() { # COLUMN of v_leak
    "$MEMPROF" sql --csv out.db "SELECT coalesce(sum($1), 0) FROM v_leak
        WHERE device = 'host' AND file LIKE '%/train.py' AND line = $(line_of 'torch.softmax')" | tail -n 1
}
at_most "bytes of softmax as the interpreter ends" 65536 "$(softmax end_bytes)"
equal "bytes of softmax that live on" 0 "$(softmax 'end_bytes - torn_down_bytes')"
# the second backward pass alone: nothing of another phase allocates in it; forward has left the weights, and what goes
# into and comes out of gelu, a third of those of three steps, which is let go
saved=$((($(known weights) + $(known hidden) + $(known activated)) / 3))
"$MEMPROF" report out.db --by op --during 'pytorch:backward#2' --csv >window
python3 - $saved <<'END' || fail "the window of a backward pass: $(cat window)"
import collections, csv, sys
saved = int(sys.argv[1])
allocs, start, end = (collections.Counter() for _ in range(3))
for r in csv.DictReader(open("window")):
    allocs[r["phase"]] += int(r["alloc_count"])
    start[r["phase"]] += int(r["start_bytes"])
    end[r["phase"]] += int(r["end_bytes"])
print("  allocations by phase", dict(allocs), "forward", start["forward"], "->", end["forward"])
assert allocs["backward"] > 0 and allocs["forward"] == allocs["optimizer"] == 0
assert start["forward"] >= saved and end["forward"] <= start["forward"] - saved, saved
END
# names of all that the optimizer steps over, among the packed stacks of the import: at the peak, which is in the last
# backward pass; Adam's counts of steps are tensors of 4 bytes, one a parameter
steps=$(python3 -c 'import json; print(json.load(open("ledger"))["count"]["parameters"] * 4)')
equal "names at the peak" \
    "optimizer,$(($(known 'first moments') + $(known 'second moments') + steps)) parameter,$(known parameters)" \
    "$("$MEMPROF" report out.db --by category --at peak --csv |
        awk -F, '$2 == "parameter" || $2 == "optimizer" { print $2 "," $3 }' | sort | paste -sd' ')"
