/*
 * holdings.h: what a recorded process has of GPUs, for who asks it to give them back (profiler/outside/), and which
 * processes have done that: a range "yielded" of the domain "memprof", and how many bytes they need to come home.
 */
#ifndef MEMPROF_HOLDINGS_H
#define MEMPROF_HOLDINGS_H

#include "drain.h"

struct holdings;

struct holdings *holdings_open(void);
void holdings_close(struct holdings *h);

/* Into the request's answer: all devices that the process has something of, or gave back. */
void holdings_write(const struct holdings *h, const struct process *p, const struct device_rows *devices,
                    struct wire_request *request);
/* Return 0 where it was so already (or, of the first, nothing more can be noted). given is untrusted. */
int holdings_yielded(struct holdings *h, struct drain *drain, uint16_t process_id, int64_t time_ns,
                     const struct wire_given *given, size_t count);
int holdings_restored(struct holdings *h, struct drain *drain, uint16_t process_id, int64_t time_ns);
/* The recording ends with what is not restored. */
void holdings_end(struct holdings *h, struct drain *drain, int64_t end_ns);

#endif
