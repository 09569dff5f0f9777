# Processes that end one after another: the end's figures are of several instants, and no block outlives its process.
. "$ROOT/tests/page/page.inc"
cat >apart.c <<'EOT'
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    for (int i = 0; i < 4; i++) {
        if (fork() == 0) { /* 20 MiB each, never freed, one after another */
            memset(malloc(20 << 20), 1, 20 << 20);
            usleep(30000);
            _exit(0);
        }
        wait(NULL);
    }
    memset(malloc(1 << 20), 1, 1 << 20);
    usleep(100000); /* a sample of the RSS is taken meanwhile */
    return 0;
}
EOT
"$CC" -g -O1 -fno-builtin -o apart apart.c
record ./apart
equal "the peak is of one child" $((20 << 20)) "$(total peak_active_bytes)"
equal "live at the ends" $((81 << 20)) "$(total end_active_bytes)"
check_page processes --basic --apart --pictures

# One process lives on: pages that it once shared with a child are no part of its layers.
cat >child.c <<'EOT'
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    char *shared = malloc(20 << 20);
    memset(shared, 1, 20 << 20);
    if (fork() == 0) {
        usleep(500000); /* long enough for samples of both on a busy machine */
        _exit(0);
    }
    wait(NULL);
    memset(malloc(10 << 20), 1, 10 << 20); /* the peak, of the parent alone */
    usleep(100000);
    return 0;
}
EOT
"$CC" -g -O1 -fno-builtin -o child child.c
record ./child
equal "the peak is the parent's" $((30 << 20)) "$(total peak_active_bytes)"
check_page child --basic --alone

# A process's own peak is its kernel's figure, which no sample may have met.
record_ok "$SAMPLES/leak"
sqlite3 out.db 'UPDATE process SET peak_rss_bytes = 1 << 30'
"$MEMPROF" report out.db >got.txt
contains 'the peak RSS of a report' got.txt ', peak RSS 1.00 GiB'
"$MEMPROF" report out.db --html=page.html >/dev/null
python3 -S - "$ROOT" <<'EOT' || fail "one process: a note about others, or another peak RSS than the report's"
import os, sys
sys.path.insert(0, os.path.join(sys.argv[1], "tests/page"))
from browser import served
b = served(os.environ["BROWSER"])
try:
    b.open(os.path.abspath("page.html"))
    b.wait("document.documentElement.dataset.settled")
    rss = b.js("return document.querySelector('.panel [data-series=rss] .value').textContent")
    print("RSS:", rss)
    layers = b.js("return document.querySelector('#layers').textContent")
    sys.exit(rss != "peak 1.00 GiB" or "held at its own end" in layers)
finally:
    b.close()
EOT
