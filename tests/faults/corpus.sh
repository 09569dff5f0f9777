# Inputs that once reached new code of a reader, or broke one: each reader on all of its kept inputs, under sanitizers.
FUZZ_DATABASE=$(sh "$ROOT/tests/fuzz/seeds.sh" "$PWD")
export FUZZ_DATABASE
for source in "$ROOT"/tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    kept=$ROOT/tests/fuzz/corpus-${name#fuzz_}
    program=$BUILD/sanitize/replay/$name
    [ -x "$program" ] || fail "$program is not built: make unit-sanitized"
    [ -d "$kept" ] || fail "no kept inputs for $name: make fuzz, then make fuzz-keep"
    "$program" "$kept" >/dev/null 2>log || { tail -n 30 log; fail "$name: see above"; }
    equal "inputs of $name" "$(find "$kept" -type f | wc -l) inputs" "$(tail -n 1 log)"
done
