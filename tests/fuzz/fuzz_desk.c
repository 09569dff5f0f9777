/*
 * The shared memory of a recording that goes on, written by somebody hostile, and its file, too: what `top` shows of
 * them, what `mark` asks, and what the collector makes of the requests in the slots. The input is words to be written
 * into the head of the memory and into its desk, then changes to the file (change.h).
 */
#include "../../common/db.h"
#include "../../profiler/collect/control.h"
#include "../../profiler/collect/desk.h"
#include "../../profiler/collect/watch.h"
#include "../../profiler/outside/outside.h"
#include "../../profiler/outside/request.h"
#include "../../report/live/frame.h"
#include "change.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

static struct {
    struct clock clock;
    struct session session;
    struct store *store;
    struct stacks *stacks;
    struct watch *watch;
    struct processes processes;
    struct drain *drain;
    struct account *account;
    struct desk *desk;
    struct control *control;
} collector;
static struct wire_desk *wire, good_desk;
static uint8_t good_head[sizeof(struct wire_control)];
static char store_path[64], host[256];
static int is_asked; /* the thread below answers while it is set */
static FILE *null_file;

static void remove_files(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char name[80];
    unlink(path);
    for (unsigned i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(name, sizeof name, "%s%s", store_path, suffixes[i]);
        unlink(name);
    }
}

static void take(void *arg, const struct event *events, size_t count)
{
    (void)arg, (void)events, (void)count;
}

/* Who answers requests of ours, as if he were the collector; else each of them would take two seconds. */
static void *answer(void *arg)
{
    for (;;) {
        for (unsigned i = 0; __atomic_load_n(&is_asked, __ATOMIC_ACQUIRE) && i < WIRE_REQUESTS; i++) {
            struct wire_request *r = &wire->requests[i];
            __atomic_store_n(&r->answered, __atomic_load_n(&r->asked, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
        }
        nanosleep(&(struct timespec){0, 50000}, NULL);
    }
    return arg;
}

static void start(void)
{
    struct error err;
    pthread_t thread;
    change_start();
    null_file = fopen("/dev/null", "w");
    gethostname(host, sizeof host - 1);
    snprintf(store_path, sizeof store_path, "/dev/shm/memprof-fuzz-%d-store.db", (int)getpid());
    atexit(remove_files);
    clock_open(&collector.clock, 0);
    clock_calibrate(&collector.clock);
    const struct session_options options = {.library = "/lib.so", .depth = 512, .follow = 1};
    if (session_open(&collector.session, &options, &err) || store_create(store_path, &collector.store, &err))
        abort();
    collector.stacks = stacks_open(collector.store);
    if (watch_start(&collector.watch, &collector.session, &collector.clock, -1, -1, -1, &err))
        abort();
    processes_open(&collector.processes, &collector.session, collector.store, &collector.clock, collector.watch,
                   collector.stacks, -1);
    collector.drain = drain_open(&collector.session, collector.store, &collector.clock, &collector.processes,
                                 (struct drain_sink){.events = take});
    collector.account = account_open(collector.store, &(struct account_options){0});
    collector.desk = desk_open(&collector.session, collector.account, drain_state(collector.drain).devices);
    collector.control =
        control_open(&collector.session, collector.drain, collector.account, &collector.processes, &collector.clock, 0);
    wire = (struct wire_desk *)((char *)collector.session.control + WIRE_DESK_OFFSET);
    desk_publish(collector.desk, 1u << 30);
    memcpy(&good_desk, wire, sizeof good_desk);
    memcpy(good_head, collector.session.control, sizeof good_head);
    pthread_create(&thread, NULL, answer, NULL);
}

static uint64_t take_word(struct input *in)
{
    uint64_t word = 0;
    for (unsigned i = input_take(in) % 9; i > 0; i--)
        word = word << 8 | input_take(in);
    return word;
}

/* Where and what. The robust mutex of the collector is the kernel's business. */
static void poke(struct input *in)
{
    const unsigned where = input_take(in), size = 1u << where % 4;
    const uint64_t word = take_word(in);
    char *to = (char *)wire;
    size_t room = sizeof *wire;
    if (where & 0x40) {
        to = (char *)collector.session.control;
        room = offsetof(struct wire_control, owner);
    } else if (where & 0x80) {
        to = (char *)&wire->requests[where >> 2 & 3];
        room = sizeof(struct wire_request);
    }
    size_t at = (input_take(in) << 8 | input_take(in)) % (room - size);
    memcpy(to + at, &word, size);
}

/* As if it were ours, and we its collector. */
static int pretend(void)
{
    sqlite3 *db;
    sqlite3_stmt *q = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_prepare_v2(db,
                           "INSERT OR REPLACE INTO meta(key, value) VALUES('state', 'recording'), ('collector_pid', "
                           "?1), ('start_unix_ns', ?2), ('host', ?3)",
                           -1, &q, NULL) != SQLITE_OK) {
        sqlite3_close(db);
        return 0;
    }
    sqlite3_bind_int64(q, 1, getpid());
    sqlite3_bind_int64(q, 2, (int64_t)time(NULL) * 1000000000);
    sqlite3_bind_text(q, 3, host, -1, SQLITE_STATIC);
    int is_done = sqlite3_step(q) == SQLITE_DONE;
    sqlite3_finalize(q);
    sqlite3_close(db);
    return is_done;
}

static void show(struct running *live, unsigned how)
{
    struct buf lines = BUF(1 << 20);
    struct frame frame = {.out = {.file = null_file, .width = how % 3 ? 80 : 20, .utf8 = how & 1},
                          .height = 5 + (int)how % 40,
                          .view = {.by = (enum site_names_by)(how % SITE_NAMES_BYS),
                                   .sort = (enum running_sort)(how / 4 % RUNNING_SORTS),
                                   .device = how & 0x10 ? "cuda" : NULL},
                          .has_help = how % 16 == 15};
    frame_draw(live, &frame, &lines);
    if (memchr(lines.data, 0, lines.length))
        abort();
    frame.out.format = how & 0x20 ? REPORT_JSON : REPORT_TEXT;
    frame_once(live, &frame.view, path, 0, &frame.out);
    buf_free(&lines);
}

static void look(unsigned how)
{
    struct running *live = NULL;
    struct outside *outside = NULL;
    struct error err;
    char name[WIRE_NAME_BYTES + 1];
    struct wire_figures figures;
    enum wire_reply reply;
    if (running_open(path, NULL, 1, &live, &err) == 0)
        show(live, how);
    running_close(live);
    if (outside_open(path, &outside, &err) == 0) {
        for (unsigned i = 0; i < WIRE_FIGURES + 1; i++)
            if (outside_row(outside, i, name, &figures) && strlen(name) > WIRE_NAME_BYTES)
                abort();
        __atomic_store_n(&is_asked, 1, __ATOMIC_RELEASE);
        if (how % 4 == 0)
            request_ask(outside, "fuzz", WIRE_WISH_MARK, (int)how, "a mark", &reply, &err);
        __atomic_store_n(&is_asked, 0, __ATOMIC_RELEASE);
    }
    outside_close(outside);
}

/* The collector's own state is not in the memory: what was written there changes none of it. */
static void serve(void)
{
    for (unsigned i = 0; i < 3; i++) {
        drain_round_until(collector.drain, control_bound(collector.control));
        control_look(collector.control);
        desk_is_asked(collector.desk, clock_monotonic_ns());
        desk_publish(collector.desk, clock_monotonic_ns());
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    if (!seed_count)
        start();
    const unsigned how = input_take(&in), what = input_take(&in);
    for (unsigned i = input_take(&in) % 32; i > 0 && in.size; i--)
        poke(&in);
    if (!(what & 3))
        in.size = 0; /* the file as it was */
    if (what & 4)
        serve();
    change_write(&in, 0);
    if (!(what & 8) && pretend())
        look(how);
    memcpy(collector.session.control, good_head, offsetof(struct wire_control, owner));
    memcpy(wire, &good_desk, sizeof good_desk);
    serve();
    return 0;
}
