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
contains "the report's line" text "3 allocations failed, the largest of 512.00 MiB at "
"$MEMPROF" report out.db --json >text
equal "is_handled in JSON" 3 "$(grep -c '"is_handled": 1' text)"
page
lacks "the page" page.html '<h3>Out of memory'
contains "the page's line" page.html '<h3>Failed and made good'

record_ok "$PROGRAMS/probe" 0 more
equal "that counted, of two kinds" "1125899906842624|1" \
    "$(sql "SELECT size_bytes || '|' || count(*) OVER () FROM v_oom WHERE NOT is_handled")"
page
equal "the page has it" 1 "$(grep -o '<h3>Out of memory' page.html | wc -l)"

record "$PROGRAMS/probe" 1
equal "status" 1 $status
equal "that counted, the program failed" 3 "$(bad)"
"$MEMPROF" report out.db >text
contains "the report has them" text "Allocations that failed"
