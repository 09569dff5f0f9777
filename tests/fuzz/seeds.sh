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
rm -f seed*.db.old
echo "$PWD/seed.db:$PWD/seed-thinned.db:$PWD/seed-told.db"
