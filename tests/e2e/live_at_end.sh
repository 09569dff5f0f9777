# What processes that end one after another leave sums up above the peak, and the reports say why.
"$MEMPROF" run -q -o out.db -- sh -c "$(printf "'$SAMPLES/leak';%.0s" 1 2 3 4 5 6 7 8 9 10) true" 2>/dev/null
at_least "live at the end beyond the peak" "$(($(total peak_active_bytes) + 1))" "$(total end_active_bytes)"
"$MEMPROF" report out.db >got
contains "the report" got '(live at end is above the peak: processes ended at different times'
"$MEMPROF" report out.db --html=page.html
contains "the page" page.html ', of processes that ended at different times'
"$MEMPROF" run -q -o out.db -- "$SAMPLES/leak" 2>/dev/null
"$MEMPROF" report out.db >got
lacks "one process" got 'is above the peak'
