# Recordings that are not complete: without symbols, on a read-only file system, still being recorded, left by a killed
# memprof.
state() { sqlite3 "$1" "SELECT value FROM meta WHERE key = 'state'"; }

"$MEMPROF" run -q --no-symbols -o plain.db -- "$SAMPLES/net" >/dev/null
equal 'state without symbols' recorded "$(state plain.db)"
cp plain.db copy.db
"$MEMPROF" lines plain.db --func forward >got
contains 'lines of a file without symbols' got 'pool_alloc('
equal 'finished in place' complete "$(state plain.db)"

mkdir fixed
cp copy.db fixed/copy.db
if unshare -m true 2>/dev/null; then
    unshare -m sh \
        -c 'mount --bind fixed fixed && mount -o remount,ro,bind fixed &&
        exec "$MEMPROF" lines fixed/copy.db --func forward' >got2 || fail 'a report on a read-only file system'
    sed 's,fixed/,,' got2 | cmp got - || fail 'the report differs on a read-only file system'
    equal 'not touched' recorded "$(state fixed/copy.db)"
fi

# a report while the program runs: numbers up to now, the file left alone
"$MEMPROF" run -q -o live.db -- sh -c 'exec sleep 6' &
run=$!
for i in 1 2 3 4 5 6 7 8 9 10; do
    sleep 0.3
    [ -s live.db ] && [ "$(state live.db 2>/dev/null)" = recording ] && break
done
sleep 1.5
"$MEMPROF" report live.db >got 2>got.err || { cat got.err; fail 'a report on a live recording'; }
contains 'a live recording' got 'still being recorded'
equal 'live.db is still recorded' recording "$(state live.db)"
wait $run
equal 'at the end' complete "$(state live.db)"
"$MEMPROF" report live.db >got
lacks 'at the end' got 'still being recorded'

# memprof is killed: the program ends well, the next report finishes the file and says that it is partial
"$MEMPROF" run -q -o killed.db -- sh -c '"$0" 1; sleep 4; echo done >ended' "$SAMPLES/net" >/dev/null 2>&1 &
run=$!
sleep 3
kill -9 $run
wait $run || true
"$MEMPROF" report killed.db >got 2>got.err || { cat got.err; fail 'a report on the file of a killed memprof'; }
contains 'a killed memprof' got '! partial recording'
"$MEMPROF" info killed.db >got_info
equal 'its state in info' 'state partial' "$(grep '^state' got_info | tr -s ' ')"
contains 'a killed memprof' got pool_alloc
for command in report info; do
    "$MEMPROF" $command killed.db --json | python3 -c 'import json, sys; d = json.load(sys.stdin)
assert any("partial" in n for n in d["notes"]), d["notes"]
assert d["state"] == "partial", d["state"]' || fail "notes and state in JSON of $command"
done
for i in 1 2 3 4 5 6 7 8 9 10; do [ -f ended ] && break; sleep 0.5; done
[ -f ended ] || fail 'the program did not end well'

# -o with patterns
RANK=../3 "$MEMPROF" run -q -o 'o-%q{RANK}-%%.db' -- true
[ -f 'o-.._3-%.db' ] || fail "-o with %q: $(ls)"
"$MEMPROF" run -q -o 'o-%p.db' -- true && ls o-[0-9]*.db >/dev/null || fail '-o with %p'
