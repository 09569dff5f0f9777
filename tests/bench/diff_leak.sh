#!/bin/sh
# tests/bench/diff_leak.sh: puts a leak into redis, built from Debian's source, and looks for it: with HSET a field's
# old value is not freed any more. The two servers do the same work under memprof; the leak must be the top row of
# `memprof diff`, break `memprof check` with the old recording as its baseline, and be named by `memprof advise`, which
# has nothing to say of the old one. Its size is arithmetic: each value
# of 128 bytes is a block of 132 (a header of 3 bytes and a NUL), and all are forgotten but the last one of each field.
#
# Needs a network and a source of Debian's sources in apt's list: in /etc/apt/sources.list.d/src.sources
#     Types: deb-src
#     URIs: http://deb.debian.org/debian
#     Suites: bookworm
#     Components: main
#     Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
# then `apt-get update`; dpkg-dev unpacks. Without these it is skipped (77). Environment: BUILD, CC.
set -eu
cd "$(dirname "$0")/../.."
build=$(realpath "${BUILD:-build}")
memprof=$build/memprof
work=$build/bench/redis
skip() { echo "diff_leak: skipped: $*"; exit 77; }
fail() { echo "diff_leak: FAIL: $*"; exit 1; }
for tool in apt-get dpkg-source python3 "${CC:-gcc}"; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
done
unset MAKEFLAGS MFLAGS # of the make that called us: redis is built by rules that ours does without
mkdir -p "$work"
work=$(cd "$work" && pwd)

# --- two builds -------------------------------------------------------------------------------------------------------
if [ ! -x "$work/new/src/redis-server" ]; then
    (cd "$work" && apt-get source -qq redis >get.log 2>&1) || skip "no source of redis: $(tail -n 1 "$work/get.log")"
    rm -rf "$work/old" "$work/new"
    mv "$work"/redis-[0-9]*/ "$work/old"
    make -C "$work/old" -j2 MALLOC=libc CC="${CC:-gcc}" >"$work/old.log" 2>&1 || fail "building redis: $work/old.log"
    cp -a "$work/old" "$work/new"
    # hashTypeSet: the value that a field had is freed before it gets another one
    awk '/^int hashTypeSet\(/ { inside = 1 }
        inside && /sdsfree\(dictGetVal\(de\)\);/ { inside = 0; print "            ; /* forgotten */"; next }
        { print }' "$work/old/src/t_hash.c" >"$work/new/src/t_hash.c"
    changed=$(diff "$work/old/src/t_hash.c" "$work/new/src/t_hash.c" | grep -c '^<')
    [ "$changed" = 1 ] || fail "t_hash.c is not as known"
    make -C "$work/new" -j2 MALLOC=libc CC="${CC:-gcc}" >"$work/new.log" 2>&1 || fail "building it again: $work/new.log"
fi

# --- two recordings ---------------------------------------------------------------------------------------------------
requests=60000 fields=500
record() { # SIDE: SIDE.db, and how many fields there were at the end
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "$memprof" run -q -o "$work/$1.db" -- "$work/$1/src/redis-server" --port "$port" --save '' --appendonly no \
        >"$work/server.log" 2>&1 &
    server=$!
    cli="$work/old/src/redis-cli -p $port"
    tries=0
    until $cli ping 2>/dev/null | grep -q PONG; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || fail "redis-server does not answer: $work/server.log"
        sleep 0.2
    done
    "$work/old/src/redis-benchmark" -p "$port" -t hset -n $requests -r $fields -d 128 -c 4 -q >"$work/benchmark.log"
    held=$($cli hlen myhash)
    $cli shutdown nosave
    wait $server || fail "redis-server ended with $?"
}
record old
record new
leaked=$(((requests - held) * 132))
echo "$requests values for $held fields: $((requests - held)) are forgotten, $leaked bytes"

# --- what is said -----------------------------------------------------------------------------------------------------
# redis allocates through these
skips='--skip ztrymalloc_usable_internal --skip zmalloc_usable --skip _sdsnewlen'
"$memprof" diff "$work/old.db" "$work/new.db" -n 3 $skips
"$memprof" diff "$work/old.db" "$work/new.db" --by function --json $skips >"$work/rows.json"
python3 - "$work/rows.json" $leaked <<'END' || fail "it is not the top row"
import json, sys
row, leaked = json.load(open(sys.argv[1]))["rows"][0], int(sys.argv[2])
grown = row["end_bytes_new"] - row["end_bytes_old"]
print(f"top row by function: {row['function']} {row['file'].rsplit('/', 1)[-1]}, live at the end {grown:+}")
sys.exit(row["function"] != "hashTypeSet" or grown != leaked)
END
"$memprof" check "$work/old.db" --baseline "$work/old.db" --max-growth 5% $skips >/dev/null || fail "the old one breaks"
status=0
"$memprof" check "$work/new.db" --baseline "$work/old.db" --max-growth 5% $skips >"$work/check.txt" || status=$?
grep -A 2 -e '^broken' -e 'what grew most' "$work/check.txt"
[ $status = 1 ] || fail "check ended with $status"
grep -q 'hashTypeSet .*t_hash\.c:' "$work/check.txt" || fail "check does not name it"
echo "check: status 1 for the leak, 0 without it"

"$memprof" advise "$work/old.db" >"$work/advise.txt"
[ "$(cat "$work/advise.txt")" = 'Nothing to advise.' ] || { cat "$work/advise.txt"; fail "advise of the old one"; }
"$memprof" advise "$work/new.db" >"$work/advise.txt"
cat "$work/advise.txt"
grep -q '^\* Never freed' "$work/advise.txt" || fail "advise does not warn"
grep -q 'for hashTypeSet (t_hash\.c:' "$work/advise.txt" || fail "advise does not name it"
