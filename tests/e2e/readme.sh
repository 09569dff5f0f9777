# What README quotes is what the samples give today: every quoted line that does not depend on time or reserved memory.
cd "$ROOT"
out=$OLDPWD
sampled() { # the fourth column of `lines` is the device's reserved peak, which is sampled
    sed -E 's/^(( *[0-9.]+[KM] +){3})[0-9.]+[KM] ( *-?[0-9.]+[KM]? +[0-9]+ +[0-9]+ +[0-9]+  )/\1reserved \3/'
}
"$MEMPROF" run -q -o "$out/net.db" -- "$SAMPLES/net" >/dev/null
"$MEMPROF" run -q -o "$out/leak.db" -- "$SAMPLES/leak" 2>/dev/null
"$MEMPROF" run -q -o "$out/churn.db" -- "$SAMPLES/churn" 2>/dev/null
{
    "$MEMPROF" report "$out/net.db" --top 5
    "$MEMPROF" lines "$out/net.db" --func update
    "$MEMPROF" leaks "$out/leak.db"
    "$MEMPROF" report "$out/churn.db" --by line
    "$MEMPROF" sql "$out/leak.db" "SELECT function, line, end_bytes, end_count FROM v_leak"
} | sampled >"$out/actual"
# lines of the fenced blocks, without commands, paths of this machine, times and sampled values
awk '/^```/ { inside = !inside; next } inside' README.md |
    grep -v -e '^\$' -e '^step ' -e '^memprof: ' -e '^build/' -e ' on vm, ' -e '^Peak of host' -e '^host ' \
        -e '^[.][.][.]' -e '^\./' -e '^make ' -e '^$' | sampled >"$out/quoted"
at_least "lines quoted" 25 "$(wc -l <"$out/quoted")"
while IFS= read -r line; do
    grep -qxF -- "$line" "$out/actual" || fail "README quotes what memprof no longer prints: $line"
done <"$out/quoted"
contains "the peak" "$out/actual" "Peak of host: 940.50 KiB in 13 blocks"
