# Thousands of threads that come and go, 16 at a time.
record_ok "$PROGRAMS/threads_many" 5000
equal "thread_work" "100000|3000000|100000" "$(by_function thread_work | cut -d'|' -f1-3)"
equal "threads" 5001 "$(value "SELECT count(*) FROM thread")"
equal "refused rings" 0 "$(value "SELECT sum(value) FROM counter WHERE name LIKE '%refused%'")"
equal "threads with 20 blocks each" 5000 \
    "$(value "SELECT count(*)
    FROM (SELECT thread_id FROM v_thread WHERE kind = 'heap' AND alloc_count >= 20 AND tid <> pid)")"
