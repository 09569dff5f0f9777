# Files that are called as SQLite and memprof call those beside a recording: somebody else's, and inputs, are left as
# they are, and the name of the output refused; what is memprof's or SQLite's own goes.
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
take a.db "$PROGRAMS/ranks" 0
take b.db "$PROGRAMS/ranks" 1
for suffix in symbols journal shm wal; do
    cp a.db "all.db-$suffix"
    merge_fails 2 "all.db-$suffix: is one of the recordings" -o all.db "all.db-$suffix" a.db
    merge_fails 2 "all.db-$suffix: has the name of a file beside all.db" -o all.db a.db
    for ending in old old~; do
        mv "all.db-$suffix" "all.db.$ending-$suffix"
        merge_fails 2 "all.db.$ending-$suffix: is one of the recordings" -o all.db a.db "all.db.$ending-$suffix"
        mv "all.db.$ending-$suffix" "all.db-$suffix"
    done
    cmp a.db "all.db-$suffix" || fail "all.db-$suffix was changed"
    rm "all.db-$suffix"
    for content in text '\0\0\0\0\0\0\0\0\0\0\0\0 my notes and a thesis' 'SQLite format 3\0'; do
        for name in note note.old note.old~; do
            printf "$content" >"$name-$suffix"
            cp "$name-$suffix" kept
            cp a.db note
            cp a.db note.old
            merge_fails 2 "$name-$suffix: has the name of a file beside $name" -o note a.db b.db
            [ "$(wc -l <merge.err)" = 1 ] || fail "one line: $(cat merge.err)"
            cmp a.db note && cmp a.db note.old || fail 'what was there has moved'
            rm note note.old
            if [ $name = note ]; then
                status=0
                "$MEMPROF" run -q -o note touch ran 2>run.err || status=$?
                equal "status of run beside note-$suffix" 2 $status
                contains "run beside note-$suffix" run.err "note-$suffix: has the name of a file beside note"
                [ "$(wc -l <run.err)" = 1 ] || fail "one line: $(cat run.err)"
                [ ! -e ran ] && [ ! -e note ] || fail 'it ran'
            fi
            cmp kept "$name-$suffix" || fail "$name-$suffix was changed"
            rm "$name-$suffix"
        done
    done
done
# ours: each by its first bytes, and empty ones
zeros() { head -c "$1" /dev/zero; }
ours() {
    for suffix in symbols journal shm wal; do
        [ ! -e "all.db-$suffix" ] || fail "all.db-$suffix is left, $1"
    done
    rm -f all.db all.db.old
}
for suffix in symbols journal shm wal; do : >"all.db-$suffix"; done
merge -o all.db a.db
ours 'empty'
printf '\0MRPSMB1and names' >all.db-symbols
printf '\331\325\005\371\040\241\143\327pages' >all.db-journal
printf '\067\177\006\202pages' >all.db-wal
zeros 32768 >all.db-shm
merge -o all.db a.db b.db
ours 'of SQLite and memprof'
printf '\067\177\006\203pages' >all.db-wal
{ zeros 20 && printf '\0\0\002\0\0\0\020\0' && zeros 600; } >all.db-journal # killed before it was begun
merge -o all.db a.db
ours 'of killed ones'
zeros 8192 >all.db-shm # of one that could not have the other six pages
merge -o all.db a.db
ours 'an index that was not begun'
{ zeros 8191 && printf x; } >all.db-shm
merge_fails 2 "all.db-shm: has the name of a file beside all.db" -o all.db a.db
rm all.db-shm
# as SQLite makes them
python3 - <<'END'
import os, sqlite3
db = sqlite3.connect("live.db")
db.execute("PRAGMA journal_mode = WAL")
db.execute("CREATE TABLE t(a)")
open("all.db-wal", "wb").write(open("live.db-wal", "rb").read())
open("all.db-shm", "wb").write(open("live.db-shm", "rb").read())
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
open("two.db-wal", "wb").write(open("live.db-wal", "rb").read())
open("two.db-shm", "wb").write(open("live.db-shm", "rb").read())
other = sqlite3.connect("other.db", isolation_level=None)
other.execute("CREATE TABLE t(a)")
other.execute("PRAGMA cache_size = 1")
other.execute("BEGIN")
other.executemany("INSERT INTO t VALUES (?)", ((i,) for i in range(9999)))
open("all.db-journal", "wb").write(open("other.db-journal", "rb").read())
other.execute("UPDATE t SET a = 2")
open("two.db-journal", "wb").write(open("other.db-journal", "rb").read())
assert os.path.getsize("two.db-journal") and os.path.getsize("all.db-journal") and not os.path.getsize("two.db-wal")
END
merge -o all.db a.db
ours 'as SQLite makes them'
for suffix in wal shm journal; do mv two.db-$suffix all.db-$suffix; done
merge -o all.db a.db
ours 'as SQLite makes them, with an empty log'
