/* state.h: the file in which the simulated driver keeps its devices' figures for the stand-in of NVML, in another
 * process. */
#ifndef MEMPROF_TESTS_SIM_STATE_H
#define MEMPROF_TESTS_SIM_STATE_H

#include <stdint.h>

#define SIM_UUID "memprof-sim-gpu" /* and the device's number as the 16th byte */

struct sim_state {
    uint64_t device_count;
    struct {
        uint64_t total_bytes, used_bytes;
    } device[16];
};

#endif
