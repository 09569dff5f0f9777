# Inputs and outputs of a merge: damaged and partial files, many stacks, what is never overwritten.
. "$ROOT/tests/lib.sh"
need python3

merge() { "$MEMPROF" merge "$@" 2>merge.err || { cat merge.err; fail "merge $*"; }; }
# merge_fails STATUS TEXT ARGUMENT...
merge_fails() {
    expected=$1 text=$2
    shift 2
    status=0
    "$MEMPROF" merge "$@" 2>merge.err || status=$?
    equal "status of merge $*" "$expected" $status
    contains "merge $*" merge.err "$text"
}
take() { "$MEMPROF" run -q -o "$@" >run.out 2>&1 || { cat run.out; fail "run $*"; }; }
# of FILE EXPRESSION
of() { sqlite3 -readonly "$1" "SELECT $2 FROM v_total WHERE device = 'host' AND kind = 'all'"; }

take a.db "$PROGRAMS/ranks" 0
take b.db "$PROGRAMS/ranks" 1
take c.db "$PROGRAMS/ranks" 2

# --- outputs --------------------------------------------------------------------------------------------------------
cp a.db a.copy
merge_fails 2 'is one of the recordings' -o a.db a.db b.db
ln -s a.db link.db
merge_fails 2 'is one of the recordings' -o link.db a.db b.db
merge_fails 2 'is one of the recordings' -o a.db '*.db'
cmp a.db a.copy || fail 'an input was changed'
rm link.db
echo 'my notes' >notes.db
merge_fails 2 'is no recording of memprof; it is left as it is' -o notes.db a.db b.db
equal 'notes' 'my notes' "$(cat notes.db)"
rm notes.db
merge_fails 2 'no output given' a.db b.db
merge_fails 2 'no recording given' -o all.db
merge_fails 1 'no such file, and none that matches' -o all.db 'x*.db'
merge_fails 1 'none of the files could be read' -o all.db nothing.db
[ ! -e all.db ] || fail 'an output of nothing'
merge -o all.db a.db b.db
equal 'two' 3000 "$(of all.db end_active_bytes)"
merge -o all.db a.db b.db c.db
equal 'three' 6000 "$(of all.db end_active_bytes)"
equal 'the older one' 3000 "$(of all.db.old end_active_bytes)"
merge_fails 2 'is one of the recordings' -o all.db all.db.old c.db
equal 'nothing else is left' 0 "$(find . -name '*merge-*' | wc -l)"

# --- inputs that are not whole --------------------------------------------------------------------------------------
echo 'no recording' >text.db
head -c 300000 /dev/zero >zero.db
size=$(wc -c <b.db)
head -c $((size * 9 / 10)) b.db >cut.db
merge -o some.db a.db text.db zero.db cut.db nothing.db c.db
for file in text.db zero.db cut.db nothing.db; do contains named merge.err "$file: "; done
equal 'all but those' 1 "$(sqlite3 some.db "SELECT count(*) > 0 FROM recording WHERE path = 'a.db'")"
equal 'live at the end, with what is left of it' 6000 "$(of some.db end_active_bytes)"
merge -o torn.db cut.db
equal 'of it alone' 2000 "$(of torn.db end_active_bytes)"
equal 'sound' ok "$(sqlite3 torn.db 'PRAGMA integrity_check')"
merge -o text-one.db text.db a.db
cmp text-one.db a.db || fail 'what is left is one recording, which is copied'

# a table that is damaged: the others are taken
cp b.db bad.db
sqlite3 bad.db "PRAGMA writable_schema = 1; DELETE FROM sqlite_schema WHERE name = 'size_class'"
merge -o bad-all.db a.db bad.db c.db
contains 'named' merge.err 'bad.db'
equal 'the rest of it' 6000 "$(of bad-all.db end_active_bytes)"
equal 'said' 1 "$(sqlite3 bad-all.db "SELECT count(*) FROM meta WHERE key = 'partial' AND value LIKE '%bad.db%'")"
equal 'of the recording' bad.db "$(sqlite3 bad-all.db 'SELECT path FROM recording WHERE partial IS NOT NULL')"
equal 'its name once' 'bad.db: no such table: size_class|no such table: size_class' "$(sqlite3 bad-all.db \
    "SELECT value, partial FROM meta, recording WHERE key = 'partial' AND partial IS NOT NULL")"
contains 'once' merge.err 'memprof: bad.db: no such table: size_class; taken as far as it goes'

# what is copied to and from blocks of GPUs: sums by site, rows by block and upload
for file in a b; do
    cp $file.db touch-$file.db
    sqlite3 touch-$file.db "INSERT INTO site_touch
        SELECT site_id, 1, 2, 3, 4, 5, 6, 7, 8, 9223372036854775807 FROM site;
        INSERT INTO block_touch SELECT block_id, 5, alloc_ns, 'write', free_ns, 'read' FROM block WHERE free_ns > 0;
        INSERT INTO upload_again SELECT 1, site_id, 1, 2, 3, 4, 5 FROM site LIMIT 1"
done
merge -o touch.db touch-a.db touch-b.db
equal 'by site' '2|4|6|8|10|12|14|16|4611686018427387904' "$(sqlite3 touch.db 'SELECT DISTINCT block_count, block_bytes,
    lifetime_ns, before_ns, after_ns, early_peak_count, early_peak_bytes, late_peak_count, late_peak_bytes
    FROM site_touch')"
equal 'by block' "$(($(sqlite3 touch-a.db 'SELECT count(*) FROM block_touch') +
    $(sqlite3 touch-b.db 'SELECT count(*) FROM block_touch')))|0" \
    "$(sqlite3 touch.db 'SELECT count(*), sum(first_ns <> alloc_ns OR last_ns <> free_ns) FROM block_touch
    JOIN block USING(block_id)')"
equal 'uploads' '2|2' "$(sqlite3 touch.db 'SELECT count(*), count(DISTINCT process_id) FROM upload_again')"

# the collector is killed: what is in the file counts
"$MEMPROF" run -q -o killed.db -- "$PROGRAMS/many_stacks" 2000 wait >many.out 2>&1 &
pid=$!
for _ in $(seq 200); do
    [ -s many.out ] && [ "$(sqlite3 killed.db 'SELECT CAST(total(alloc_count) AS INTEGER) FROM total')" -gt 0 ] && break
    sleep 0.05
done 2>/dev/null
program=$(sqlite3 killed.db 'SELECT min(pid) FROM process')
kill -9 $pid
wait $pid || true
kill -9 "$program" 2>/dev/null || true
merge -o killed-all.db a.db killed.db b.db
contains 'partial' merge.err 'killed.db'
equal 'taken as far as it goes' 1 "$(sqlite3 killed-all.db "SELECT k.alloc_count > 0 AND t.alloc_count =
    k.alloc_count + 102 + 203 FROM total t, (SELECT alloc_count FROM v_recording WHERE path = 'killed.db' AND
    device = 'host') k WHERE t.device_id = 0 AND t.kind = 'all'")"
equal 'said' killed.db "$(sqlite3 killed-all.db 'SELECT path FROM recording WHERE partial IS NOT NULL')"

# --- many stacks, which are packed ----------------------------------------------------------------------------------
take many1.db "$PROGRAMS/many_stacks" 25000
take many2.db "$PROGRAMS/many_stacks" 26000
take many3.db --no-symbols "$PROGRAMS/many_stacks" 3000
merge -o many.db many1.db many2.db many3.db
equal 'packed' site "$(sqlite3 many.db "SELECT DISTINCT table_name FROM packed WHERE table_name = 'site'")"
equal 'sound file' ok "$(sqlite3 many.db 'PRAGMA integrity_check')"
DB=many.db
balance
python3 "$ROOT/tests/e2e/merge.py" --no-stacks "$MEMPROF" many.db many1.db many2.db many3.db ||
    fail 'sums of packed sites'
cp many1.db twin.db
merge -o twins.db many1.db twin.db
equal 'stacks of twins are one' "$(DB=many1.db sites 'SELECT count(*) FROM stack')" \
    "$(DB=twins.db sites 'SELECT count(*) FROM stack')"
equal 'sites of twins' "$(DB=many1.db sites 'SELECT 2 * sum(alloc_bytes) FROM site')" \
    "$(DB=twins.db sites 'SELECT sum(alloc_bytes) FROM site')"
