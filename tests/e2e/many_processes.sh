# A recording of as many processes as one can number, most of them without anything live: reports ask once of all, not
# of each for itself. Where a report went through the counters or the threads of all for each of them, it took minutes.
record_ok "$PROGRAMS/oom"
# the first process, and 60,000 programs that it started: a thread and two counters each, every tenth not seen to end
sqlite3 out.db <<'SQL'
CREATE TEMP TABLE more AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
    SELECT i FROM n;
INSERT INTO process(process_id, pid, parent_id, start_kind, exe, command_line, start_ns, end_ns, end_kind, exit_status)
    SELECT 10 + i, 100000 + i, 1, 'exec', '/bin/tiny', 'tiny', 1000 * i, iif(i % 10, 1000 * i + 500, NULL),
    iif(i % 10, 'exit', NULL), iif(i % 10, 0, NULL) FROM more;
INSERT INTO thread(thread_id, process_id, tid, name, start_ns) SELECT 10 + i, 10 + i, 100000 + i, 'tiny', 0 FROM more;
INSERT INTO counter SELECT 10 + i, name, 1, name FROM more, (SELECT 'heap_sample' AS name UNION SELECT 'stack_new');
SQL
# of processor time: what took minutes is stopped, what takes a second is not where the machine does other work
soon() { (ulimit -t 30 && "$MEMPROF" "$@"); }
soon report out.db >report.txt || fail "report: $?"
contains 'all of them' report.txt '60,001 processes'
grep -q '^host  *heap .* ~ ' report.txt || fail "reserved bytes are not said to be samples: $(grep '^host' report.txt)"
soon info out.db >info.txt || fail "info: $?"
contains 'all of them, in info' info.txt 'Processes: 60,001 (200 shown)'
grep -q ' exec .* 1  *-  *not seen to end  *tiny$' info.txt || fail "threads of a process: $(grep -m 3 tiny info.txt)"
soon info out.db --json >info.json || fail "info --json: $?"
soon leaks out.db >leaks.txt || fail "leaks: $?"
soon report out.db --html || fail "page: $?"
