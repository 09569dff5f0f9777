#!/bin/sh
# tests/fuzz/keep.sh: after tests/fuzz/run.sh, adds to tests/fuzz/corpus-NAME the small inputs (2,048 bytes; ELF files
# 16,384) that reach code which no kept input reaches, smallest first, up to 128 files a target (ELF: 48):
# tests/faults/corpus.sh runs them in every check.
# Environment: FUZZ_NAMES, as for run.sh (default: every target that was built).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
work=$(realpath "${BUILD:-build}")/fuzz
FUZZ_DATABASE=$(cat "$work/seeds")
export FUZZ_DATABASE
names=${FUZZ_NAMES:-$(find "$work/build/fuzz" -name 'fuzz_*' -type f -executable | sed 's/.*fuzz_//' | sort)}
for name in $names; do
    program=$work/build/fuzz/fuzz_$name
    [ -x "$program" ] || { echo "fuzz: $program is not built: make fuzz" >&2; exit 1; }
    kept=$root/tests/fuzz/corpus-$name
    small=$work/small-$name
    rm -rf "$small" && mkdir -p "$small" "$kept"
    most=2048 files=128
    if [ "$name" = elf ]; then most=16384 files=48; fi
    find "$work/corpus-$name" -type f -size -$((most + 1))c -exec cp {} "$small" \;
    (cd "$work" && "$program" -merge=1 -close_fd_mask=3 "$kept" "$small") >/dev/null 2>&1 ||
        echo "fuzz: merging $name failed" >&2
    find "$kept" -type f -printf '%s %p\n' | sort -n | tail -n +$((files + 1)) | cut -d' ' -f2- | xargs -r rm -f
    echo "fuzz: $name: $(find "$kept" -type f | wc -l) inputs kept"
done
