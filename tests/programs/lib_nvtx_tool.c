/* A user's own NVTX tool: counts what it is called with, and gives handles and numbers that are not memprof's. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned marks, pushes, pops, heaps, regions;

static void mark(const char *text)
{
    marks += text != NULL;
}
static int push(const char *text)
{
    pushes += text != NULL;
    return 41;
}
static int pop(void)
{
    pops++;
    return 42;
}
static void *heap_register(void *domain, const void *heap)
{
    (void)domain;
    heaps += heap != NULL;
    return (void *)0x5000;
}
static void regions_register(void *domain, const void *batch)
{
    (void)domain;
    regions += batch != NULL;
}

static void report(void)
{
    fprintf(stderr, "tool: %u marks, %u pushes, %u pops, %u heaps, %u registrations\n", marks, pushes, pops, heaps,
            regions);
}

int InitializeInjectionNvtx2(const void *(*get)(uint32_t));
int InitializeInjectionNvtx2(const void *(*get)(uint32_t))
{
    const struct {
        size_t size;
        int (*module_table)(int, void ***, unsigned *);
    } *callbacks = get(1);
    void **table;
    unsigned size;
    if (!callbacks->module_table(1, &table, &size))
        return 0;
    *(void **)table[2] = (void *)mark;
    *(void **)table[9] = (void *)push;
    *(void **)table[11] = (void *)pop;
    atexit(report);
    return 1;
}

int InitializeInjectionNvtxExtension(void *info);
int InitializeInjectionNvtxExtension(void *info)
{
    struct {
        uint16_t version, size, module, compatible;
        size_t segments;
        struct {
            size_t id, count;
            intptr_t *slots;
        } * segment;
    } *e = info;
    e->segment->slots[0] = (intptr_t)heap_register;
    e->segment->slots[3] = (intptr_t)regions_register;
    return 1;
}
