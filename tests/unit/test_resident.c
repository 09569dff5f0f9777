/* Which bytes of blocks are on present pages: random blocks and pages against a model that looks at each byte; what is
 * no block's; which looks are kept. */
#include "../../common/kind.h"
#include "../../common/packed.h"
#include "../../profiler/account/resident_rows.h"
#include "../../profiler/account/seen.h"
#include "account_run.h"
#include "random.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BASE 0x7f0000000000ull
enum { PAGES = 64, STACKS = 5, BYTES = PAGES * RESIDENT_PAGE };

/* The pages of a model as ranges, cut where there are `gap` of them that are not there. */
static void make_pages(struct resident_pages *p, const uint8_t *flags, unsigned gap)
{
    static struct resident_range ranges[PAGES];
    static uint8_t kept[PAGES];
    *p = (struct resident_pages){.ranges = ranges, .flags = kept, .has_kinds = 1};
    for (unsigned i = 0, none = gap; i < PAGES; i++) {
        none = flags[i] ? 0 : none + 1;
        if (none >= gap) {
            none = gap;
            continue;
        }
        uint64_t at = BASE + i * RESIDENT_PAGE;
        struct resident_range *r = p->range_count ? &ranges[p->range_count - 1] : NULL;
        if (!r || r->end != at) {
            r = &ranges[p->range_count++];
            *r = (struct resident_range){at, at, p->page_count};
        }
        r->end += RESIDENT_PAGE;
        kept[p->page_count++] = flags[i];
    }
}

static void alloc(struct account_run *r, uint64_t address, uint64_t size, uint32_t stack, unsigned kind)
{
    struct event e = {
        .op = EVENT_ALLOC, .address = address, .size_bytes = size, .stack_id = stack, .kind = (uint8_t)kind};
    account_feed(r, &e, 1, 0);
}

static const struct resident_site *site_of_stack(const struct resident_result *result, uint32_t stack, unsigned kind)
{
    int64_t id = account_query("SELECT site_id FROM site WHERE stack_id = %u AND kind = '%s'", stack, kind_name(kind));
    for (uint32_t i = 0; i < result->site_count; i++)
        if (result->sites[i].site == (uint32_t)id)
            return &result->sites[i];
    return NULL;
}

static uint64_t of_flag(const uint8_t *flags, uint64_t at, uint8_t flag)
{
    return (flags[at / RESIDENT_PAGE] & flag) != 0;
}

/* Everything of a page is somebody's. */
static void check_sums(const struct resident_result *result, const uint8_t *flags)
{
    struct resident_sum sum = {0};
    uint64_t present = 0, swapped = 0;
    for (uint32_t i = 0; i < result->site_count; i++) {
        sum.resident_bytes += result->sites[i].sum.resident_bytes;
        sum.swapped_bytes += result->sites[i].sum.swapped_bytes;
        sum.shared_bytes += result->sites[i].sum.shared_bytes;
        sum.huge_bytes += result->sites[i].sum.huge_bytes;
    }
    for (unsigned i = 0; i < REST_COUNT; i++) {
        sum.resident_bytes += result->rest[i].resident_bytes;
        sum.swapped_bytes += result->rest[i].swapped_bytes;
        sum.shared_bytes += result->rest[i].shared_bytes;
        sum.huge_bytes += result->rest[i].huge_bytes;
    }
    for (unsigned i = 0; i < PAGES; i++) {
        present += flags[i] & RESIDENT_PRESENT ? RESIDENT_PAGE : 0;
        swapped += flags[i] & RESIDENT_SWAPPED ? RESIDENT_PAGE : 0;
    }
    assert_memory_equal(&sum, &result->all, sizeof sum);
    assert_int_equal(sum.resident_bytes, present);
    assert_int_equal(sum.swapped_bytes, swapped);
}

static void test_random(void **state)
{
    (void)state;
    static uint8_t owner[BYTES], flags[PAGES]; /* stack of the block at each byte, 0: none */
    static const uint8_t kinds[] = {0,
                                    0,
                                    RESIDENT_PRESENT,
                                    RESIDENT_PRESENT,
                                    RESIDENT_PRESENT | RESIDENT_SHARED,
                                    RESIDENT_PRESENT | RESIDENT_HUGE,
                                    RESIDENT_SWAPPED};
    struct account_run r;
    srand(11);
    account_run_open(&r, &(struct account_options){0});
    for (unsigned round = 0; round < random_volume(200, 50); round++) {
        struct resident_pages pages;
        struct resident_result result;
        uint64_t at = (uint64_t)(rand() % 9000);
        memset(owner, 0, sizeof owner);
        for (unsigned i = 0; i < PAGES; i++)
            flags[i] = kinds[(unsigned)rand() % sizeof kinds];
        while (at < BYTES - 20000) {
            uint64_t size = (uint64_t)(rand() % (rand() % 4 ? 300 : 20000));
            unsigned stack = 1 + (unsigned)rand() % STACKS;
            alloc(&r, BASE + at, size, stack, KIND_heap);
            memset(owner + at, (int)stack, size);
            at += size + 16 + (uint64_t)(rand() % 8 ? rand() % 64 : rand() % 20000);
        }
        account_flush(r.account, 1);
        make_pages(&pages, flags, 1 + (unsigned)rand() % 4);
        resident_blocks(r.account, 1, &pages, NULL, &result);
        for (unsigned stack = 1; stack <= STACKS; stack++) {
            struct resident_sum sum = {0};
            uint64_t live = 0;
            for (uint64_t i = 0; i < BYTES; i++) {
                if (owner[i] != stack)
                    continue;
                live++;
                sum.resident_bytes += of_flag(flags, i, RESIDENT_PRESENT);
                sum.shared_bytes += of_flag(flags, i, RESIDENT_SHARED);
                sum.huge_bytes += of_flag(flags, i, RESIDENT_HUGE);
                sum.swapped_bytes += of_flag(flags, i, RESIDENT_SWAPPED);
            }
            const struct resident_site *site = site_of_stack(&result, stack, KIND_heap);
            if (!site)
                continue;
            assert_memory_equal(&sum, &site->sum, sizeof sum);
            assert_int_equal(site->live_bytes, live);
            assert_int_equal(site->untouched_bytes, live - sum.resident_bytes - sum.swapped_bytes);
        }
        check_sums(&result, flags);
        free(result.sites);
        account_feed(&r, &(struct event){.op = EVENT_PROCESS_END}, 1, 0); /* the next round begins with no block */
    }
    account_finish(r.account, 1);
    account_run_close(&r);
}

/* Memory of malloc that is registered, too: each byte counts once, and who was first has it. */
static void test_overlap(void **state)
{
    (void)state;
    uint8_t flags[PAGES] = {0};
    struct account_run r;
    struct resident_pages pages;
    struct resident_result result;
    account_run_open(&r, &(struct account_options){0});
    memset(flags, RESIDENT_PRESENT, 4);
    alloc(&r, BASE + 100, 10000, 1, KIND_heap);
    alloc(&r, BASE + 100, 10000, 2, KIND_pinned);
    account_finish(r.account, 1);
    make_pages(&pages, flags, 1);
    resident_blocks(r.account, 1, &pages, NULL, &result);
    assert_int_equal(site_of_stack(&result, 1, KIND_heap)->sum.resident_bytes, 10000);
    /* the second has what the first left of each page, up to its own part: 100 bytes, none, 1,908 */
    assert_int_equal(site_of_stack(&result, 2, KIND_pinned)->sum.resident_bytes, 100 + 1908);
    assert_int_equal(site_of_stack(&result, 2, KIND_pinned)->untouched_bytes, 0);
    check_sums(&result, flags);
    free(result.sites);
    account_run_close(&r);
}

/* Small blocks beside a large one: one that lies where another does, whose free nobody saw, has what that left of the
 * page; one of no bytes has no page, and makes none malloc's. */
static void test_small(void **state)
{
    (void)state;
    uint8_t flags[PAGES] = {0};
    struct resident_map maps[] = {
        {.start = BASE, .end = BASE + 4 * RESIDENT_PAGE, .rest = REST_anonymous},
        {.start = BASE + 4 * RESIDENT_PAGE, .end = BASE + 8 * RESIDENT_PAGE, .rest = REST_anonymous}};
    struct account_run r;
    struct resident_pages pages;
    struct resident_result result;
    account_run_open(&r, &(struct account_options){0});
    memset(flags, RESIDENT_PRESENT, 8);
    alloc(&r, BASE + 100, 10000, 1, KIND_heap);
    alloc(&r, BASE + 3 * RESIDENT_PAGE, 4000, 2, KIND_heap);
    alloc(&r, BASE + 3 * RESIDENT_PAGE + 112, 3000, 3, KIND_heap);
    alloc(&r, BASE + 5 * RESIDENT_PAGE, 0, 4, KIND_heap);
    account_finish(r.account, 1);
    make_pages(&pages, flags, 1);
    pages.maps = maps;
    pages.map_count = sizeof maps / sizeof *maps;
    resident_blocks(r.account, 1, &pages, NULL, &result);
    assert_int_equal(site_of_stack(&result, 1, KIND_heap)->sum.resident_bytes, 10000);
    uint64_t first = site_of_stack(&result, 2, KIND_heap)->sum.resident_bytes;
    uint64_t second = site_of_stack(&result, 3, KIND_heap)->sum.resident_bytes;
    assert_int_equal(first + second, RESIDENT_PAGE);
    assert_true(first == 4000 || second == 3000); /* whichever is looked at first */
    assert_int_equal(site_of_stack(&result, 4, KIND_heap)->live_count, 1);
    assert_int_equal(site_of_stack(&result, 4, KIND_heap)->untouched_bytes, 0);
    assert_int_equal(result.rest[REST_anonymous].resident_bytes, 4 * RESIDENT_PAGE);
    check_sums(&result, flags);
    free(result.sites);
    account_run_close(&r);
}

/* One page each: a block's, its neighbour in the same mapping, a segment's, a stack's, one of no mapping. */
static void test_rests(void **state)
{
    (void)state;
    uint8_t flags[PAGES] = {0};
    struct resident_map maps[] = {
        {.start = BASE, .end = BASE + 8 * RESIDENT_PAGE, .rest = REST_anonymous},
        {.start = BASE + 8 * RESIDENT_PAGE, .end = BASE + 12 * RESIDENT_PAGE, .rest = REST_anonymous},
        {.start = BASE + 12 * RESIDENT_PAGE, .end = BASE + 13 * RESIDENT_PAGE, .rest = REST_stack},
        {.start = BASE + 13 * RESIDENT_PAGE, .end = BASE + 20 * RESIDENT_PAGE, .rest = REST_file}};
    struct account_run r;
    struct resident_pages pages;
    struct resident_result result;
    account_run_open(&r, &(struct account_options){0});
    memset(flags, RESIDENT_PRESENT, 22);
    alloc(&r, BASE + 5 * RESIDENT_PAGE, 1000, 1, KIND_heap);
    alloc(&r, BASE + 15 * RESIDENT_PAGE, 2 * RESIDENT_PAGE, 2, KIND_map);
    struct event segment = {.op = EVENT_SEGMENT_ALLOC,
                            .address = BASE + 9 * RESIDENT_PAGE,
                            .size_bytes = 2 * RESIDENT_PAGE,
                            .kind = KIND_arena};
    account_feed(&r, &segment, 1, 0);
    account_finish(r.account, 1);
    make_pages(&pages, flags, 1);
    pages.maps = maps;
    pages.map_count = sizeof maps / sizeof *maps;
    resident_blocks(r.account, 1, &pages, NULL, &result);
    assert_int_equal(result.rest[REST_beside].resident_bytes, RESIDENT_PAGE - 1000);
    assert_int_equal(result.rest[REST_heap].resident_bytes, 7 * RESIDENT_PAGE);
    assert_int_equal(result.rest[REST_segment].resident_bytes, 2 * RESIDENT_PAGE);
    assert_int_equal(result.rest[REST_stack].resident_bytes, RESIDENT_PAGE);
    assert_int_equal(result.rest[REST_file].resident_bytes, 5 * RESIDENT_PAGE);
    assert_int_equal(result.rest[REST_anonymous].resident_bytes, (2 + 2) * RESIDENT_PAGE);
    check_sums(&result, flags);
    free(result.sites);
    /* what it does not have of shared memory, another one may */
    flags[15] = flags[16] = 0;
    make_pages(&pages, flags, 1);
    pages.maps = maps;
    pages.map_count = sizeof maps / sizeof *maps;
    resident_blocks(r.account, 1, &pages, NULL, &result);
    assert_int_equal(site_of_stack(&result, 2, KIND_map)->untouched_bytes, 2 * RESIDENT_PAGE);
    free(result.sites);
    maps[3].is_shared = 1;
    resident_blocks(r.account, 1, &pages, NULL, &result);
    assert_int_equal(site_of_stack(&result, 2, KIND_map)->untouched_bytes, 0);
    check_sums(&result, flags);
    free(result.sites);
    /* of shared memory whose object is known: once the others were looked at, all that none of them has */
    struct seen touched = {0};
    maps[3].rest = REST_shared;
    maps[3].inode = 7;
    maps[3].offset = 3 * RESIDENT_PAGE;
    pages.touched = &touched;
    resident_blocks(r.account, 1, &pages, NULL, &result);
    assert_int_equal(site_of_stack(&result, 2, KIND_map)->untouched_bytes, 0);
    assert_int_equal(result.shared_count, 1);
    assert_int_equal(resident_untouched(result.shared, &touched), 2 * RESIDENT_PAGE);
    seen_again(&touched, result.shared->object, 5); /* page 15 lies two behind the mapping's first, which is 3 */
    assert_int_equal(resident_untouched(result.shared, &touched), RESIDENT_PAGE);
    result.shared->offset += 100; /* a block that begins and ends within pages */
    result.shared->size -= 200;
    assert_int_equal(resident_untouched(result.shared, &touched), RESIDENT_PAGE - 100);
    /* what is there was marked: pages 13, 14 and 17 to 19 of the mapping, which are 3, 4 and 7 to 9 of the object */
    for (uint64_t page = 0; page < 12; page++)
        assert_int_equal(seen_has(&touched, result.shared->object, page),
                         page == 3 || page == 4 || page == 5 || (page >= 7 && page <= 9));
    free(result.sites);
    free(result.shared);
    seen_clear(&touched);
    maps[3].rest = REST_file;
    pages.touched = NULL;
    pages.is_only = 1; /* there is no other */
    resident_blocks(r.account, 1, &pages, NULL, &result);
    assert_int_equal(site_of_stack(&result, 2, KIND_map)->untouched_bytes, 2 * RESIDENT_PAGE);
    free(result.sites);
    /* a process without an event so far has pages as well */
    resident_blocks(r.account, 2, &pages, NULL, &result);
    assert_int_equal(result.site_count, 0);
    check_sums(&result, flags);
    account_run_close(&r);
}

/* Two arenas of Python's, which the kernel joined with a block that malloc had mapped by itself, and with a page of
 * nobody's that is known: without, and with a block that lies in malloc's heap. */
static void test_joined(void **state)
{
    (void)state;
    uint8_t flags[PAGES] = {0};
    struct resident_map map = {.start = BASE, .end = BASE + 40 * RESIDENT_PAGE, .rest = REST_anonymous};
    struct account_run r;
    struct resident_pages pages;
    struct resident_result result;
    struct event arenas[] = {
        {.op = EVENT_SEGMENT_ALLOC, .address = BASE, .size_bytes = 2 * RESIDENT_PAGE, .kind = KIND_arena},
        {.op = EVENT_SEGMENT_ALLOC,
         .address = BASE + 36 * RESIDENT_PAGE,
         .size_bytes = 3 * RESIDENT_PAGE,
         .kind = KIND_arena}};
    account_run_open(&r, &(struct account_options){0});
    memset(flags, RESIDENT_PRESENT, 40);
    alloc(&r, BASE + 2 * RESIDENT_PAGE + 16, 34 * RESIDENT_PAGE - 100, 1, KIND_heap);
    account_feed(&r, arenas, 2, 0);
    account_flush(r.account, 1);
    for (int has_heap = 0; has_heap < 2; has_heap++) {
        if (has_heap)
            alloc(&r, BASE + 39 * RESIDENT_PAGE + 48, 100, 2, KIND_heap);
        map.end = BASE + (uint64_t)(40 + has_heap) * RESIDENT_PAGE;
        flags[40] = has_heap ? RESIDENT_PRESENT : 0;
        account_flush(r.account, 2);
        make_pages(&pages, flags, 1);
        pages.maps = &map;
        pages.map_count = 1;
        resident_blocks(r.account, 1, &pages, NULL, &result);
        assert_int_equal(result.rest[REST_segment].resident_bytes, (2 + 3) * RESIDENT_PAGE);
        assert_int_equal(result.rest[REST_anonymous].resident_bytes, has_heap ? 0 : RESIDENT_PAGE);
        assert_int_equal(result.rest[REST_heap].resident_bytes, has_heap ? RESIDENT_PAGE : 0);
        assert_int_equal(result.rest[REST_beside].resident_bytes, 100 + (has_heap ? RESIDENT_PAGE - 100 : 0));
        check_sums(&result, flags);
        free(result.sites);
    }
    account_finish(r.account, 3);
    account_run_close(&r);
}

/* A fork's child began with the first four pages: one shared, one with 1,000 bytes of a block of its own, one that it
 * shares with such a block, one copied. Behind them one of its own, and two of files. */
static void test_fork(void **state)
{
    (void)state;
    uint8_t flags[PAGES] = {RESIDENT_PRESENT | RESIDENT_SHARED,
                            RESIDENT_PRESENT,
                            RESIDENT_PRESENT | RESIDENT_SHARED,
                            RESIDENT_PRESENT,
                            RESIDENT_PRESENT,
                            RESIDENT_SWAPPED};
    struct resident_map begun[] = {{.start = BASE, .end = BASE + RESIDENT_PAGE},
                                   {.start = BASE + RESIDENT_PAGE, .end = BASE + 4 * RESIDENT_PAGE},
                                   {.start = BASE + 6 * RESIDENT_PAGE, .end = BASE + 7 * RESIDENT_PAGE}};
    struct account_run r;
    struct resident_pages pages;
    struct resident_result result;
    flags[6] = flags[7] = RESIDENT_PRESENT | RESIDENT_SHARED | RESIDENT_FILE;
    account_run_open(&r, &(struct account_options){0});
    alloc(&r, BASE + RESIDENT_PAGE + 16, 1000, 1, KIND_heap);
    alloc(&r, BASE + 2 * RESIDENT_PAGE + 16, 500, 1, KIND_heap);
    account_finish(r.account, 1);
    make_pages(&pages, flags, 1);
    resident_blocks(r.account, 1, &pages, NULL, &result); /* of another process */
    assert_memory_equal(&result.fork, &(struct resident_fork){0}, sizeof result.fork);
    free(result.sites);
    pages.begun = begun;
    pages.begun_count = sizeof begun / sizeof *begun;
    resident_blocks(r.account, 1, &pages, NULL, &result);
    assert_int_equal(result.fork.shared_bytes, 2 * RESIDENT_PAGE);
    assert_int_equal(result.fork.copied_bytes, 2 * RESIDENT_PAGE - 1000);
    assert_int_equal(result.fork.own_bytes, RESIDENT_PAGE + 1000);
    assert_int_equal(result.fork.file_bytes, 2 * RESIDENT_PAGE);
    /* what it inherited is a rest of its own, but for its blocks */
    assert_int_equal(result.rest[REST_inherited].resident_bytes, 4 * RESIDENT_PAGE - 1000 - 500);
    assert_int_equal(result.rest[REST_inherited].shared_bytes, 2 * RESIDENT_PAGE - 500);
    assert_int_equal(result.rest[REST_beside].resident_bytes, 0);
    assert_int_equal(result.rest[REST_anonymous].resident_bytes, (1 + 2) * RESIDENT_PAGE);
    check_sums(&result, flags);
    free(result.sites);
    account_run_close(&r);
}

/* A process with a family, and four pages of a file from the third on, the second of them its own copy. */
static uint64_t again(struct account_run *r, struct seen *seen, uint32_t family, uint64_t inode, uint64_t offset_pages)
{
    uint8_t flags[PAGES] = {RESIDENT_PRESENT | RESIDENT_SHARED, RESIDENT_PRESENT};
    struct resident_map map = {.start = BASE + 2 * RESIDENT_PAGE,
                               .end = BASE + 6 * RESIDENT_PAGE,
                               .rest = REST_file,
                               .inode = inode,
                               .offset = offset_pages * RESIDENT_PAGE};
    struct resident_pages pages;
    struct resident_result result;
    memset(flags + 2, RESIDENT_PRESENT | RESIDENT_SHARED | RESIDENT_FILE, 4);
    flags[3] = RESIDENT_PRESENT;
    make_pages(&pages, flags, 1);
    pages.maps = &map;
    pages.map_count = 1;
    pages.seen = seen;
    pages.family = family;
    resident_blocks(r->account, 1, &pages, NULL, &result);
    free(result.sites);
    return result.again_bytes / RESIDENT_PAGE;
}

static void test_again(void **state)
{
    (void)state;
    struct account_run r;
    struct seen seen = {0};
    account_run_open(&r, &(struct account_options){0});
    assert_int_equal(again(&r, NULL, 1, 7, 0), 0);
    assert_int_equal(again(&r, &seen, 1, 7, 0), 0);
    assert_int_equal(again(&r, &seen, 1, 7, 0), 1 + 3); /* a child: one anonymous page, three of the file */
    assert_int_equal(again(&r, &seen, 2, 7, 0), 3);     /* no relation: the file */
    assert_int_equal(again(&r, &seen, 3, 8, 0), 0);     /* another file */
    assert_int_equal(again(&r, &seen, 4, 8, 2), 1);     /* pages 2, 4 and 5 of that, which has 0, 2 and 3 */
    assert_int_equal(again(&r, &seen, 5, 0, 0), 0);     /* of no file that is known */
    assert_int_equal(again(&r, &seen, 5, 0, 0), 1);
    assert_int_equal(again(&r, &seen, 6, 9, 1000000), 0); /* far from the first page */
    assert_int_equal(again(&r, &seen, 7, 9, 1000000), 3);
    seen_clear(&seen);
    assert_int_equal(again(&r, &seen, 1, 7, 0), 0);
    seen_clear(&seen);
    account_run_close(&r);
}

/* peak_id: from that id on it is the round at the highest sum; 0: it is none, or not the last one of it. site: 7, or
 * one that is packed. */
static void add_scan(struct resident_rows *rows, uint32_t id, unsigned process, uint32_t peak_id, uint32_t site)
{
    struct resident_map begun = {0};
    struct seen seen = {0};
    struct resident_pages pages = {.begun = process == 2 ? &begun : NULL, .seen = id % 3 ? &seen : NULL};
    struct resident_site *sites = calloc(2, sizeof *sites);
    assert_non_null(sites);
    sites[0] = (struct resident_site){.site = 1, .live_count = 1, .live_bytes = 10, .untouched_bytes = 10};
    sites[1] = (struct resident_site){
        .site = site, .live_count = 2, .live_bytes = 30, .untouched_bytes = 4, .sum = {25, 24, 23, 22}};
    struct resident_result result = {.sites = sites, .site_count = 2};
    struct resident_scan scan = {.scan_id = id, .process_id = (uint16_t)process, .time_ns = id};
    result.rest[REST_file].resident_bytes = 4096;
    resident_rows_add(rows, &scan, &pages, &result);
    assert_null(result.sites);
    if (peak_id)
        resident_rows_peak(rows, peak_id);
}

/* As readers see them. */
static void check_rows(void)
{
    struct error err;
    assert_int_equal(packed_views(account_db, &err), 0);
    assert_int_equal(account_query("SELECT count(*) FROM resident_site WHERE site_id = 1 AND live_count = 1 AND "
                                   "live_bytes = 10 AND resident_bytes = 0 AND untouched_bytes = 10"),
                     account_query("SELECT count(*) FROM resident_scan"));
    assert_int_equal(
        account_query("SELECT count(*) FROM resident_site WHERE site_id IN (7, 40000) AND live_count = 2 AND "
                      "live_bytes = 30 AND resident_bytes = 25 AND shared_bytes = 24 AND huge_bytes = 23 "
                      "AND swapped_bytes = 22 AND untouched_bytes = 4"),
        account_query("SELECT count(*) FROM resident_scan"));
    assert_int_equal(account_query("SELECT sum(n) FROM (SELECT (SELECT count(*) FROM resident_site r WHERE r.scan_id = "
                                   "c.scan_id) AS n FROM resident_scan c)"),
                     account_query("SELECT count(*) * 2 FROM resident_scan"));
    assert_int_equal(account_query("SELECT count(*) FROM resident_site"),
                     account_query("SELECT count(*) * 2 FROM resident_scan"));
    assert_int_equal(account_query("SELECT count(*) FROM resident_rest"),
                     account_query("SELECT count(*) FROM resident_scan"));
    assert_int_equal(account_query("SELECT count(*) FROM resident_fork"),
                     account_query("SELECT count(*) FROM resident_scan WHERE process_id = 2"));
    assert_true(account_query("SELECT count(*) FROM resident_again") <=
                account_query("SELECT count(*) FROM resident_scan"));
    account_query("DROP TABLE IF EXISTS temp.resident_site"); /* the writer's are those of the file */
}

/* The newest round at a peak, and each process's last look: nothing else stays, whenever rows are written (bit i of
 * `when`: after the look i). From look `packed` on, looks see a site that is packed: then all of them are. */
static void kept(struct account_run *r, unsigned when, uint32_t packed)
{
    static const struct {
        unsigned process, peak_id;
        int64_t kept; /* ids; 0: within a round */
    } looks[] = {{1, 0, 0}, {2, 1, 12}, {1, 0, 123}, {1, 0, 0}, {2, 4, 45}, {2, 0, 456}, {2, 0, 457}};
    struct resident_rows *rows = resident_rows_open(r->store);
    account_query("SAVEPOINT empty");
    for (uint32_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        add_scan(rows, i + 1, looks[i].process, looks[i].peak_id, i < packed ? 7 : 40000);
        if (!(when >> i & 1) || !looks[i].kept)
            continue;
        assert_int_not_equal(resident_rows_waiting(rows), 0);
        resident_rows_write(rows);
        assert_int_equal(resident_rows_waiting(rows), 0);
        assert_int_equal(account_query("SELECT group_concat(scan_id, '') FROM resident_scan"), looks[i].kept);
        assert_int_equal(account_query("SELECT count(*) FROM resident_scan WHERE scan_id = %u AND is_last", i + 1), 1);
        check_rows();
        assert_int_equal(account_query("SELECT count(*) > 0 FROM main.resident_site"), i < packed);
    }
    resident_rows_moved(rows, 5, 9);
    resident_rows_write(rows);
    assert_int_equal(account_query("SELECT group_concat(scan_id, '') FROM resident_scan"), 457);
    assert_int_equal(account_query("SELECT group_concat(scan_id, '') FROM resident_scan WHERE is_peak"), 45);
    assert_int_equal(account_query("SELECT group_concat(scan_id, '') FROM resident_scan WHERE is_last"), 47);
    assert_int_equal(account_query("SELECT group_concat(scan_id, '') FROM resident_scan WHERE moved_count = 9"), 57);
    check_rows();
    assert_int_equal(account_query("SELECT count(*) > 0 FROM main.packed"), packed < 7);
    resident_rows_close(rows);
    account_query("ROLLBACK TO empty");
}

static void test_kept(void **state)
{
    (void)state;
    struct account_run r;
    account_run_open(&r, &(struct account_options){0});
    for (unsigned when = 0; when < 1u << 7; when += random_volume(1, 3)) {
        kept(&r, when, 7);
        kept(&r, when, when % 7);
    }
    account_run_close(&r);
}

/* What waits is let go where it is replaced, and what never was written is lost: no leak. */
static void test_waiting(void **state)
{
    (void)state;
    struct account_run r;
    account_run_open(&r, &(struct account_options){0});
    struct resident_rows *rows = resident_rows_open(r.store);
    for (uint32_t id = 1; id <= 100; id++)
        add_scan(rows, id, 1, 0, 7);
    assert_int_equal(resident_rows_waiting(rows), 3); /* a look, and its two sites */
    resident_rows_write(rows);
    assert_int_equal(account_query("SELECT group_concat(scan_id, '') FROM resident_scan"), 100);
    add_scan(rows, 101, 1, 101, 7);
    resident_rows_close(rows);
    resident_rows_close(NULL);
    account_run_close(&r);
}

/* 20 pages, of which 4 in the middle are another map and 2 at the end nothing: a block of 14 pages, which are in two
 * parts. An interpreter that takes itself down and the process's end see one block, too. */
static void test_parts(void **state)
{
    (void)state;
    struct account_run r;
    struct resident_pages pages;
    struct resident_result result;
    uint8_t flags[PAGES];
    const uint64_t page = RESIDENT_PAGE;
    struct event cuts[] = {
        {.op = EVENT_SPLIT, .address = BASE, .size_bytes = 8 * page, .kind = KIND_map},
        {.op = EVENT_SPLIT, .address = BASE + 8 * page, .size_bytes = 4 * page, .kind = KIND_map},
        {.op = EVENT_PART_FREE, .address = BASE + 8 * page, .size_bytes = 4 * page, .kind = KIND_map},
        {.op = EVENT_SPLIT, .address = BASE + 12 * page, .size_bytes = 6 * page, .kind = KIND_map},
        {.op = EVENT_PART_FREE, .address = BASE + 18 * page, .size_bytes = 2 * page, .kind = KIND_map},
    };
    struct event ends[] = {{.op = EVENT_TEARDOWN}, {.op = EVENT_PROCESS_END}};
    memset(flags, RESIDENT_PRESENT, sizeof flags);
    account_run_open(&r, &(struct account_options){0});
    alloc(&r, BASE, 20 * page, 1, KIND_map);
    account_feed(&r, cuts, 5, 0);
    alloc(&r, BASE + 8 * page, 4 * page, 2, KIND_map);
    account_flush(r.account, 1);
    make_pages(&pages, flags, 1);
    resident_blocks(r.account, 1, &pages, NULL, &result);
    const uint64_t expected[] = {14, 4};
    for (unsigned i = 0; i < 2; i++) {
        const struct resident_site *site = site_of_stack(&result, i + 1, KIND_map);
        assert_int_equal(site->live_count, 1);
        assert_int_equal(site->live_bytes, expected[i] * page);
        assert_int_equal(site->sum.resident_bytes, expected[i] * page);
        assert_int_equal(site->untouched_bytes, 0);
    }
    free(result.sites);
    account_feed(&r, ends, 1, 0);
    account_flush(r.account, 2);
    assert_int_equal(account_query("SELECT end_count FROM site WHERE stack_id = 1"), 1);
    assert_int_equal(account_query("SELECT end_bytes FROM site WHERE stack_id = 1"), 14 * page);
    account_feed(&r, ends + 1, 1, 0);
    account_finish(r.account, 3);
    assert_int_equal(account_query("SELECT end_count FROM site WHERE stack_id = 1"), 1);
    assert_int_equal(account_query("SELECT end_bytes FROM site WHERE stack_id = 1"), 14 * page);
    assert_int_equal(account_query("SELECT free_bytes FROM site WHERE stack_id = 1"), 6 * page);
    assert_int_equal(account_query("SELECT free_count FROM site WHERE stack_id = 1"), 0);
    assert_int_equal(account_query("SELECT end_count FROM total WHERE kind = 'all'"), 2);
    assert_int_equal(account_query("SELECT size_bytes FROM block WHERE stack_id = 1"), 20 * page);
    assert_int_equal(account_query("SELECT count(*) FROM block"), 2);
    assert_int_equal(account_query("SELECT count(*) FROM site_teardown"), 0);
    account_run_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random),  cmocka_unit_test(test_overlap),
                                       cmocka_unit_test(test_small),   cmocka_unit_test(test_rests),
                                       cmocka_unit_test(test_fork),    cmocka_unit_test(test_joined),
                                       cmocka_unit_test(test_again),   cmocka_unit_test(test_kept),
                                       cmocka_unit_test(test_waiting), cmocka_unit_test(test_parts)};
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
