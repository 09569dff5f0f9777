/*
 * page_data.h: what the page is made of, between reading the database (page_*.c) and writing the file (html.c). Indexes
 * are the page's own: only what is shown gets one. Everything read from the database is hostile until written through
 * page_pack or buf_html.
 */
#ifndef MEMPROF_PAGE_DATA_H
#define MEMPROF_PAGE_DATA_H

#include "../../common/array.h"
#include "../../common/buf.h"
#include "../../common/map.h"
#include "../query/heap_end.h"
#include "../query/stat.h"
#include "html.h"

#include <stdint.h>
#include <stdio.h>

/* What the page holds at most; beyond it things are folded, and the page says so. */
#define PAGE_SITES_MAX        6000
#define PAGE_NODES_MAX        120000
#define PAGE_FOLDED_MAX       6000 /* sites that stand for others */
#define PAGE_LINES_MAX        4000
#define PAGE_INSTANTS         120 /* evenly spaced; named ones come on top */
#define PAGE_ENTRIES_MAX      260000
#define PAGE_BUCKETS_MAX      12000
#define PAGE_BLOCKS_MAX       3000
#define PAGE_SEGMENTS_MAX     2000
#define PAGE_MARKS_MAX        2000
#define PAGE_ROWS_MAX         2000 /* of processes, threads, counters */
#define PAGE_FAILURES_MAX     1000
#define PAGE_FAILURE_STACKS   64 /* of the first and the last failures, half and half */
#define PAGE_TRANSFERS_MAX    500
#define PAGE_DEVICES_MAX      64
#define PAGE_DIFF_NODES_MAX   40000 /* of the flame graph of two recordings */
#define PAGE_DIFF_ROWS_MAX    1000  /* of each of their tables */
#define PAGE_SOURCE_FUNCTIONS 80
#define PAGE_SOURCE_BYTES     600000

struct page_function {
    char *name;
    int32_t file, line; /* where it is declared; file -1: unknown */
    uint8_t unknown;    /* an address without a symbol */
    uint8_t is_allocator;
};

struct page_frame {
    int32_t function, file, line, module;
    uint8_t language, is_inline;
    uint8_t folded; /* stands for smaller stacks that end in this line */
};
enum page_language { PAGE_NATIVE, PAGE_PYTHON, PAGE_JIT };

struct page_node {
    int32_t parent; /* -1: below the root */
    int32_t frame;
    uint32_t first_child, next_sibling; /* MAP_NONE: none */
    uint32_t order;                     /* its number as written: callers before callees */
    uint32_t depth;
};

struct page_line {
    int32_t function, file, line;
    int32_t caller; /* function: the nearest with a name, where the line's own has none; -1: none */
    int32_t other_callers;
    int64_t unnamed_id;   /* line_id, where its own has none; else 0 */
    uint8_t is_of_builds; /* without a name, in several builds of a module: what is known of one is not theirs */
};

struct page_site {
    uint32_t node;
    int32_t line, module;
    uint16_t device;
    uint8_t kind;
    uint32_t site_count; /* sites of the database in it: 1 unless folded */
    int64_t stats[STAT_SCANNED_END];
};

/* What happened to a site between two stored instants. */
struct page_entry {
    uint32_t site;
    int64_t alloc_count, alloc_bytes, gone_count, gone_bytes, temporary_count;
    int64_t ended_bytes; /* of the gone ones: live when their process ended */
};

enum { /* why an instant is stored */
       INSTANT_PEAK = 1,
       INSTANT_RESERVED_PEAK = 2,
       INSTANT_LOCAL_PEAK = 4,
       INSTANT_OOM = 8,
       INSTANT_MARK = 16,
       INSTANT_KEYFRAME = 32,
       INSTANT_WINDOW = 64, /* where the range begins or ends that the page opens with */
       /* how the way to it is known */
       INSTANT_NET = 256,     /* only what grew and shrank since the previous one */
       INSTANT_DAMAGED = 512, /* some events before it are lost */
};

struct page_instant {
    int64_t time_ns;
    uint32_t flags;
    uint32_t first_entry, entry_count;
    uint32_t phases; /* of page_categories.c */
};

struct page_device {
    int64_t device_id;
    int64_t total_bytes; /* 0: unknown */
    char *name;
};

struct page {
    sqlite3 *db;
    const struct html_options *options;
    struct error *err;
    int64_t duration_ns, start_unix_ns;
    int64_t begin_ns; /* not 0: of a part of a rotated recording, since the run began */

    struct page_device *devices;
    uint32_t device_count, device_capacity;
    uint32_t open_device; /* that the page opens on */

    struct page_function *functions;
    uint32_t function_count, function_capacity;
    char **files;
    uint32_t file_count, file_capacity;
    int64_t *file_ids; /* of the database */
    uint32_t file_id_count, file_id_capacity;
    char **modules;
    uint32_t module_count, module_capacity;
    struct page_frame *frames;
    uint32_t frame_count, frame_capacity;
    struct page_node *nodes;
    uint32_t node_count, node_capacity;
    uint32_t *node_order; /* nodes, callers before callees */
    struct page_line *lines;
    uint32_t line_count, line_capacity;
    struct page_site *sites;
    uint32_t site_count, site_capacity;
    struct page_instant *instants;
    uint32_t instant_count, instant_capacity;
    struct page_entry *entries;
    uint32_t entry_count, entry_capacity;

    struct page_phase *phases; /* of page_categories.c */
    uint32_t phase_count, phase_capacity;
    uint16_t *phase_of;   /* site_id -> phases + 1; 0: none */
    int64_t *phase_bytes; /* kept, phase_count values each */
    uint32_t phase_bytes_count, phase_bytes_capacity;
    int has_categories;

    uint32_t *site_of; /* site_id -> sites, MAP_NONE: not there; see page_site */
    uint32_t site_of_count;
    struct map site_of_far; /* the same for ids beyond that, in files that somebody touched */
    struct map site_at;     /* (stack_id, device << 8 | kind) -> sites */
    struct map function_of, file_of, module_of, frame_of, node_of, line_at;

    uint32_t db_site_count, folded_site_count, folded_line_count;
    uint32_t damaged_chunks;
    int events_kept, net_only; /* the database has events; some instants are known by key frames alone */
    struct buf findings;       /* HTML */
    struct heap_end heap_end;  /* of page_make_findings */
};

/* Numbers the nodes callers first, siblings together. */
void page_order_nodes(struct page *page);

/* The steps: return 0 or -errno with page->err filled. */
int page_load_devices(struct page *page);
int page_load_sites(struct page *page);
int page_load_instants(struct page *page);
int page_make_findings(struct page *page);
void page_free(struct page *page);

uint32_t page_site(const struct page *page, int64_t site_id);          /* MAP_NONE: unknown */
int32_t page_device_index(const struct page *page, int64_t device_id); /* -1: unknown */
int32_t page_file(struct page *page, int64_t file_id);                 /* -1: none */
int32_t page_function(struct page *page, int64_t function_id);
uint32_t page_line(struct page *page, int32_t function, int32_t file, int32_t line);
uint32_t page_kind(const char *name);
int32_t page_line_number(sqlite3_stmt *statement, int column); /* 0 for what cannot be one */
const char *page_basename(const char *path);

/* A prepared statement with up to one bound integer; NULL with page->err. */
sqlite3_stmt *page_query(struct page *page, const char *sql);
/* Ends a query: 0, or -errno with page->err when stepping failed (rc: the last sqlite3_step's answer). */
int page_query_end(struct page *page, sqlite3_stmt *statement, int rc);

/* JSON into the page: as text, or deflated and in base64. Commas are its business. */
struct page_pack {
    FILE *out;
    struct buf text;
    int packed, comma, failed;
    void *deflate; /* z_stream */
    unsigned char carry[3];
    unsigned carry_count;
};
void pack_open(struct page_pack *pack, const char *key, char bracket); /* key NULL in arrays; bracket '{' or '[' */
void pack_close(struct page_pack *pack, char bracket);
void pack_int(struct page_pack *pack, const char *key, int64_t value); /* cut at +-2^53, what the page can count to */
void pack_text(struct page_pack *pack, const char *key, const char *text);
void pack_null(struct page_pack *pack, const char *key);
/* An array of whole numbers, stride bytes apart; delta: each but the first as the difference to the one before it. */
void pack_column(struct page_pack *pack, const char *key, uint32_t count, const int64_t *values, size_t stride,
                 int delta);
/* The rows of a query, as an array of objects named like its columns; at most limit of them. 0 or -errno with
 * page->err. */
int pack_query(struct page *page, struct page_pack *pack, const char *key, const char *sql, int limit);
/* What write makes of something, as a part of a page. 0 or -errno with err, which write fills where it fails. */
int page_write_pack(FILE *out, int packed, int (*write)(void *of, struct page_pack *pack), void *of, struct error *err);

/* The parts of the page's data, each one JSON object. Return 0 or -errno with page->err. */
int page_write_core(struct page *page, struct page_pack *pack);
int page_write_failures(struct page *page, struct page_pack *pack); /* members of the object that is open */
int page_write_timeline(struct page *page, struct page_pack *pack);
int page_write_sites(struct page *page, struct page_pack *pack);
/* Names, frames, the tree of callers: members of the object that is open. */
void page_write_tree(struct page *page, struct page_pack *pack);
int page_write_instants(struct page *page, struct page_pack *pack);
int page_write_blocks(struct page *page, struct page_pack *pack);
int page_write_source(struct page *page, struct page_pack *pack);
int page_write_devices(struct page *page, struct page_pack *pack);
/* HTML: the header and a table of the top lines, for readers without scripts and for the first paint. */
int page_write_header(struct page *page, FILE *out);
int page_write_top_lines(struct page *page, FILE *out);
/* ... and the section of the heaps at the end, where it is worth one. */
int page_write_heap(struct page *page, FILE *out);

#endif
