# The page of a merged recording: its sum of peaks is said to be one, and no instant is given to it.
. "$ROOT/tests/page/page.inc"
for rank in 0 1 2; do
    RANK=$rank "$MEMPROF" run -q -o 'rank%q{RANK}.db' -- "$PROGRAMS/ranks" $rank
done
"$MEMPROF" merge -q -o all.db 'rank?.db'
"$MEMPROF" report all.db --html=page.html >/dev/null
open_browser
# 101,000 + 202,000 + 303,000 bytes = 591.80 KiB
cat >look.py <<'END'
import os, sys
sys.path.insert(0, os.path.join(os.environ["ROOT"], "tests/page"))
from browser import served
b = served(os.environ["BROWSER"])
b.open(os.path.abspath("page.html"))
b.wait("document.documentElement.dataset.settled", 20)
text = b.js("return document.querySelector('#selection-text').textContent")
print(text)
assert text == ("591.80 KiB on host as the sum of the peaks of 3 recordings. "
                "Each one had its peak at an instant of its own."), text
choices = b.js("return document.querySelector('#instant-select').textContent")
assert "sum of peaks of host" in choices and "  peak of host" not in choices, choices
END
python3 -S look.py || fail 'what the page says of its figures'
