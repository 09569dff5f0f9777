# Trace events in viewers of other people: the importer of Chromium's own trace viewer (catapult, in npm's bigrig, in
# Node), which says how many slices, instants and points it found, and speedscope's page, which draws ranges.
. "$ROOT/tests/report/export.inc"
. "$ROOT/tests/report/npm.inc"
need node npm
bigrig=$(npm_package bigrig 1.3.0) || skip "npm's package bigrig cannot be had here"
cat >steps.c <<'C'
#include <memprof.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 6; i++) { /* what begins within a microsecond of an end is below it, the importer thinks */
        memprof_range_push("step");
        memprof_range_push("load");
        char *volatile block = malloc(1000000);
        memprof_range_pop();
        memprof_range_push("work");
        free(block);
        memprof_range_pop();
        memprof_range_pop();
        memprof_mark("done");
        usleep(100);
    }
    return 0;
}
C
"$CC" -g -I"$ROOT/include" -o steps steps.c
record_ok ./steps
"$MEMPROF" export --format chrome-trace out.db -o steps.json 2>err || { cat err; fail "no trace"; }
model() { node "$ROOT/tests/report/trace_model.js" "$bigrig" "$1" 2>&1; }
model steps.json >model || fail "catapult: $(cat model)"
lacks "what is read" model warning
contains "6 steps with two ranges each" model ': steps 18 slices, 2 below one'
contains "marks" model '/steps: 6 instants'
equal "the peak" "$(value "SELECT peak_active_bytes FROM v_total WHERE device = 'host' AND kind = 'all'")" \
    "$(sed -n 's/^memory of host: active bytes [0-9]* //p' model)"
SIM_CUDA_DEVICES=2 record_ok "$(builds_of pools | head -n 1)" >/dev/null
"$MEMPROF" export --format chrome-trace out.db -o gpu.json 2>err || { cat err; fail "no trace"; }
model gpu.json >model || fail "catapult: $(cat model)"
for device in $(devices_of out.db); do
    equal "the peak of $device" "$(held out.db "$device" peak_active_bytes)" \
        "$(sed -n "s/^memory of $device: active bytes [0-9]* //p" model)"
done

need chromium
speedscope=$(npm_package speedscope 1.25.0) || skip "npm's package speedscope cannot be had here"
printf 'speedscope.loadFileFromBase64("steps.json", "%s")' "$(base64 -w0 steps.json)" >load.js
timeout 120 chromium --headless=new --no-sandbox --disable-gpu --allow-file-access-from-files \
    --user-data-dir="$PWD/profile" --virtual-time-budget=20000 --dump-dom \
    "file://$speedscope/dist/release/index.html#localProfilePath=$PWD/load.js" >dom.html 2>chromium.err ||
    { tail chromium.err; fail "chromium"; }
contains "the thread in speedscope's page" dom.html 'steps (tid'
