/*
 * policy_host.h: how full the host is: of the control group that limits this process's memory, else of the machine.
 */
#ifndef MEMPROF_POLICY_HOST_H
#define MEMPROF_POLICY_HOST_H

#include <stdint.h>

/* 0: neither can be read. Files of /proc and /sys; at each sample, not at each round. */
int policy_host(uint64_t *used_bytes, uint64_t *total_bytes);

#endif
