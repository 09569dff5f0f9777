# memprof advise on GPUs (simulated driver), tests/cuda/advise.cpp: what each rule saves is what its mended twin has
# less at its peak, and the twin is not told of. Expected peaks are those of the program's comments.
. "$ROOT/tests/cuda/lib.sh"
need python3
MIB=1048576
cat >found.py <<'END'
"""found.py FILE RULE KEY...: of each finding of the rule on cuda:0 the values, a line each."""
import json
import sys
for f in json.load(open(sys.argv[1]))["findings"]:
    if f["rule"] == sys.argv[2] and f["device"] == "cuda:0":
        print(*(f["evidence"].get(key, f.get(key)) for key in sys.argv[3:]))
END
# advise MODE [mended]: out.db, advise.txt and advise.json
advise() {
    record_ok "$SIM/programs/advise" "$@"
    "$MEMPROF" advise out.db >advise.txt
    "$MEMPROF" advise out.db --json >advise.json
}
found() { python3 found.py advise.json "$@"; }
# twin MODE RULE SEVERITY CLAIM PEAK-COLUMN PEAK MENDED (MiB)
twin() {
    advise "$1"
    equal "$1: peak" "$(($6 * MIB))" "$(column cuda:0 all "$5")"
    saves="$(((${6} - ${7}) * MIB)) $4 $(($6 * MIB))"
    [ "$4" != None ] || saves="None None None"
    equal "$1: what it saves" "$3 $saves" \
        "$(found "$2" severity saved_bytes saved peak_bytes)"
    equal "$1: nothing else on the GPU" "$2" "$(python3 -c '
import json
print(*(f["rule"] for f in json.load(open("advise.json"))["findings"] if f["device"] != "host"))')"
    cp out.db "$1.db"
    cp advise.json "$1.json"
    advise "$1" mended
    equal "$1: peak of the mended one" "$(($7 * MIB))" "$(column cuda:0 all "$5")"
    lacks "$1: the mended one" advise.txt "cuda:0"
}
twin early early warning 'at most' peak_active_bytes 80 48
equal "early: one block, from its birth to the peak" "$((32 * MIB)) 1" \
    "$(sqlite3 early.db "SELECT early_peak_bytes || ' ' || early_peak_count FROM site_touch WHERE early_peak_bytes")"
twin late late warning 'at most' peak_active_bytes 80 48
# the peak of the mended one is lower if the bytes are the same and stay so, which is not known: nothing is claimed
twin again again info None peak_active_bytes 64 16
equal "again: each of the four" "4 $((16 * MIB)) $((16 * MIB))" \
    "$(sqlite3 again.db "SELECT at_peak_count || ' ' || size_bytes || ' ' || upload_bytes FROM upload_again")"
twin pool gap warning 'at most' peak_reserved_bytes 112 64
twin pins pins warning 'at most' peak_reserved_bytes 32 17

equal "again: bytes that may be too many" $((48 * MIB)) "$(python3 -c '
import json
print(*(f["evidence"]["again_bytes"] for f in json.load(open("again.json"))["findings"]))')"

# without events the tables say the same, of these at least
for mode in early late again; do
    rm -f out.db
    "$MEMPROF" run -q --aggregate -o out.db -- "$SIM/programs/advise" $mode
    "$MEMPROF" advise out.db --json >advise.json 2>/dev/null
    "$MEMPROF" advise $mode.db --json >whole.json
    equal "$mode, without events" "$(python3 found.py whole.json $mode saved_bytes again_bytes)" \
        "$(found $mode saved_bytes again_bytes)"
done
# older files have none of it
for table in block_touch site_touch upload_again; do sqlite3 early.db "DROP TABLE $table"; done
"$MEMPROF" advise early.db >advise.txt || fail "an older file"
lacks "an older file" advise.txt "cuda:0"
