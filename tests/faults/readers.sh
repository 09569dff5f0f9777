# Others who read the file while it is begun, written and finished: the program runs, the file is whole, nobody is told
# that it is not.
poll() { while [ ! -e enough ]; do sqlite3 -readonly out.db "SELECT count(*) FROM meta" >/dev/null 2>&1 || true; done; }
pollers=
trap 'touch enough' EXIT
for _ in 1 2 3; do
    poll &
    pollers="$pollers $!"
done
for i in $(seq 8); do
    rm -f out.db out.db-*
    "$MEMPROF" run -q -o out.db -- "$PROGRAMS/maps" 2>err || fail "run $i: status $?"
    [ ! -s err ] || { cat err; fail "run $i"; }
    equal "state" complete "$(value "SELECT value FROM meta WHERE key = 'state'")"
done
touch enough
wait $pollers

# --- one that stays: from the middle of the recording until after it was finished
rm -f out.db out.db-*
mkfifo begin
"$MEMPROF" run -q -o out.db -- sh -c "'$PROGRAMS/maps'; read -r line <begin" 2>err &
runner=$!
for i in $(seq 300); do
    [ -z "$(sqlite3 -readonly out.db "SELECT 1 FROM event_chunk LIMIT 1" 2>/dev/null)" ] || break
    sleep 0.1
done
mkfifo talk
sqlite3 -readonly out.db <talk >told &
reader=$!
exec 7>talk
echo "BEGIN; SELECT count(*) FROM meta;" >&7
for i in $(seq 300); do [ -s told ] && break || sleep 0.1; done
echo >begin
wait $runner || fail "the run's status is $?"
[ ! -s err ] || { cat err; fail "a reader that stays"; }
equal "state" complete "$(value "SELECT value FROM meta WHERE key = 'state'")"
known=$("$MEMPROF" report --by line --csv out.db | tail -n +2)
at_least "lines" 3 "$(echo "$known" | wc -l)"
echo "SELECT count(*) FROM meta; COMMIT;" >&7
exec 7>&-
wait $reader || fail "the reader"
equal "what the reader saw" 1 "$(sort -u told | wc -l)"
equal "lines without the reader" "$known" "$("$MEMPROF" report --by line --csv out.db | tail -n +2)"
