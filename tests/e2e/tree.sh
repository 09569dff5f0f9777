# A pre-forking server: children by fork, each with its own account; the parent's copies that a child frees count
# nowhere.
record_ok "$PROGRAMS/tree" 4 1000
equal "processes" 5 "$(value "SELECT count(*) FROM process")"
equal "children" 4 "$(value "SELECT count(*) FROM process WHERE start_kind = 'fork' AND parent_id = 1")"
equal "exit statuses" "0,0,0,1,2" \
    "$(sql "SELECT group_concat(exit_status) FROM (SELECT exit_status FROM process ORDER BY 1)")"
equal "parent_work" "1000|10000|1000|0|0" "$(by_function parent_work | cut -d'|' -f1-3,5-6)"
equal "child_work" "4000|80000|4000|4000|0|0" "$(by_function child_work)"
equal "each child" "1000|20000,1000|20000,1000|20000,1000|20000" \
    "$(sql "SELECT group_concat(a || '|' || b)
    FROM (SELECT sum(alloc_count) a, sum(alloc_bytes) b FROM v_thread JOIN process USING(process_id)
    WHERE start_kind = 'fork' AND kind = 'heap' GROUP BY process_id)")"
equal "inherited frees" 2000 "$(value "SELECT sum(value) FROM counter WHERE name = 'inherited_free'")"

RUN_OPTIONS=--no-follow
record_ok "$PROGRAMS/tree" 4 1000
equal "no-follow: processes" 1 "$(value "SELECT count(*) FROM process")"
equal "no-follow: child_work" "" "$(by_function child_work | tr -d '|')"
equal "no-follow: parent_work" "1000|10000|1000" "$(by_function parent_work | cut -d'|' -f1-3)"

RUN_OPTIONS=
record_ok "$PROGRAMS/fork_load" 100
equal "forks under load: children" 100 \
    "$(value "SELECT count(*) FROM process WHERE start_kind = 'fork' AND end_kind = 'exit' AND exit_status = 0")"
equal "forks under load: child_work" "5000|200000|5000" "$(by_function child_work | cut -d'|' -f1-3)"
