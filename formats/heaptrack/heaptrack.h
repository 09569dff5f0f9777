/*
 * heaptrack.h: a file of heaptrack, a line at a time. A line defines something (a text, an instruction with its inline
 * chain, a trace, an allocation: size and trace) or tells what happened: an allocation came, one went, time passed.
 * Numbers of texts, instructions and traces begin at 1 (0: none), those of allocations at 0. Numbers are hexadecimal.
 * What cannot be read is left out and counted; where more comes than is kept, reading ends there.
 */
#ifndef MEMPROF_HEAPTRACK_H
#define MEMPROF_HEAPTRACK_H

#include "../../common/buf.h"
#include "../../common/error.h"
#include "../../common/unpack.h"

#include <stdint.h>

#define HEAPTRACK_FORMAT_MIN 1u
#define HEAPTRACK_FORMAT_MAX 3u
#define HEAPTRACK_SIZE_MAX   ((1ull << 47) - 1) /* of an allocation: no process has more addresses */

struct heaptrack_frame {
    uint32_t function, file; /* texts */
    uint32_t line;
};

struct heaptrack_code { /* an instruction pointer */
    uint64_t address;
    uint32_t module;                   /* text */
    uint32_t first_frame, frame_count; /* innermost first; the others are inlined into the one after them */
};

struct heaptrack_trace {
    uint32_t code;
    uint32_t caller; /* a trace with a smaller number */
};

struct heaptrack_allocation {
    uint64_t size_bytes;
    uint32_t trace;
};

enum heaptrack_what {
    HEAPTRACK_ALLOC, /* value: the allocation's number */
    HEAPTRACK_FREE,
    HEAPTRACK_TIME, /* value: milliseconds since the start */
    HEAPTRACK_RSS,  /* value: bytes */
};

struct heaptrack_event {
    enum heaptrack_what what;
    uint64_t value;
};

struct heaptrack_text {
    const char *text; /* with a NUL after it */
    uint32_t length;
};

struct heaptrack_lines;

struct heaptrack {
    struct heaptrack_lines *lines;
    unsigned version, format;                 /* of heaptrack (0x10400: 1.4.0), of the file */
    uint64_t page_bytes, page_count;          /* the machine's; 0: not told */
    struct buf command;                       /* as one text */
    int is_attached;                          /* heaptrack came to a program that ran already */
    int is_in_command;                        /* its next line may be the command's still */
    uint64_t bad_lines;                       /* left out: not understood, or they name what is not there */
    uint64_t cut_lines;                       /* longer than is kept */
    uint64_t suppressions;                    /* leaks that heaptrack would not show: not used here */
    struct error ending;                      /* why reading ended before the file's end; "": it did not */
    struct heaptrack_code *codes;             /* from 1 */
    struct heaptrack_frame *frames;           /* from 0 */
    struct heaptrack_trace *traces;           /* from 1 */
    struct heaptrack_allocation *allocations; /* from 0 */
    struct heaptrack_text *texts;             /* from 1 */
    uint32_t code_count, frame_count, trace_count, allocation_count, text_count;
    uint32_t code_room, frame_room, trace_room, allocation_room, text_room;
    uint64_t text_bytes;
};

/* Reads up to the line that says which heaptrack wrote it. 0, or -errno with err where that is none, or one that cannot
 * be read. Free with heaptrack_close in any case. */
int heaptrack_open(struct heaptrack *h, struct unpack *source, struct error *err);
/* The next thing that happened. 0: the file has ended, or h->ending says why not. */
int heaptrack_next(struct heaptrack *h, struct heaptrack_event *event);
void heaptrack_close(struct heaptrack *h);

/* NULL for 0 and what is no text. */
static inline const char *heaptrack_text_of(const struct heaptrack *h, uint32_t number)
{
    return number && number <= h->text_count ? h->texts[number].text : NULL;
}

#endif
