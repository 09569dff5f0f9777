# A recording of several programs: what to look at next is who of them it was, in rows of one line each.
cp "$PROGRAMS/own_new" one
cp "$PROGRAMS/own_new" two
long=$(printf '%01000d' 7)
record_ok sh -c "./one malloc $long; ./two malloc; true"
"$MEMPROF" report out.db >report
grep -q '^ *\(Next: \)\{0,1\} *memprof report --by process$' report || { cat report; fail "no report by process"; }
"$MEMPROF" report out.db --by process >table
contains "the table" table "./one malloc 0000"
at_most "its widest row" 160 "$(wc -L <table)"
"$MEMPROF" report out.db --by process --csv >csv
contains "CSV" csv "./one malloc $long"
"$MEMPROF" report out.db --by process --json >json
contains "JSON" json "./one malloc $long"
"$MEMPROF" report out.db --process "$(value "SELECT pid FROM process WHERE exe LIKE '%/one'")" >report
lacks "one of them" report "--by process"

# a program and the shell that started it
record_ok sh -c "./one malloc; ./one malloc; true"
"$MEMPROF" report out.db >report
lacks "a program" report "--by process"
