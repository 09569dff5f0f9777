# Forks under load, many processes at a time, threads that come and go while others fork.
# alone: 40 programs at once
record_ok "$PROGRAMS/fork_load" 400
equal "children" 400 \
    "$(value "SELECT count(*) FROM process WHERE start_kind = 'fork' AND end_kind = 'exit' AND exit_status = 0")"
equal "child_work" "20000|800000|20000" "$(by_function child_work | cut -d'|' -f1-3)"
record_ok "$PROGRAMS/tree" 200 500
equal "child_work of 200" "100000|2000000|100000" "$(by_function child_work | cut -d'|' -f1-3)"
record_ok sh -c 'for i in 1 2 3 4; do (for k in 1 2 3 4 5 6 7 8 9 10; do "$0" 2 20000 $i$k & done; wait) & done; wait' \
    "$PROGRAMS/stress"
equal "40 programs at once" 1600000 "$(by_function work | cut -d'|' -f1)"
equal "blocks taken over unseen" 0 "$(value "SELECT sum(value) FROM counter WHERE name = 'replaced_block'")"
# In a pid namespace of its own a thread's number says nothing here: the ring of one that has ended is given to others
# all the same.
if unshare --pid --fork true 2>/dev/null; then
    record_ok unshare --pid --fork "$PROGRAMS/threads_many" 9000
    equal "threads of a namespace" "180000|5400000|180000" "$(by_function thread_work | cut -d'|' -f1-3)"
fi
# Children that run in their parent's memory and beside it leave its rings alone.
record_ok "$PROGRAMS/borrow" 200
equal "parent_work" "400000|28000000|400000" "$(by_function parent_work | cut -d'|' -f1-3)"
