# exec, posix_spawn, vfork, system, popen: each image is a process row and recorded, with an absolute preload path.
record "$PROGRAMS/exec_chain" 3
equal "status" 42 $status
sound
equal "images" 4 "$(value "SELECT count(*) FROM process")"
equal "one pid" 1 "$(value "SELECT count(DISTINCT pid) FROM process")"
equal "ends" "exec,exec,exec,exit" \
    "$(sql "SELECT group_concat(end_kind) FROM (SELECT end_kind FROM process ORDER BY start_ns)")"
equal "exec's parents" 3 \
    "$(value "SELECT count(*) FROM process a JOIN process b ON a.parent_id = b.process_id WHERE a.start_kind = 'exec'")"
equal "link_work" "40|60|0|0|40|60" "$(by_function link_work)"
equal "the program's status" 42 "$(value "SELECT exit_status FROM process WHERE end_kind = 'exit'")"

cd "$BUILD/.."
(cd / && cp "$PROGRAMS/spawn" /tmp/memprof-spawn-$$)
cd - >/dev/null
record_ok /tmp/memprof-spawn-$$
rm -f /tmp/memprof-spawn-$$
equal "spawned children" "35|2450|35|35|0|0" "$(by_function child_work)"
equal "with status 3" 5 "$(value "SELECT count(*) FROM process WHERE exit_status = 3 AND exe LIKE '%memprof-spawn%'")"
