/*
 * ring_writer.h: the program side of the shared memory, as small as it can be: what a test writes with in the place of
 * libmemprof.so. One struct writer a thread.
 */
#ifndef MEMPROF_RING_WRITER_H
#define MEMPROF_RING_WRITER_H

#include "../../profiler/wire.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

struct writer {
    struct wire_control *control;
    struct wire_ring *ring;
    uint64_t *words;
    uint64_t head;
};

static inline uint64_t writer_stamp(const struct wire_control *c)
{
    struct timespec t;
    if (c->flags & WIRE_CLOCK_TSC)
        return __rdtsc();
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Claims the first free slot; returns its index. */
static inline uint32_t writer_claim_slot(struct wire_control *c, int pid, int parent_pid, uint32_t kind,
                                         uint32_t parent_slot)
{
    struct wire_proc *procs = (struct wire_proc *)((char *)c + WIRE_PROCS_OFFSET);
    for (uint32_t i = 0; i < c->proc_count; i++) {
        uint32_t expected = WIRE_PROC_FREE;
        if (!__atomic_compare_exchange_n(&procs[i].state, &expected, WIRE_PROC_CLAIMED, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        procs[i].pid = pid;
        procs[i].parent_pid = parent_pid;
        procs[i].parent_slot = parent_slot;
        procs[i].start_kind = kind;
        procs[i].pid_namespace = 0;
        memset(&procs[i].counters, 0, sizeof procs[i].counters);
        snprintf(procs[i].exe, sizeof procs[i].exe, "/bin/test-%d", pid);
        memcpy(procs[i].command, "test\0two words", 15);
        procs[i].command_bytes = 15;
        procs[i].start_stamp = writer_stamp(c);
        __atomic_store_n(&procs[i].state, WIRE_PROC_LIVE, __ATOMIC_RELEASE);
        return i;
    }
    return UINT32_MAX;
}

/* Takes a free ring, which is not yet the thread's own; -1: there is none. */
static inline int writer_take(struct writer *w, struct wire_control *c)
{
    struct wire_ring *rings = (struct wire_ring *)((char *)c + WIRE_HEADERS_OFFSET);
    uint64_t old = __atomic_load_n(&c->free_rings, __ATOMIC_ACQUIRE);
    uint32_t index, next;
    memset(w, 0, sizeof *w);
    do {
        index = (uint32_t)old;
        if (!index)
            return -1;
        next = wire_ring_after(rings[index - 1].next_free, index, c->ring_count);
    } while (!__atomic_compare_exchange_n(&c->free_rings, &old, ((old >> 32) + 1) << 32 | next, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    w->control = c;
    w->ring = &rings[index - 1];
    w->words = (uint64_t *)((char *)c + WIRE_DATA_OFFSET) + (uint64_t)(index - 1) * WIRE_RING_WORDS;
    w->head = w->ring->head;
    return 0;
}

static inline void writer_own(struct writer *w, uint32_t slot, int pid, int tid)
{
    struct wire_ring *r = w->ring;
    r->proc_slot = slot;
    r->pid = pid;
    r->tid = tid;
    r->is_main = pid == tid;
    r->start_stamp = writer_stamp(w->control);
    r->busy = 0;
    __atomic_store_n(&r->state, WIRE_RING_LIVE, __ATOMIC_RELEASE);
}

static inline int writer_open(struct writer *w, struct wire_control *c, uint32_t slot, int pid, int tid)
{
    if (writer_take(w, c))
        return -1;
    writer_own(w, slot, pid, tid);
    return 0;
}

static inline void writer_room(struct writer *w, uint64_t words)
{
    while (w->head + words - __atomic_load_n(&w->ring->tail, __ATOMIC_ACQUIRE) > WIRE_RING_WORDS)
        usleep(20);
}

static inline void writer_busy(struct writer *w)
{
    __atomic_store_n(&w->ring->busy, 1, __ATOMIC_RELAXED);
    __asm__ volatile("" ::: "memory");
}

/* words[0] is the stamp that the caller took while busy. */
static inline void writer_publish(struct writer *w, const uint64_t *words, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        w->words[(w->head + i) & (WIRE_RING_WORDS - 1)] = words[i];
    w->head += count;
    __atomic_store_n(&w->ring->head, w->head, __ATOMIC_RELEASE);
    __atomic_store_n(&w->ring->busy, 0, __ATOMIC_RELEASE);
}

static inline uint64_t writer_put(struct writer *w, uint64_t *words, uint64_t count)
{
    writer_room(w, count);
    writer_busy(w);
    words[0] = writer_stamp(w->control);
    writer_publish(w, words, count);
    return words[0];
}

static inline uint64_t writer_alloc(struct writer *w, uint64_t address, uint32_t size, uint32_t stack)
{
    uint64_t words[3] = {0, WIRE_WORD1(WIRE_ALLOC, WIRE_HOOK_malloc, address), (uint64_t)size << 32 | stack};
    return writer_put(w, words, 3);
}

static inline uint64_t writer_free(struct writer *w, uint64_t address)
{
    uint64_t words[2] = {0, WIRE_WORD1(WIRE_FREE, WIRE_HOOK_free, address)};
    return writer_put(w, words, 2);
}

static inline void writer_stack(struct writer *w, uint32_t id, unsigned flags, const uint64_t *addresses,
                                unsigned depth)
{
    uint64_t words[WIRE_STACK_MAX + 2];
    words[1] = (uint64_t)WIRE_STACK << 56 | (uint64_t)flags << 48 | (uint64_t)(depth + 2) << 32 | id;
    memcpy(words + 2, addresses, depth * sizeof *addresses);
    writer_put(w, words, depth + 2);
}

/* The outermost frames, as many as are shared, are those of the ring's last one. */
static inline void writer_stack_next(struct writer *w, uint32_t id, uint32_t shared, const uint64_t *addresses,
                                     unsigned count)
{
    uint64_t words[WIRE_STACK_MAX + 3];
    words[1] = (uint64_t)WIRE_STACK_NEXT << 56 | (uint64_t)(count + 3) << 32 | id;
    words[2] = shared;
    memcpy(words + 3, addresses, count * sizeof *addresses);
    writer_put(w, words, count + 3);
}

static inline void writer_module(struct writer *w, uint32_t number, uint64_t start, uint64_t end, uint64_t bias,
                                 const void *build_id, uint32_t id_bytes, const char *path)
{
    uint64_t words[512] = {0};
    uint32_t path_bytes = (uint32_t)strlen(path), id_words = (id_bytes + 7) / 8, path_words = (path_bytes + 7) / 8;
    uint32_t count = 6 + id_words + path_words;
    words[1] = (uint64_t)WIRE_MODULE_LOAD << 56 | (uint64_t)count << 32 | number;
    words[2] = start;
    words[3] = end;
    words[4] = bias;
    words[5] = (uint64_t)id_bytes << 32 | path_bytes;
    memcpy(words + 6, build_id, id_bytes);
    memcpy(words + 6 + id_words, path, path_bytes);
    writer_put(w, words, count);
}

#endif
