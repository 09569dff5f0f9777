# A disk without room for the copy of a rotation: one line, nothing is left of it, nothing is lost in the running file.
. "$ROOT/tests/lib.sh"
[ "$(id -u)" = 0 ] || skip "mounting a small tmpfs needs root"
mkdir small
mount -t tmpfs -o size=8m none small 2>/dev/null || skip "mount is not permitted here"
trap 'umount small' EXIT
mkfifo orders
"$MEMPROF" run -q -o small/out.db -- "$PROGRAMS/rotate" <orders >ledger 2>run.err &
collector=$!
exec 7>orders
# wait_for WHAT COMMAND...: until it is true, 60 s at most
wait_for() {
    what=$1 tries=0
    shift
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 1200 ] || { cat run.err; fail "$what: not within a minute"; }
        sleep 0.05
    done
}
has_lines() { [ "$(wc -l <ledger)" -ge "$1" ]; }
room_kib() { df -k --output=avail small | tail -n 1; }
# Less is left than the file has. memprof gives what it keeps in reserve, piece by piece: until all of that is gone too,
# a copy may find room.
is_told() {
    kib=$(($(room_kib) - 300))
    [ $kib -le 0 ] || head -c $((kib * 1024)) /dev/zero >>small/filler
    "$MEMPROF" rotate small/out.db
    grep -q 'not rotated' run.err
}
echo 'take 1000' >&7
wait_for 'blocks' has_lines 1
wait_for 'the message' is_told
contains 'why' run.err 'its events stay in small/out.db'
equal 'nothing half is left of it' 0 "$(find small -name '*part*' | wc -l)"
rm small/filler
echo 'drop 100' >&7
wait_for 'the program goes on' has_lines 2
exec 7>&-
wait $collector || fail "the run ended with status $?"
lacks 'it was recorded to the end' run.err 'recording stopped'
# of NAME OP: how many events of take's blocks all files have
of() {
    for f in small/out*.db; do
        DB=$f sites "SELECT count(*) FROM v_event WHERE op = '$1' AND stack_id IN (SELECT stack_id FROM v_stack WHERE
            function = 'take')"
    done | awk '{ n += $1 } END { print n }'
}
equal 'all events are in the files' '1000|100' "$(of alloc)|$(of free)"
cp small/out.db out.db
balance
