# What each export's own reader counts is what v_total has, at the peak, at the end and of all allocations: of a plain C
# program, a real one, one of C++, one of Python, and one on a simulated GPU.
. "$ROOT/tests/report/export.inc"
export PPROF_TMPDIR="$PWD"
names=$(recordings)

# folded: awk adds the numbers; flamegraph.pl those of the peak
flamegraph=/usr/share/perl5/Devel/NYTProf/flamegraph.pl
# sum FILE [FRAME]: of the lines that begin with that frame
sum() { awk -v frame="${2:-}" '!frame || index($0, frame ";") == 1 { n += $NF } END { print n + 0 }' "$1"; }
folded() { "$MEMPROF" export --format folded -o - "$@" 2>err || { cat err; fail "export $*"; }; }
for name in $names; do
    folded $name.db >peak && folded $name.db --stat end.bytes >end && folded $name.db --stat alloc.count >count
    for device in $(devices_of $name.db); do
        # several devices are told apart by the outermost frame
        frame=$([ "$(devices_of $name.db | wc -l)" = 1 ] || echo "$device")
        equal "$name, $device at the peak" "$(held $name.db "$device" peak_active_bytes)" "$(sum peak "$frame")"
        equal "$name, $device at the end" "$(held $name.db "$device" end_active_bytes)" "$(sum end "$frame")"
        equal "$name, $device, allocations" "$(held $name.db "$device" alloc_count)" "$(sum count "$frame")"
    done
    if [ -f $flamegraph ]; then
        perl $flamegraph --countname=bytes <peak | sed -n 's|.*<title>all (\([0-9,]*\) bytes.*|\1|p' | tr -d , >all
        equal "$name in the flame graph" "$(sum peak)" "$(cat all)"
    fi
done

# speedscope: the weights of a profile
for name in $names; do
    "$MEMPROF" export --format speedscope $name.db 2>err || { cat err; fail "speedscope of $name"; }
    for device in $(devices_of $name.db); do
        held $name.db "$device" \
            "peak_active_bytes || ' ' || end_active_bytes || ' ' || alloc_bytes || ' ' || alloc_count"
    done >totals
    devices_of $name.db | python3 "$ROOT/tests/report/export_weights.py" $name.speedscope.json totals ||
        fail "speedscope, $name: other totals"
done

# pprof: as go tool pprof adds them, of each device by its label
if command -v go >/dev/null; then
    for name in $names; do
        "$MEMPROF" export --format pprof $name.db 2>err || { cat err; fail "pprof of $name"; }
        go tool pprof -raw $name.pb.gz >raw.txt 2>err || { cat err; fail "pprof cannot read $name"; }
        for device in $(devices_of $name.db); do
            held $name.db "$device" "alloc_count || ' ' || alloc_bytes || ' ' || end_count || ' ' || end_active_bytes ||
                ' ' || peak_active_count || ' ' || peak_active_bytes" >want
            awk -v device="device:[$device]" '
                /^Locations$/ { exit }
                NF >= 7 && $7 ~ /^[0-9]+$/ || $6 ~ /:$/ { for (i = 1; i <= 6; i++) value[i] = $i + 0 }
                index($0, device) { for (i = 1; i <= 6; i++) sum[i] += value[i] }
                END { for (i = 1; i <= 6; i++) printf "%d%s", sum[i], i < 6 ? " " : "\n" }' raw.txt >got
            equal "pprof, $name, $device" "$(cat want)" "$(cat got)"
        done
    done
fi
