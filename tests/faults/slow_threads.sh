# Very many threads that are held up as they begin, and children that are over before these go on: the children's events
# are all there.
record_ok "$PROGRAMS/slow_threads" 300
equal "children with a thread" 10 \
    "$(value "SELECT count(*) FROM process JOIN thread USING(process_id)
    WHERE start_kind = 'fork' AND exit_status = 7")"
equal "child_work" "200|6000|100|100|100|3000" "$(by_function child_work)"
