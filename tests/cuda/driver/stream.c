/*
 * Streams and events. Work is queued with one global sequence; it is done when a stream, an event or the context is
 * waited for, oldest first within a stream. Work of the legacy stream waits for all older work of the context's
 * blocking streams and theirs for its. cuStreamQuery and cuEventQuery do one piece of work each, so that polling comes
 * to an end.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct CUevent_st {
    struct CUctx_st *ctx;
    struct CUstream_st *stream; /* of the last record; NULL: never recorded, or all done */
    uint64_t seq;
    CUgraph capture; /* recorded in a capture */
    CUstream capture_origin;
    struct CUevent_st *next;
};

static struct CUstream_st *streams;
static struct CUevent_st *events;
uint64_t sim_seq;

int stream_live(const struct CUstream_st *stream)
{
    for (const struct CUstream_st *s = streams; s; s = s->next)
        if (s == stream)
            return 1;
    return 0;
}

static struct CUstream_st *stream_new(struct CUctx_st *ctx, unsigned flags, int priority)
{
    struct CUstream_st *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->ctx = ctx;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = sim_ids++;
    stream->tail = &stream->head;
    stream->next = streams;
    streams = stream;
    return stream;
}

CUresult stream_of(CUstream handle, int per_thread, struct CUstream_st **out)
{
    struct CUctx_st *ctx;
    CUresult error = context_current(&ctx);
    if (handle == CU_STREAM_PER_THREAD || (!handle && per_thread)) {
        if (error)
            return error;
        long thread = syscall(SYS_gettid);
        for (struct CUstream_st *s = streams; s; s = s->next)
            if (s->ctx == ctx && s->per_thread == thread) {
                *out = s;
                return CUDA_SUCCESS;
            }
        *out = stream_new(ctx, 0, 0);
        if (*out)
            (*out)->per_thread = thread;
    } else if (!handle || handle == CU_STREAM_LEGACY) {
        if (error)
            return error;
        if (!ctx->legacy && (ctx->legacy = stream_new(ctx, 0, 0)))
            ctx->legacy->is_legacy = 1;
        *out = ctx->legacy;
    } else {
        if (!stream_live(handle))
            return error ? error : CUDA_ERROR_INVALID_HANDLE;
        *out = handle;
    }
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* --- doing the work --- */

void stream_run(struct CUstream_st *stream, uint64_t seq)
{
    while (stream->head && stream->head->seq <= seq) {
        struct op *op = stream->head;
        stream->head = op->next;
        if (!stream->head)
            stream->tail = &stream->head;
        if (stream->is_legacy) {
            for (struct CUstream_st *s = streams; s; s = s->next)
                if (s->ctx == stream->ctx && s != stream && !(s->flags & CU_STREAM_NON_BLOCKING))
                    stream_run(s, op->seq - 1);
        } else if (!(stream->flags & CU_STREAM_NON_BLOCKING) && stream->ctx->legacy) {
            stream_run(stream->ctx->legacy, op->seq - 1);
        }
        op->work.run(&op->work);
        free(op->work.blob);
        free(op);
    }
}

void stream_finish(struct CUstream_st *stream)
{
    stream_run(stream, sim_seq);
    if (stream->is_legacy) /* waiting for it waits for all blocking streams */
        for (struct CUstream_st *s = streams; s; s = s->next)
            if (s->ctx == stream->ctx && !(s->flags & CU_STREAM_NON_BLOCKING))
                stream_run(s, sim_seq);
}

int stream_done(struct CUstream_st *stream, uint64_t seq)
{
    return !stream->head || stream->head->seq > seq;
}

void context_finish(struct CUctx_st *ctx)
{
    for (struct CUstream_st *s = streams; s; s = s->next)
        if (s->ctx == ctx)
            stream_run(s, sim_seq);
}

void sim_finish_all(void)
{
    for (struct CUstream_st *s = streams; s; s = s->next)
        stream_run(s, sim_seq);
}

CUresult capture_forbids(struct CUctx_st *ctx)
{
    for (struct CUstream_st *s = streams; s; s = s->next)
        if (s->ctx == ctx && s->capture && !s->capture_joined && s->capture_mode != 2) {
            s->capture_broken = 1;
            return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    return CUDA_SUCCESS;
}

CUresult stream_add(struct CUstream_st *stream, const struct work *work, int node_type, uint64_t *seq)
{
    if (stream->capture) {
        if (graph_add(stream->capture, node_type, work))
            return CUDA_SUCCESS;
        free(work->blob);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (stream->is_legacy)
        for (struct CUstream_st *s = streams; s; s = s->next)
            if (s->ctx == stream->ctx && s->capture && !(s->flags & CU_STREAM_NON_BLOCKING)) {
                s->capture_broken = 1;
                free(work->blob);
                return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
            }
    struct op *op = calloc(1, sizeof *op);
    if (!op) {
        free(work->blob);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->work = *work;
    op->seq = ++sim_seq;
    if (seq)
        *seq = op->seq;
    *stream->tail = op;
    stream->tail = &op->next;
    return CUDA_SUCCESS;
}

static void stream_free(struct CUstream_st *stream)
{
    stream_run(stream, sim_seq);
    for (struct CUevent_st *e = events; e; e = e->next)
        if (e->stream == stream)
            e->stream = NULL;
    for (struct CUstream_st **at = &streams; *at; at = &(*at)->next)
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    if (stream->ctx->legacy == stream)
        stream->ctx->legacy = NULL;
    free(stream);
}

void stream_end_context(struct CUctx_st *ctx)
{
    for (struct CUstream_st *s = streams, *next; s; s = next) {
        next = s->next;
        if (s->ctx == ctx)
            stream_free(s);
    }
    for (struct CUevent_st **at = &events; *at;)
        if ((*at)->ctx == ctx) {
            struct CUevent_st *event = *at;
            *at = event->next;
            free(event);
        } else {
            at = &(*at)->next;
        }
}

/* --- streams --- */

static CUresult create(CUstream *out, unsigned flags, int priority)
{
    struct CUctx_st *ctx;
    CUresult error = context_current(&ctx);
    if (error)
        return error;
    NEED(out && !(flags & ~1u), INVALID_VALUE);
    *out = stream_new(ctx, flags, priority);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
API cuStreamCreate(CUstream *out, unsigned flags)
{
    BEGIN;
    return create(out, flags, 0);
}
API cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority)
{
    BEGIN;
    return create(out, flags, priority);
}

static CUresult destroy(CUstream stream)
{
    struct CUctx_st *ctx;
    CUresult error = context_current(&ctx);
    if (error)
        return error;
    NEED(stream > CU_STREAM_PER_THREAD && stream_live(stream), INVALID_HANDLE);
    stream_free(stream);
    return CUDA_SUCCESS;
}
API cuStreamDestroy(CUstream stream)
{
    BEGIN;
    return destroy(stream);
}
API cuStreamDestroy_v2(CUstream stream)
{
    BEGIN;
    return destroy(stream);
}

/* Both forms of a call on a stream; its body sees `stream`. */
#define ON_STREAM(name, parameters, ...)                                                                               \
    API name parameters                                                                                                \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        struct CUstream_st *stream;                                                                                    \
        CUresult error_ = stream_of(handle, 0, &stream);                                                               \
        if (error_)                                                                                                    \
            return error_;                                                                                             \
        __VA_ARGS__                                                                                                    \
    }                                                                                                                  \
    API name##_ptsz parameters                                                                                         \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        struct CUstream_st *stream;                                                                                    \
        CUresult error_ = stream_of(handle, 1, &stream);                                                               \
        if (error_)                                                                                                    \
            return error_;                                                                                             \
        __VA_ARGS__                                                                                                    \
    }

ON_STREAM(cuStreamSynchronize, (CUstream handle), {
    if (stream->capture)
        stream->capture_broken = 1;
    NEED(!stream->capture, STREAM_CAPTURE_UNSUPPORTED);
    stream_finish(stream);
    pool_trim_device(stream->ctx->device);
    return CUDA_SUCCESS;
})

ON_STREAM(cuStreamQuery, (CUstream handle), {
    NEED(!stream->capture, STREAM_CAPTURE_UNSUPPORTED);
    if (!stream->head)
        return CUDA_SUCCESS;
    stream_run(stream, stream->head->seq);
    return stream->head ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
})

ON_STREAM(cuStreamGetFlags, (CUstream handle, unsigned *out), {
    NEED(out, INVALID_VALUE);
    *out = stream->flags;
    return CUDA_SUCCESS;
})
ON_STREAM(cuStreamGetPriority, (CUstream handle, int *out), {
    NEED(out, INVALID_VALUE);
    *out = stream->priority;
    return CUDA_SUCCESS;
})
ON_STREAM(cuStreamGetId, (CUstream handle, unsigned long long *out), {
    NEED(out, INVALID_VALUE);
    *out = stream->id;
    return CUDA_SUCCESS;
})
ON_STREAM(cuStreamGetCtx, (CUstream handle, CUcontext *out), {
    NEED(out, INVALID_VALUE);
    *out = stream->ctx;
    return CUDA_SUCCESS;
})
ON_STREAM(cuStreamGetDevice, (CUstream handle, CUdevice *out), {
    NEED(out, INVALID_VALUE);
    *out = stream->ctx->device;
    return CUDA_SUCCESS;
})

static void run_host(struct work *work)
{
    ((void (*)(void *))(uintptr_t)work->a[0])((void *)work->a[1]);
}
ON_STREAM(cuLaunchHostFunc, (CUstream handle, void (*function)(void *), void *data), {
    NEED(function, INVALID_VALUE);
    return stream_add(stream, &(struct work){.run = run_host, .a = {(uintptr_t)function, (uintptr_t)data}},
                      CU_GRAPH_NODE_TYPE_HOST, NULL);
})

static void run_callback(struct work *work)
{
    ((void (*)(CUstream, CUresult, void *))(uintptr_t)work->a[0])((CUstream)work->a[2], CUDA_SUCCESS,
                                                                  (void *)work->a[1]);
}
ON_STREAM(cuStreamAddCallback,
          (CUstream handle, void (*function)(CUstream, CUresult, void *), void *data, unsigned flags), {
              NEED(function && !flags, INVALID_VALUE);
              NEED(!stream->capture, STREAM_CAPTURE_UNSUPPORTED);
              return stream_add(
                  stream,
                  &(struct work){.run = run_callback, .a = {(uintptr_t)function, (uintptr_t)data, (uintptr_t)handle}},
                  0, NULL);
          })

/* Kernels are device code: nothing here can run them. A launch is work that does nothing. */
static void run_nothing(struct work *work)
{
    (void)work;
}
ON_STREAM(cuLaunchKernel,
          (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
           unsigned shared, CUstream handle, void **arguments, void **extra),
          {
              (void)shared;
              (void)arguments;
              (void)extra;
              NEED(function, INVALID_HANDLE);
              NEED(gx && gy && gz && bx && by && bz && (uint64_t)bx * by * bz <= 1024, INVALID_VALUE);
              return stream_add(stream, &(struct work){.run = run_nothing}, CU_GRAPH_NODE_TYPE_KERNEL, NULL);
          })

ON_STREAM(cuStreamBatchMemOp, (CUstream handle, unsigned count, void *operations), {
    NEED(operations && count <= 256, INVALID_VALUE);
    return stream_add(stream, &(struct work){.run = run_nothing}, 12, NULL);
})
ON_STREAM(cuStreamBatchMemOp_v2, (CUstream handle, unsigned count, void *operations), {
    NEED(operations && count <= 256, INVALID_VALUE);
    return stream_add(stream, &(struct work){.run = run_nothing}, 12, NULL);
})

/* --- capture --- */

static CUresult capture_begin(struct CUstream_st *stream, int mode)
{
    NEED(mode >= 0 && mode <= 2, INVALID_VALUE);
    NEED(!stream->is_legacy, STREAM_CAPTURE_UNSUPPORTED);
    NEED(!stream->capture, ILLEGAL_STATE);
    stream->capture = graph_new();
    NEED(stream->capture, OUT_OF_MEMORY);
    stream->capture_mode = mode;
    stream->capture_broken = 0;
    stream->capture_joined = NULL;
    stream->capture_id = sim_ids++;
    return CUDA_SUCCESS;
}
ON_STREAM(cuStreamBeginCapture, (CUstream handle), { return capture_begin(stream, 0); })
ON_STREAM(cuStreamBeginCapture_v2, (CUstream handle, int mode), { return capture_begin(stream, mode); })

ON_STREAM(cuStreamEndCapture, (CUstream handle, CUgraph *out), {
    NEED(out, INVALID_VALUE);
    NEED(stream->capture && !stream->capture_joined, ILLEGAL_STATE);
    for (struct CUstream_st *s = streams; s; s = s->next)
        if (s != stream && s->capture == stream->capture) {
            s->capture = NULL;
            s->capture_joined = NULL;
        }
    *out = stream->capture_broken ? NULL : stream->capture;
    stream->capture = NULL;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
})

static CUresult capture_status(struct CUstream_st *stream, int *status, cuuint64_t *id, CUgraph *graph)
{
    NEED(status, INVALID_VALUE);
    *status = !stream->capture         ? CU_STREAM_CAPTURE_STATUS_NONE
              : stream->capture_broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (id && *status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        *id = stream->capture_id;
    if (graph && *status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        *graph = stream->capture;
    return CUDA_SUCCESS;
}
ON_STREAM(cuStreamIsCapturing, (CUstream handle, int *status), { return capture_status(stream, status, NULL, NULL); })
ON_STREAM(cuStreamGetCaptureInfo, (CUstream handle, int *status, cuuint64_t *id),
          { return capture_status(stream, status, id, NULL); })
ON_STREAM(cuStreamGetCaptureInfo_v2,
          (CUstream handle, int *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes, size_t *count), {
              if (nodes)
                  *nodes = NULL;
              if (count)
                  *count = 0;
              return capture_status(stream, status, id, graph);
          })
ON_STREAM(cuStreamGetCaptureInfo_v3,
          (CUstream handle, int *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes, const void **edges,
           size_t *count),
          {
              if (nodes)
                  *nodes = NULL;
              if (edges)
                  *edges = NULL;
              if (count)
                  *count = 0;
              return capture_status(stream, status, id, graph);
          })
API cuThreadExchangeStreamCaptureMode(int *mode)
{
    static __thread int now;
    BEGIN;
    NEED(mode && *mode >= 0 && *mode <= 2, INVALID_VALUE);
    int before = now;
    now = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

/* --- events --- */

static int event_valid(const struct CUevent_st *event)
{
    for (const struct CUevent_st *e = events; e; e = e->next)
        if (e == event)
            return 1;
    return 0;
}

API cuEventCreate(CUevent *out, unsigned flags)
{
    BEGIN_CONTEXT;
    NEED(out && !(flags & ~7u), INVALID_VALUE);
    struct CUevent_st *event = calloc(1, sizeof *event);
    NEED(event, OUT_OF_MEMORY);
    event->ctx = ctx;
    event->next = events;
    *out = events = event;
    return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent event)
{
    NEED(event_valid(event), INVALID_HANDLE);
    for (struct CUevent_st **at = &events; *at; at = &(*at)->next)
        if (*at == event) {
            *at = event->next;
            break;
        }
    free(event);
    return CUDA_SUCCESS;
}
API cuEventDestroy(CUevent event)
{
    BEGIN_CONTEXT;
    return event_destroy(event);
}
API cuEventDestroy_v2(CUevent event)
{
    BEGIN_CONTEXT;
    return event_destroy(event);
}

static CUresult record(CUevent event, struct CUstream_st *stream)
{
    NEED(event_valid(event), INVALID_HANDLE);
    NEED(event->ctx == stream->ctx, INVALID_HANDLE);
    event->capture = stream->capture;
    event->capture_origin = stream->capture_joined ? stream->capture_origin : stream;
    if (stream->capture)
        return CUDA_SUCCESS;
    event->stream = stream;
    return stream_add(stream, &(struct work){.run = run_nothing}, 0, &event->seq);
}
API cuEventRecord(CUevent event, CUstream handle)
{
    BEGIN_CONTEXT;
    struct CUstream_st *stream;
    CUresult error = stream_of(handle, 0, &stream);
    return error ? error : record(event, stream);
}
API cuEventRecord_ptsz(CUevent event, CUstream handle)
{
    BEGIN_CONTEXT;
    struct CUstream_st *stream;
    CUresult error = stream_of(handle, 1, &stream);
    return error ? error : record(event, stream);
}
API cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned flags)
{
    NEED(flags <= 1, INVALID_VALUE);
    return cuEventRecord(event, handle);
}
API cuEventRecordWithFlags_ptsz(CUevent event, CUstream handle, unsigned flags)
{
    NEED(flags <= 1, INVALID_VALUE);
    return cuEventRecord_ptsz(event, handle);
}

static void run_wait(struct work *work)
{
    struct CUstream_st *other = (struct CUstream_st *)work->a[0];
    if (stream_live(other)) /* one that was destroyed had its work done */
        stream_run(other, work->a[1]);
}
ON_STREAM(cuStreamWaitEvent, (CUstream handle, CUevent event, unsigned flags), {
    NEED(flags <= 1, INVALID_VALUE);
    NEED(event_valid(event), INVALID_HANDLE);
    if (event->capture) { /* this stream's work is captured too until the origin's capture ends */
        NEED(!stream->capture || stream->capture == event->capture, STREAM_CAPTURE_INVALIDATED);
        if (!stream->capture) {
            stream->capture = stream->capture_joined = event->capture;
            stream->capture_origin = event->capture_origin;
            stream->capture_broken = 0;
        }
        return CUDA_SUCCESS;
    }
    if (!event->stream)
        return CUDA_SUCCESS;
    NEED(!stream->capture, STREAM_CAPTURE_UNSUPPORTED);
    return stream_add(stream, &(struct work){.run = run_wait, .a = {(uintptr_t)event->stream, event->seq}}, 0, NULL);
})

API cuEventQuery(CUevent event)
{
    BEGIN_CONTEXT;
    NEED(event_valid(event), INVALID_HANDLE);
    NEED(!event->capture, STREAM_CAPTURE_UNSUPPORTED);
    if (!event->stream || stream_done(event->stream, event->seq))
        return CUDA_SUCCESS;
    stream_run(event->stream, event->stream->head->seq);
    return stream_done(event->stream, event->seq) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

API cuEventSynchronize(CUevent event)
{
    BEGIN_CONTEXT;
    NEED(event_valid(event), INVALID_HANDLE);
    NEED(!event->capture, STREAM_CAPTURE_UNSUPPORTED);
    if (event->stream)
        stream_run(event->stream, event->seq);
    pool_trim_device(event->ctx->device);
    return CUDA_SUCCESS;
}

static CUresult elapsed(float *out, CUevent start, CUevent end)
{
    NEED(out, INVALID_VALUE);
    NEED(event_valid(start) && event_valid(end), INVALID_HANDLE);
    if ((start->stream && !stream_done(start->stream, start->seq)) ||
        (end->stream && !stream_done(end->stream, end->seq)))
        return CUDA_ERROR_NOT_READY;
    *out = (float)(end->seq - start->seq) * 0.001f; /* a microsecond a piece of work */
    return CUDA_SUCCESS;
}
API cuEventElapsedTime(float *out, CUevent start, CUevent end)
{
    BEGIN_CONTEXT;
    return elapsed(out, start, end);
}
API cuEventElapsedTime_v2(float *out, CUevent start, CUevent end)
{
    BEGIN_CONTEXT;
    return elapsed(out, start, end);
}
