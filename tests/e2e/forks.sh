# Children that no fork of libc's made: by the bare system call, on a kernel that does not empty pages in children, with
# its parent's pid in a pid namespace of its own; and a parent that does not ask how its child ended.
check() { # what
    equal "$1: parent_work" "20|1000|20|0" "$(by_function parent_work | cut -d'|' -f1-3,5)"
    equal "$1: child_work" "10|300|10|0" "$(by_function child_work | cut -d'|' -f1-3,5)"
}
ends() {
    sql "SELECT group_concat(e)
        FROM (SELECT coalesce(end_kind, '') || coalesce(exit_status, '') || coalesce(exit_signal, '') e FROM process
        WHERE start_kind = 'fork' ORDER BY 1)"
}
record_ok "$PROGRAMS/forks" raw
check raw
equal "raw: the child's end" exit6 "$(ends)"
record_ok "$PROGRAMS/forks" kill
check kill
equal "kill: the child's end" signal9 "$(ends)"
record "$PROGRAMS/forks" old "$PROGRAMS/forks" raw
if [ $status != 77 ]; then
    sound
    check old
    record_ok "$PROGRAMS/forks" old "$PROGRAMS/tree" 4 1000
    equal "old: child_work of 4" "4000|80000|4000|4000|0|0" "$(by_function child_work)"
    record_ok "$PROGRAMS/forks" old "$PROGRAMS/spawn"
    equal "old: spawned children" "35|2450|35|35|0|0" "$(by_function child_work)"
fi
unshare --pid --fork true 2>/dev/null || skip "no pid namespaces here"
record_ok unshare --pid --fork "$PROGRAMS/forks" namespace
check namespace
equal "namespace: processes called 1" 2 "$(value "SELECT count(*) FROM process WHERE pid = 1 AND exe LIKE '%forks'")"
equal "namespace: the child's end" exit6 \
    "$(sql "SELECT end_kind || exit_status FROM process WHERE start_kind = 'fork' AND parent_id > 1")"
equal "namespace: its parent's end" exit0 \
    "$(sql "SELECT end_kind || exit_status FROM process WHERE process_id = (SELECT max(parent_id) FROM process)")"
# Namespaces side by side have the same pids in each. A program of one is not taken for another's, and keeps its parent.
record_ok sh -c 'for i in 1 2 3; do
    unshare --pid --fork sh -c '\''sleep 0.1; "$0" 1 20000 $1; : end'\'' "$0" $i &
done; wait' "$PROGRAMS/stress"
equal "namespaces: programs" 3 \
    "$(value "SELECT count(*) FROM process p JOIN process q ON q.process_id = p.parent_id AND q.pid = 1
    WHERE p.exe LIKE '%stress' AND p.end_kind = 'exit' AND p.exit_status = 0")"
equal "namespaces: their parents" 3 \
    "$(value "SELECT count(DISTINCT p.parent_id) FROM process p WHERE p.exe LIKE '%stress'")"
equal "namespaces: work" 60000 "$(by_function work | cut -d'|' -f1)"
