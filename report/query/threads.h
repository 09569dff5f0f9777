/*
 * threads.h: how many threads a recording has seen, and how many processes it has not. A thread that executes another
 * program goes on as that one's first thread: two rows of the table, one thread.
 */
#ifndef MEMPROF_QUERY_THREADS_H
#define MEMPROF_QUERY_THREADS_H

/* SQL: one number. */
#define THREADS_SEEN                                                                                                   \
    "SELECT count(DISTINCT iif(t.tid = p.pid, i.first_id, -t.thread_id)) FROM thread t LEFT JOIN process p "           \
    "USING(process_id) LEFT JOIN v_image i USING(process_id)"
/* The same: processes of which nothing was recorded. */
#define PROCESSES_NOT_RECORDED "SELECT count(*) FROM process WHERE not_recorded IS NOT NULL"

#endif
