#!/bin/sh
# tests/fuzz/seeds.sh DIRECTORY: records there what the readers of databases begin with, and prints FUZZ_DATABASE for
# it: the first one is a plain recording, the others have what that has not.
# Environment: MEMPROF, BUILD (with its samples and programs).
set -eu
cd "$1"
"$MEMPROF" run -q --source -o seed.db -- "$BUILD/samples/net" >/dev/null
# samples, their spreads, and what is left out
"$MEMPROF" run -q --sample 64K --min-size 40 -o seed-thinned.db -- "$BUILD/programs/thinned" sample >/dev/null
# who frees, bands of a policy and what they did, names, forks' children and what they inherited, a pause
printf 'host 0-101 idle >= 56MiB malloc-trim, callback after\n' >seed-policy.txt
"$MEMPROF" run -q --free-stacks --policy seed-policy.txt -o seed-told.db -- sh -c '"$1/frees" 1 30
    "$1/policy" holes; "$1/sharing" silent; "$1/thinned" sizes 5000 1; "$1/marks"' sh "$BUILD/programs" >/dev/null 2>&1

# once COMMAND...: waits until it is true, a minute at most
once() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || { echo "seeds: never: $*" >&2; exit 1; }
        sleep 0.1
    done
}
has_lines() { [ "$(wc -l <seed-said)" -ge "$1" ]; }
has_parts() { [ "$(find . -name 'seed-rotated.2*.db' | wc -l)" -ge "$1" ]; }
is_joined() { grep -q 'recording ' seed-joined; }
# orders COMMAND...: it takes what is written to 7, its answers go to seed-said
orders() {
    rm -f seed-orders && mkfifo seed-orders
    "$@" <seed-orders >seed-said 2>/dev/null &
    ordered=$!
    exec 7>seed-orders
}
ended() {
    exec 7>&-
    wait $ordered
}
# a part of a rotated recording, with inherited blocks, a range and names that are open at both of its ends
rm -f seed-rotated*
orders "$MEMPROF" run -q -o seed-rotated.db -- "$BUILD/programs/rotate"
printf 'take 60\npush open\nname kept\n' >&7
once has_lines 3
"$MEMPROF" rotate seed-rotated.db >/dev/null
once has_parts 1
rm -f seed-rotated.2*.db
printf 'drop 20\ntake 30\nchild 5\n' >&7
once has_lines 6
"$MEMPROF" rotate seed-rotated.db >/dev/null
once has_parts 1
mv seed-rotated.2*.db seed-part.db
printf 'take 10\n' >&7
ended
all=$PWD/seed.db:$PWD/seed-thinned.db:$PWD/seed-told.db:$PWD/seed-part.db
# attached: blocks from before are freed
rm -f seed-attached.db
orders "$BUILD/programs/attach" 2
printf 'go 100\n' >&7
once has_lines 1
"$MEMPROF" attach $ordered -o seed-attached.db 2>seed-joined &
collector=$!
if once is_joined 2>/dev/null; then
    printf 'go 100\n' >&7
    once has_lines 2
    "$MEMPROF" detach $ordered
    wait $collector
    all=$all:$PWD/seed-attached.db
fi
ended
# a GPU of the simulated driver, given back and taken again
rm -f seed-yielded.db seed-state
if [ -x "$BUILD/gpu/yield" ] && [ -e "$BUILD/cuda/13000/libcuda.so.1" ]; then
    orders env LD_LIBRARY_PATH="$BUILD/cuda/13000:$BUILD/cuda" SIM_CUDA_STATE="$PWD/seed-state" \
        "$MEMPROF" run -q -o seed-yielded.db -- "$BUILD/gpu/yield"
    printf 'take 1048576\nmanaged 4096\ndrop 0\ntake 4096\nyield 0\nrestore 0\nquit 0\n' >&7
    ended
    all=$all:$PWD/seed-yielded.db
fi
rm -f seed*.db.old
echo "$all"
