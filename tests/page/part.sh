# The page of a second part of a rotated recording: its times are those of the run, its axis is the part's alone.
. "$ROOT/tests/page/page.inc"
mkfifo orders
"$MEMPROF" run -q -o run.db -- "$PROGRAMS/rotate" <orders >ledger &
collector=$!
exec 8>orders
lines=0
# wait_for COMMAND...: until it is true, 60 s at most
wait_for() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 1200 ] || fail "$*: not within a minute"
        sleep 0.05
    done
}
has_lines() { [ "$(wc -l <ledger)" -ge $lines ]; }
has_file() { ls run.2*.db >/dev/null 2>&1; }
order() {
    echo "$1" >&8
    lines=$((lines + 1))
    wait_for has_lines
}
order 'take 1000'
sleep 0.5
"$MEMPROF" rotate run.db
wait_for has_file
order 'drop 400'
order 'take 100'
sleep 0.5
exec 8>&-
wait $collector || fail "the run ended with $?"
"$MEMPROF" report run.db --html=page.html >page.out
open_browser
cat >look.py <<'END'
import os, sqlite3, sys
sys.path.insert(0, os.environ["ROOT"] + "/tests/page")
from browser import served
meta = dict(sqlite3.connect("run.db").execute("SELECT key, value FROM meta"))
start, end = int(meta["part_start_ns"]), int(meta["duration_ns"])
assert start > 500_000_000 and end - start > 500_000_000, (start, end)
b = served(os.environ["BROWSER"])
b.open(os.path.abspath("page.html"))
b.wait("document.documentElement.dataset.ready === 'true'")
shown = "return [timeline.view.from, timeline.view.to]"
assert b.js(shown) == [start, end], (b.js(shown), start, end)
b.js("timeline.show(timeline.begin + timeline.length() / 2, timeline.whole)")
assert b.js("return timeline.view.from") > start
b.js("timeline.show(0, timeline.whole)")
assert b.js(shown) == [start, end], "nothing before the part is shown"
b.click("#zoom-in")
assert start < b.js("return timeline.view.from") < b.js("return timeline.view.to") < end
b.click("#zoom-reset")
assert b.js(shown) == [start, end]
assert b.js("return timeline.within(5)") == start, "an address from before the part"
# the first bucket of the timeline begins where the axis does, with what is inherited: 1,000 blocks
live = b.js("const p = timeline.panels[0].pyramid; return timeline.valueAt(p, 'active', timeline.begin + 1)")
assert live == sum(16 + n * 37 % 3000 for n in range(1000)), live
text = b.js("return document.body.textContent")
for wanted in ("This part", "part 2 of a rotated recording, from", "in 1,000 blocks, live when it began", "rotate.c"):
    assert wanted in text, wanted
assert not b.console(), b.console()
END
ROOT=$ROOT python3 look.py || fail "what the page shows"
