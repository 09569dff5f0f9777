# Imported files of heaptrack: a file whose numbers are in its text, packed in each way, cut and damaged; then real
# programs against heaptrack_print.
need gzip zstd python3

# 10 blocks of 100 bytes by inner() inlined into outer(), called by main; 4 of them go. One of 7 bytes stays; one of 5
# comes and goes at once. Numbers are hexadecimal, the peak is at 20 ms: 1000 + 7 = 1007 bytes in 11 blocks, of which
# 607 in 7 are left.
{
    printf 'v 10400 3\nX prog --flag a\nsecond line of the command\nI 1000 64\n'
    printf 's b /bin/a prog\ns 5 inner\ns 5 outer\ns 4 a\nbc\ns 4 main\n'
    printf 'i 401000 1 5 4 a\nt 1 0\ni 401010 1 2 4 1f 3 4 2a\nt 2 1\n'
    printf 'a 64 2\na 7 1\na 5 2\n'
    printf 'c a\nR 10\n'
    for _ in 1 2 3 4 5 6 7 8 9 10; do echo '+ 0'; done
    printf 'c 14\n+ 1\n- 0\n- 0\nc 1e\n- 0\n- 0\n+ 2\n- 2\nc 28\nR 20\n# strings: 5\n'
} >plain.heaptrack
gzip -k plain.heaptrack
zstd -q plain.heaptrack
for file in plain.heaptrack plain.heaptrack.gz plain.heaptrack.zst; do
    "$MEMPROF" import "$file" -o out.db 2>err || { cat err; fail "$file"; }
    equal "$file: says" 1 "$(wc -l <err)"
    equal "$file: allocs, frees, temporary, bytes" '12|5|1|1012' \
        "$(sql "SELECT alloc_count, free_count, temporary_count, alloc_bytes FROM v_total WHERE kind = 'all'")"
    equal "$file: peak, blocks, when, end" '1007|11|20000000|607|7' \
        "$(sql "SELECT peak_active_bytes, peak_active_count, peak_active_ns, end_active_bytes, end_count FROM v_total
        WHERE kind = 'all'")"
    balance
done
"$MEMPROF" import plain.heaptrack -o out.db 2>/dev/null
equal 'lines' 'inner|a
bc|31|600|6
main|a
bc|10|7|1' "$(sql "SELECT function, file, line, end_bytes, end_count FROM v_line WHERE end_count AND kind = 'all'
    ORDER BY end_bytes DESC")"
equal 'inline chain' 'inner|1
outer|0
main|0' "$(sql "SELECT function, is_inline FROM v_stack WHERE stack_id = (SELECT stack_id FROM site WHERE end_count = 6)
    ORDER BY depth")"
equal 'module' '/bin/a prog' "$(sql "SELECT path FROM module")"
equal 'command' 'prog --flag a
second line of the command' "$(sql "SELECT value FROM meta WHERE key = 'command'")"
equal 'memory of the machine' $((100 * 4096)) "$(value 'SELECT total_bytes FROM device')"
equal 'most RSS' $((32 * 4096)) "$(value 'SELECT peak_rss_bytes FROM process')"
"$MEMPROF" report out.db >report
contains 'the report' report 'start not known, 40 ms'
equal 'reserved memory, which the file does not know' null \
    "$(value "SELECT DISTINCT typeof(peak_reserved_bytes) FROM v_total")"
grep -Eq '^host +heap .* B +- +[0-9]' report || fail "reserved memory is not -: $(cat report)"
# beside a recording that knows, and merged with it: there is no sum of what one of them does not know
"$MEMPROF" run -q -o known.db -- "$SAMPLES/leak" >/dev/null
reserved=$(DB=known.db value "SELECT peak_reserved_bytes FROM v_total WHERE kind = 'all'")
at_least 'reserved memory that is known' 1 "$reserved"
"$MEMPROF" report out.db known.db --json >report
equal 'side by side' "known.db $reserved out.db null sum null" "$(python3 -c 'import json
report = json.load(open("report"))
show = lambda value: "null" if value is None else value
print(*["%s %s" % (f["file"], show(f["peak_reserved_bytes"])) for f in report["files"]],
      "sum", show(report["devices"][0]["sum_of_reserved_peaks_bytes"]))')"
"$MEMPROF" report out.db known.db >report
grep -Eq '^out.db +1007 B +- +607 B' report || fail "reserved memory of out.db is not -: $(cat report)"
"$MEMPROF" report out.db known.db --html=many.html >/dev/null
contains 'on the page' many.html '<td>-</td>'
"$MEMPROF" merge -q -o merged.db out.db known.db
equal 'merged' 'null|null|' "$(DB=merged.db sql "SELECT DISTINCT typeof(peak_reserved_bytes), typeof(peak_reserved_ns),
    (SELECT group_concat(kind) FROM peak WHERE what = 'reserved') FROM total")"
equal 'of each' "integer|$reserved,null|0" "$(DB=merged.db sql "SELECT group_concat(typeof(peak_reserved_bytes) ||
    '|' || coalesce(peak_reserved_bytes, 0)) FROM recording_total ORDER BY recording_id")"
"$MEMPROF" report merged.db >report
grep -Eq '^host +heap .*iB +- +[0-9]' report || fail "merged reserved memory is not -: $(cat report)"
"$MEMPROF" report out.db --at 25ms >report
contains 'live at 25 ms: 8 of 10' report '800 B'
"$MEMPROF" report out.db --html=page.html >/dev/null 2>&1 || fail 'the page'
"$MEMPROF" diff out.db out.db >/dev/null || fail 'diff'
"$MEMPROF" check out.db --max-peak 1007 >/dev/null || fail 'check: the peak is allowed'
if "$MEMPROF" check out.db --max-peak 1006 >/dev/null; then fail 'check: one byte less'; fi

# an allocation that is defined twice is one
{
    cat plain.heaptrack
    printf 'a 64 2\n- 3\n'
} >twice
"$MEMPROF" import twice -o out.db 2>err
equal 'defined twice: says' 1 "$(wc -l <err)"
equal 'defined twice: end' '507|6' "$(sql "SELECT end_active_bytes, end_count FROM v_total WHERE kind = 'all'")"

printf 'v 10400 3\ns ffff begun' | gzip >begun
"$MEMPROF" import begun -o out.db 2>err
contains 'a text that does not end' err '1 lines that are not understood'
contains 'nothing in it' err 'the file holds no allocations'
sed 's/^c a$/A/' plain.heaptrack >attached
"$MEMPROF" import attached -o out.db 2>err
contains 'attached' err 'memprof: heaptrack came to a program that ran'

# cut files are taken as far as they go, and that is said
for form in gz zst; do
    { # enough to be cut in the middle
        cat plain.heaptrack
        awk 'BEGIN { srand(1); for (i = 0; i < 20000; i++) printf "a %x 1\n+ %x\n", 1 + int(rand() * 4095), i + 3 }'
    } >long
    case $form in gz) gzip -c long >long.gz ;; *) zstd -q -f long -o long.zst ;; esac
    head -c $(($(wc -c <long.$form) / 2)) long.$form >cut.$form
    "$MEMPROF" import cut.$form -o out.db 2>err || { cat err; fail "a cut .$form"; }
    contains "a cut .$form" err 'the file was cut'
    "$MEMPROF" report out.db >report
    contains "a cut .$form: the report says so" report 'the file was cut'
    at_least "a cut .$form: allocations" 12 "$(value "SELECT alloc_count FROM v_total WHERE kind = 'all'")"
done
dd if=/dev/zero of=long.gz bs=1 seek=$(($(wc -c <long.gz) / 2)) count=4000 conv=notrunc 2>/dev/null
"$MEMPROF" import long.gz -o out.db 2>err || { cat err; fail 'damaged'; }
contains 'damaged' err 'the compressed data is damaged'

# lines that make no sense are left out, and counted: two frees of nothing, and six others
{
    cat plain.heaptrack
    printf -- '- 1\n- 1\n- 1\n+ ffffffffffffffffff\n+ 9\nt 99 99\ni zz\nQ what\n- \n'
} >odd
"$MEMPROF" import odd -o out.db 2>err || fail 'odd lines'
contains 'odd lines' err '6 lines that are not understood'
contains 'frees of nothing' err '2 frees of sizes and traces of which nothing was live'
equal 'end' '600|6' "$(sql "SELECT end_active_bytes, end_count FROM v_total WHERE kind = 'all'")"

# what is none is refused, with a reason, and the older file stays
printf 'v 10400 4\n' >newer
printf 'v 10000\n' >older
printf 'v 10400 3\nx 6 /bin/a\n' >raw
: >empty
for file in newer older raw empty; do
    status=0
    "$MEMPROF" import $file -o out.db 2>err || status=$?
    equal "$file: exit status" 1 $status
    equal "$file: lines" 1 "$(wc -l <err)"
done
equal 'the older file' 6 "$(value "SELECT end_count FROM v_total WHERE kind = 'all'")"

# real programs
need heaptrack heaptrack_print gawk
same() { # NAME COMMAND...
    name=$1
    shift
    heaptrack -o "$name" "$@" >/dev/null 2>&1 || fail "heaptrack: $*"
    heaptrack_print --disable-builtin-suppressions -f "$name.zst" >print 2>/dev/null
    "$MEMPROF" import -q "$name.zst" -o out.db
    for what in 'calls to allocation functions|alloc_count' 'peak heap memory|peak_active_bytes' \
        'total memory leaked|end_active_bytes'; do
        ours=$(value "SELECT ${what#*|} FROM v_total WHERE kind = 'all'")
        # it prints bytes in thousands: 252.72K
        case $what in
        calls*) theirs=$(sed -n "s/^calls to allocation functions: \([0-9]*\).*/\1/p" print) ;;
        *)
            theirs=$(sed -n "s/^${what%|*}[^:]*: //p" print)
            ours=$(awk -v b="$ours" 'BEGIN { split("B K M G", u, " "); i = 1; for (; b >= 1000 && i < 4; i++) b /= 1000
                printf i == 1 ? "%d%s" : "%.2f%s", b, u[i] }')
            ;;
        esac
        equal "$name: ${what%|*}" "$theirs" "$ours"
    done
}
same gawk gawk 'BEGIN { for (i = 0; i < 3000; i++) a[i] = i "x"; delete a[7]; print length(a) }'
same growth "$SAMPLES/leak"
same cpp "$SAMPLES/templates"
