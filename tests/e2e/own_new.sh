# An operator new in the program itself: what it has from malloc is recorded as ever; what it has from elsewhere is not,
# and that is said.
note="the program own_new has an operator new of its own: of its blocks only what it takes from malloc"
record_ok "$PROGRAMS/own_new" malloc
equal "its blocks" "100|4800|100" "$(by_function blocks | cut -d'|' -f1-3)"
equal "its arena" 0 "$(cat run.out)"
"$MEMPROF" report out.db >report
lacks "all is seen" report "operator new of its own"
record_ok "$PROGRAMS/own_new"
equal "its arena" 4800 "$(cat run.out)"
equal "blocks seen" "" "$(by_function blocks)"
"$MEMPROF" report out.db >report
contains "the note" report "$note"
# the same is said of a program that starts it
record_ok sh -c "'$PROGRAMS/own_new'; true"
"$MEMPROF" report out.db >report
contains "of a child" report "$note"
# of two that differ
# of two processes whose stacks are the same
record_ok sh -c "'$PROGRAMS/own_new' malloc; '$PROGRAMS/own_new' malloc; true"
"$MEMPROF" report out.db >report
lacks "all of two is seen" report "operator new of its own"
cp "$PROGRAMS/own_new" another
record_ok sh -c "./another; '$PROGRAMS/own_new'"
"$MEMPROF" report out.db >report
contains "of two" report "the programs another and own_new have an operator new of their own: of their blocks only"
