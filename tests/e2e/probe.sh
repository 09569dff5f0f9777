# A probe with a fallback is no lack of memory: favours that the kernel refuses are not recorded as failures, and one
# after which as much was had is a line in grey, unless the program failed soon after.
bad() { value "SELECT count(*) FROM v_oom WHERE NOT is_handled"; }
page() { "$MEMPROF" report out.db --html=page.html >/dev/null; }
record_ok "$PROGRAMS/probe"
equal "failed" 6 "$(cat run.out)"
equal "recorded" "3|536870912" "$(sql "SELECT count(*) || '|' || max(size_bytes) FROM oom")"
equal "that counted" 0 "$(bad)"
"$MEMPROF" report out.db >text
lacks "the report" text "Allocations that failed"
contains "the report's line" text "3 allocations failed, each of 512.00 MiB at "
"$MEMPROF" report out.db --json >text
equal "is_handled in JSON" 3 "$(grep -c '"is_handled": 1' text)"
page
lacks "the page" page.html '<h3>Out of memory'
contains "the page's line" page.html '<h3>Failed and made good'

record_ok "$PROGRAMS/probe" 0 more
equal "that counted, of two kinds" "734003200|1" \
    "$(sql "SELECT size_bytes || '|' || count(*) OVER () FROM v_oom WHERE NOT is_handled")"
page
equal "the page has it" 1 "$(grep -o '<h3>Out of memory' page.html | wc -l)"

record "$PROGRAMS/probe" 1
equal "status" 1 $status
equal "that counted, the program failed" 3 "$(bad)"
"$MEMPROF" report out.db >text
contains "the report has them" text "Allocations that failed"
equal "one sentence of three alike" 1 "$(grep -c '^\* Out of memory: ' text)"
contains "how many they were" text " failed, the last of 3 alike, with "

# A size that no machine has is an error of an argument: one line in grey where the program went on, the finding, which
# says so, where it failed at once.
line=$(grep -n 'ask \*/' "$ROOT/tests/programs/impossible.c" | cut -d: -f1)
largest=$(grep -n 'calloc(' "$ROOT/tests/programs/impossible.c" | cut -d: -f1)
machine="more than the machine's "
gone_on() {
    equal "$1: impossible" "2|0" "$(sql "SELECT sum(is_impossible) || '|' || sum(NOT is_handled) FROM v_oom")"
    "$MEMPROF" report out.db >text
    lacks "$1: the report" text "Allocations that failed"
    lacks "$1: no finding" text "* "
    contains "$1: the line" text "2 allocations asked for more than there is, the largest of 8.00 EiB at "
    contains "$1: its place, not the first one's" text " in main (impossible.c:$largest): "
    contains "$1: the bound" text "$machine"
    contains "$1: the end of the line" text "of memory and swap; the program went on."
    page
    lacks "$1: the page" page.html 'class="finding bad"'
    contains "$1: the page's line" page.html '<h3>Asked for more than there is'
}
record_ok "$PROGRAMS/impossible"
gone_on "status 0"
equal "JSON" "2" "$("$MEMPROF" report out.db --json | grep -c '"is_impossible": 1')"
record "$PROGRAMS/impossible" 3 1200000
equal "status" 3 $status
gone_on "status 3, later"

record "$PROGRAMS/impossible" 3
equal "status" 3 $status
equal "impossible, and ended" "2|2" "$(sql "SELECT sum(is_impossible) || '|' || sum(NOT is_handled) FROM v_oom")"
"$MEMPROF" report out.db >text
contains "the finding" text "* Asked for more than there is: At "
contains "its place" text \
    "an allocation of 1.00 PiB on host by ask (impossible.c:$line) failed, with 0 B in use: $machine"
lacks "the report" text "Out of memory"
page
lacks "the page" page.html 'Out of memory'
! command -v python3 >/dev/null || same_findings
sqlite3 out.db "DELETE FROM meta WHERE key = 'machine_bytes'"
equal "where the machine is not known" 2 "$(value "SELECT sum(is_impossible) FROM v_oom")"

# What the shell's limit never allows.
python=$(python3 -c 'import sys; print(sys.executable)')
(ulimit -v 3000000; record "$python" -c '
import resource
def probe(size):
    try:
        bytearray(size)
    except MemoryError:
        print("went on")
probe(3 << 30)
resource.setrlimit(resource.RLIMIT_AS, (2000000 << 10, 3000000 << 10))
probe(2 << 30)')
equal "under limits" "went on went on" "$(paste -sd' ' run.out)"
sound
equal "its failures" 0 "$(bad)"
equal "the limits that they met" "3072000000 2048000000" \
    "$(sql "SELECT address_limit_bytes FROM v_oom WHERE is_impossible ORDER BY oom_id" | paste -sd' ')"
"$MEMPROF" report out.db >text
contains "the limit" text "more than the limit of 2.86 GiB of address space (ulimit -v); the program went on."
# and one that was possible, had there been less in use, under a limit of its own
record "$python" -c 'import resource
resource.setrlimit(resource.RLIMIT_AS, (3000000 << 10, resource.RLIM_INFINITY))
held = [bytearray(1 << 30) for _ in range(3)]'
sound
"$MEMPROF" report out.db >text
contains "the finding under a limit" text "* Out of memory: At "
contains "its limit" text " in use under the limit of 2.86 GiB of address space (setrlimit)."

# more failures than are listed; as the program goes on, and where it ends with them
cat >often.c <<'END'
#include <stdlib.h>
int main(int argc, char **argv)
{
    int failed = 0;
    (void)argv;
    for (int i = 0; i < 10007; i++) {
        void *volatile p = malloc((size_t)1 << 46);
        failed += !p;
    }
    return failed != 10007 || argc > 1;
}
END
"$CC" -g -fno-builtin -o often often.c
record_ok ./often
"$MEMPROF" report >report.txt
unlisted="7 more allocations failed after these, which the file has no rows of."
contains "what is not listed" report.txt "$unlisted"
page
contains "... on the page" page.html "$unlisted"
record ./often fails
equal "the status of one that fails" 1 "$status"
"$MEMPROF" report >report.txt
tr '\n' ' ' <report.txt | sed 's/  */ /g' >words.txt
# on a slow machine the first ones are more than a second before the end, and made good
grep -q ' failed, the last listed of [0-9,]* alike or more, with 0 B in use: ' words.txt ||
    fail "the last that is listed"
equal "said in the finding and below the table" 2 "$(grep -o "$unlisted" words.txt | wc -l)"
page
contains "the finding on the page" page.html "$unlisted"
grep -q 'All [0-9,]* that are listed' page.html || fail "its link"
