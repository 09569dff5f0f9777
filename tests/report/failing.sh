# A query that fails on the way, such as one that meets a damaged page, fails the report: no table that is merely short.
. "$ROOT/tests/report/setup.inc"
# TABLE ARG...: with the first page of TABLE overwritten
fails() {
    table=$1
    shift
    cp net.db bad.db
    page=$(DB=net.db value "SELECT rootpage FROM sqlite_schema WHERE name = '$table'")
    bytes=$(DB=net.db value 'PRAGMA page_size')
    head -c "$bytes" /dev/zero | tr '\0' '\377' | dd of=bad.db bs="$bytes" seek=$((page - 1)) conv=notrunc 2>dd.err ||
        fail "$(cat dd.err)"
    code=0
    "$MEMPROF" "$@" bad.db >out 2>err || code=$?
    equal "$table, $*: status" 1 $code
    contains "$table, $*" err "bad.db: damaged: database disk image is malformed"
}
"$MEMPROF" report --by size net.db >out || fail "the file as it was"
fails size_class report --by size
fails size_class report --by size --json
fails transfer report --transfers
fails transfer report --transfers --csv
fails counter info
fails counter info --json
fails thread info --json
fails process info
fails module info
fails total report
fails oom report
fails device_sample info
