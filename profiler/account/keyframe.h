/*
 * keyframe.h: what every site holds at an instant, as rows of the table keyframe.
 */
#ifndef MEMPROF_KEYFRAME_H
#define MEMPROF_KEYFRAME_H

#include "../../common/buf.h"

#include <stdint.h>

#define KEYFRAME_CHUNKS        16u  /* chunks between two periodic ones */
#define KEYFRAME_AGGREGATE_MAX 128u /* without events: most periodic ones in the file */
#define KEYFRAME_OOM_MAX       16u
#define KEYFRAME_TEARDOWN_MAX  64u
#define KEYFRAME_POLICY_MAX    256u

struct account;

struct keyframes {
    uint32_t spacing; /* in chunks */
    uint32_t oom_count, teardown_count, policy_count;
    /* Without events: the periodic ones in the file, oldest first. */
    struct keyframe_key {
        uint64_t time_ns;
        uint64_t event_count;
    } periodic[KEYFRAME_AGGREGATE_MAX];
    uint32_t periodic_count;
    /* The last end of a process that was the only one to hold anything; written when the run ends. */
    struct buf end;
    struct keyframe_key end_key;
    uint32_t end_chunk;
};

void keyframes_open(struct account *a);
void keyframes_close(struct account *a);
void keyframe_chunk_begins(struct account *a);
/* The same of any chunk, whatever its number. */
void keyframe_cut(struct account *a); /* writes one when it is due */
void keyframe_oom(struct account *a);
void keyframe_teardown(struct account *a);
void keyframe_process_ends(struct account *a); /* before its blocks leave */
/* Those of the peaks and of the end. All levels must be sealed. */
void keyframes_finish(struct account *a);
/* The newest chunk that begins at a periodic key frame and is not above chunk_id: older chunks may be deleted. */
uint32_t keyframe_chunk_before(const struct account *a, uint32_t chunk_id);

#endif
