/*
 * export_torch.h: what the files export_torch*.c share, nobody else: the snapshot being written, and the state of each
 * device.
 */
#ifndef MEMPROF_EXPORT_TORCH_H
#define MEMPROF_EXPORT_TORCH_H

#include "../../common/array.h"
#include "../../common/map.h"
#include "../../formats/torch_snapshot/snapshot_words.h"
#include "../query/walk.h"
#include "export.h"

#define TORCH_DEVICES_MAX  64
#define TORCH_TEXTS        2            /* compile_context, user_metadata */
#define TORCH_REGION_BYTES (2ull << 20) /* what stands for segments comes in these */
#define TORCH_ADDRESS_BITS 53           /* of addresses: numbers in the viewer are doubles */
#define TORCH_PAGE_REGIONS (1ul << 15)  /* bits of a page */
#define TORCH_REGIONS      ((1ull << TORCH_ADDRESS_BITS) / TORCH_REGION_BYTES)
#define TORCH_PAGES        (TORCH_REGIONS / TORCH_PAGE_REGIONS)

enum block_state { BLOCK_UNUSED, BLOCK_ACTIVE, BLOCK_PENDING };

struct block {
    uint64_t address;
    int64_t size_bytes, stack_id;
    uint8_t kind;
    uint8_t state; /* enum block_state */
};

struct range {
    uint64_t start, end;
    int64_t stack_id, stream, pool[2];
    int is_expandable, is_small;
};

struct trace { /* of one device */
    int64_t device_id;
    int number;         /* as PyTorch counts */
    int64_t process_id; /* this one only; 0: all */
    int64_t count;
    struct block *blocks;
    uint32_t block_count, block_capacity;
    uint32_t *unused; /* places in blocks of those that are gone */
    uint32_t unused_count, unused_capacity;
    struct map live;        /* address, kind -> index */
    struct range *segments; /* by address, disjoint */
    uint32_t segment_count, segment_capacity;
    uint64_t **regions;   /* numbers of TORCH_REGION_BYTES that blocks without a segment lay in: a bit each, in pages */
    struct map processes; /* id -> order */
    uint32_t process_count;
    /* of an imported snapshot */
    sqlite3_stmt *texts, *marks;
    int has_texts, has_mark; /* their current rows are still to come */
    int64_t entry_number;    /* entries of its history so far */
    char *text[TORCH_TEXTS]; /* of the entry; NULL: it has none */
};

struct exporting {
    sqlite3 *db;
    struct snapshot_writer writer;
    struct walk *walk;
    struct map frames;   /* address_id and place in its inline chain -> number in the pickle's memo */
    struct map stacks;   /* stack_id and whether of a free -> that of the list */
    struct map unfiled;  /* address_ids whose file name is empty */
    uint32_t freed_memo; /* of the frame that stands before the stacks of frees, plus 1 */
    struct error *err;
    int rc; /* of reading stacks */
    int64_t start_us;
    const struct export_options *options;
    int is_import;
    struct trace *traces;
    int trace_count;
    int64_t entries;
    int64_t other_processes;                /* of the host that are not in it: a snapshot is of one process */
    int64_t small_left_out, early_left_out; /* allocations and events that the options leave out */
    int64_t window_left_out;                /* events before the window */
    int has_late;                           /* there are events behind it */
    int64_t left_out;                       /* blocks of processes beyond PROCESSES_MAX, or across segments */
};

/* export_torch_frames.c: the key "frames" and the list. Frames and lists of frames are written once. */
void torch_frames(struct exporting *e, int64_t stack_id);
void torch_frames_freed(struct exporting *e, int64_t stack_id); /* of a free: who allocated, and that it says that */

/* export_torch_trace.c: the history of a device, and its state at the end of it */
int torch_trace_write(struct exporting *e, struct trace *t, const char *device, struct error *err);
uint32_t torch_segment_at(const struct trace *t, uint64_t address); /* the first that ends after it */
void torch_segment_insert(struct trace *t, uint32_t at, const struct range *r);
int torch_has_region(const struct trace *t, uint64_t number);

/* export_torch_final.c: segments and their blocks. count: of all devices' segments so far */
void torch_final_write(struct exporting *e, struct trace *t, int64_t *count);

/* export_torch_import.c. Without an import they find nothing. */
int torch_import_files(struct exporting *e, struct error *err);
int torch_import_open(struct exporting *e, struct trace *t, struct error *err);
void torch_import_close(struct trace *t);
void torch_import_next(struct exporting *e, struct trace *t);
void torch_import_texts(struct exporting *e, const struct trace *t);
/* The name of the next mark, if it is from before that time; until torch_import_mark_done. */
const char *torch_import_mark(struct exporting *e, struct trace *t, int64_t before_us, int64_t *time_us);
void torch_import_mark_done(struct exporting *e, struct trace *t);

#endif
