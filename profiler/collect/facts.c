#include "facts.h"

#include "../../common/buf.h"
#include "../../common/build.h"
#include "../../common/db.h"
#include "../../common/little.h"
#include "../../common/text.h"
#include "../../common/units.h"
#include "../wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void fill_hooks(struct store *store)
{
    static const struct {
        const char *name, *kind;
    } hooks[] = {
#define X(name, kind) {#name, #kind},
#include "../wire_hooks.def"
#undef X
    };
    for (unsigned i = 0; i < sizeof hooks / sizeof *hooks; i++) {
        sqlite3_stmt *q = store_statement(store, "INSERT INTO hook VALUES(?, ?, ?)");
        sqlite3_bind_int64(q, 1, i);
        sqlite3_bind_text(q, 2, hooks[i].name, -1, SQLITE_STATIC);
        sqlite3_bind_text(q, 3, hooks[i].kind, -1, SQLITE_STATIC);
        store_step(store, q);
    }
}

static void meta_command(struct store *store, char *const argv[])
{
    struct buf command = BUF(1 << 20);
    for (int i = 0; argv[i]; i++) {
        if (i)
            buf_putc(&command, ' ');
        buf_shell(&command, argv[i]);
    }
    store_meta_text(store, "command", buf_text(&command));
    buf_free(&command);
}

/* In bytes; 0: not known. */
static int64_t machine_bytes(void)
{
    char line[256];
    long long kib, sum = 0;
    int found = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file))
        if ((sscanf(line, "MemTotal: %lld kB", &kib) == 1 || sscanf(line, "SwapTotal: %lld kB", &kib) == 1) &&
            kib >= 0 && kib < INT64_C(1) << 50) {
            sum += kib;
            found++;
        }
    if (file)
        fclose(file);
    return found == 2 ? sum * 1024 : 0;
}

/* What no allocation can be larger than, however little is in use. */
static void meta_bounds(struct store *store)
{
    struct rlimit space;
    int64_t machine = machine_bytes();
    if (machine > 0)
        store_meta_int(store, "machine_bytes", machine);
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur <= INT64_MAX) /* infinity is above */
        store_meta_int(store, "address_limit_bytes", (int64_t)space.rlim_cur);
}

/* By which recordings of one machine stand on one time axis, whatever was done to the wall clock in between. */
static void meta_boot(struct store *store, const struct clock *clock)
{
    char id[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file && fgets(id, sizeof id, file) && *id != '\n') {
        id[strcspn(id, "\n")] = 0;
        store_meta_text(store, "boot_id", id);
        store_meta_int(store, "start_monotonic_ns", (int64_t)clock->start_monotonic_ns);
    }
    if (file)
        fclose(file);
}

void facts_begin(struct store *store, const struct collect_options *options, char *const argv[],
                 const struct clock *clock)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    char *cwd = getcwd(NULL, 0);
    store_meta_text(store, "format", "memprof");
    store_meta_text(store, "writer_version", build_version);
    store_meta_text(store, "state", "recording");
    store_meta_int(store, "start_unix_ns", clock->start_unix_ns);
    meta_boot(store, clock);
    store_meta_text(store, "host", host);
    if (options->rank_name)
        store_meta_int(store, "rank", options->rank);
    store_meta_text(store, "cwd", cwd ? cwd : "");
    meta_command(store, argv);
    store_meta_text(store, "options", options->options_text ? options->options_text : "");
    const char *python_malloc = getenv("PYTHONMALLOC");
    store_meta_text(store, "python_malloc", python_malloc ? python_malloc : "");
    store_meta_int(store, "page_bytes", sysconf(_SC_PAGESIZE));
    meta_bounds(store);
    store_meta_text(store, "clock", clock->use_tsc ? "tsc" : "monotonic");
    if (options->sample_bytes) {
        store_meta_int(store, "sample_bytes", (int64_t)options->sample_bytes);
        store_meta_int(store, "sample_seed", (int64_t)options->sample_seed);
    }
    if (options->least_bytes)
        store_meta_int(store, "least_bytes", (int64_t)options->least_bytes);
    if (options->sample_bytes || options->least_bytes)
        store_needs(store, DB_SCHEMA_SAMPLED);
    store_meta_text(store, "events_kept", options->aggregate ? "none" : options->max_events ? "last" : "all");
    store_meta_text(store, "forked_heap", "blocks");
    store_meta_int(store, "collector_pid", getpid());
    if (options->is_attached)
        store_meta_int(store, "attached", 1);
    facts_progress(store, 0, 0);
    free(cwd);
    fill_hooks(store);
}

void facts_progress(struct store *store, uint64_t event_count, int64_t duration_ns)
{
    store_meta_int(store, "event_count", (int64_t)event_count);
    store_meta_int(store, "duration_ns", duration_ns);
}

struct loss {
    const char *name, *text;
    uint64_t value;
    const char *one;   /* text for a single one */
    int is_partial;    /* the file lacks something by it */
    const char *wrong; /* what numbers are wrong by so many; NULL, and not partial: none, a fact for `memprof info` */
};

#define LOSSES       17
#define UNSEEN_LEAST (1u << 20) /* less is what each thread keeps for itself */

/* replaced: the caller's, of losses for as long as they are used. */
static void list_losses(const struct facts *f, struct loss losses[LOSSES], char replaced[80])
{
    char bytes[UNITS_TEXT];
    int64_t most = (int64_t)f->counts.replaced_bytes; /* one after another; no more at once than at the peak */
    if (f->host_peak_bytes > 0 && f->host_peak_bytes < most)
        most = f->host_peak_bytes;
    snprintf(replaced, 80, "what is live was too high until then, by %s at most", units_bytes(bytes, most));
    const struct loss all[LOSSES] = {
        {"processes_refused", "processes not recorded: more than memprof has room for, at once or in all (65,535)",
         f->processes_refused, "process not recorded: more than memprof has room for, at once or in all (65,535)", 1,
         NULL},
        {"processes_disowned", "processes that were taken for ended while they ran: the rest of them is not recorded",
         f->processes_disowned, "process that was taken for ended while it ran: the rest of it is not recorded", 1,
         NULL},
        {"threads_refused", "threads not recorded: more at once than memprof has room for", f->threads_refused,
         "thread not recorded: more at once than memprof has room for", 1, NULL},
        {"bad_rings", "threads whose records were damaged; the rest of them was not used", f->bad_rings,
         "thread whose records were damaged; the rest of them was not used", 1, NULL},
        {"bad_records", "records that made no sense, not used", f->bad_records, "record that made no sense, not used",
         1, NULL},
        {"unknown_stacks", "events whose stack never came", f->unknown_stacks, "event whose stack never came", 0,
         "counted in the totals, but in no line"},
        {"unmatched_free", "frees of addresses that are no live block", f->counts.unmatched_frees,
         "free of an address that is no live block", 0, "freed twice, or of allocations that were not seen"},
        {"inherited_free",
         f->is_attached ? "frees of blocks from before memprof attached"
                        : "frees of a parent's blocks in a forked child",
         f->counts.inherited_frees,
         f->is_attached ? "free of a block from before memprof attached" : "free of a parent's block in a forked child",
         0, NULL},
        {"unseen_free", "frees of blocks that the recording left out", f->counts.unseen_frees,
         "free of a block that a pause of the recording left out", 0, NULL},
        {"unseen_heap_bytes", "bytes that glibc's heap had in use, as it says, beside all blocks that are recorded",
         f->counts.unseen_bytes >= UNSEEN_LEAST ? f->counts.unseen_bytes : 0,
         "byte that glibc's heap had in use beside all blocks that are recorded", 0, NULL},
        {"unfreed_heap_bytes", "bytes that count as live, and that glibc's heap had not in use, as it says",
         f->counts.unfreed_bytes >= UNSEEN_LEAST ? f->counts.unfreed_bytes : 0,
         "byte that counts as live, and that glibc's heap had not in use, as it says", 0,
         "calls that were not seen freed them, so what is live is too high"},
        {"replaced_block", "allocations at the address of a live block: its free was not seen",
         f->counts.replaced_blocks, "allocation at the address of a live block: its free was not seen", 0,
         little_is((int64_t)f->counts.replaced_bytes, f->host_peak_bytes) ? NULL : replaced},
        {"replaced_bytes", "bytes of the blocks whose free was not seen", f->counts.replaced_bytes,
         "byte of the blocks whose free was not seen", 0, NULL},
        {"unresolved_names", "names, views and categories said of memory where no block begins", f->unresolved_names,
         "name, view or category said of memory where no block begins", 0, NULL},
        {"names_left_out", "names and categories without a row: of a text that many blocks had, or past 65,536",
         f->counts.names_left_out, "name or category without a row: of a text that many blocks had, or past 65,536", 0,
         NULL},
        {"unlisted_failures", "allocations that failed and are not listed: the first 10,000 are",
         f->counts.unlisted_failures, "allocation that failed and is not listed: the first 10,000 are", 0, NULL},
        {"unlisted_segments", "segments that are not listed: each kind of a device lists its first 65,536",
         f->counts.missing_segments, "segment that is not listed: each kind of a device lists its first 65,536", 0,
         NULL},
    };
    memcpy(losses, all, sizeof all);
}

static void add_reason(struct buf *reason, uint64_t value, const char *one, const char *text)
{
    if (value)
        buf_printf(reason, "%s%llu %s", reason->length ? "; " : "", (unsigned long long)value, value == 1 ? one : text);
}

/* What the program side counted that makes a recording partial, with the words for it. */
static const struct {
    const char *name, *one, *text;
} program_losses[FACTS_PROGRAM_LOSSES] = {
    {"stopped", "time that recording stopped in the middle of a process",
     "times that recording stopped in the middle of a process"},
    {"lost_event", "event not recorded by the program side", "events not recorded by the program side"},
};

void facts_read_losses(struct store *store, struct facts *f)
{
    for (unsigned i = 0; i < FACTS_PROGRAM_LOSSES; i++) {
        sqlite3_stmt *q = NULL;
        f->program_losses[i] = 0;
        if (sqlite3_prepare_v2(store_db(store), "SELECT sum(value) FROM counter WHERE name = ?", -1, &q, NULL))
            continue;
        sqlite3_bind_text(q, 1, program_losses[i].name, -1, SQLITE_STATIC);
        if (sqlite3_step(q) == SQLITE_ROW)
            f->program_losses[i] = (uint64_t)sqlite3_column_int64(q, 0);
        sqlite3_finalize(q);
    }
}

void facts_end(struct store *store, const struct facts *f)
{
    struct rusage usage;
    struct loss losses[LOSSES];
    char replaced[80];
    struct buf reason = BUF(4096);
    getrusage(RUSAGE_SELF, &usage);
    list_losses(f, losses, replaced);
    for (unsigned i = 0; i < LOSSES; i++) {
        if (!losses[i].value)
            continue;
        store_counter(store, 0, losses[i].name, losses[i].value, losses[i].value == 1 ? losses[i].one : losses[i].text);
        if (losses[i].is_partial)
            add_reason(&reason, losses[i].value, losses[i].one, losses[i].text);
    }
    for (unsigned i = 0; i < FACTS_PROGRAM_LOSSES; i++)
        add_reason(&reason, f->program_losses[i], program_losses[i].one, program_losses[i].text);
    if (reason.data)
        store_meta_text(store, "partial", reason.data);
    if (f->counts.replaced_site)
        store_meta_int(store, "replaced_site_id", f->counts.replaced_site);
    buf_free(&reason);
    facts_progress(store, f->counts.events, f->duration_ns);
    store_meta_int(store, "collector_cpu_ns",
                   (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000ll +
                       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ll);
    store_meta_int(store, "collector_peak_rss_bytes", usage.ru_maxrss * 1024ll);
    store_meta_text(store, "state", "recorded");
}

void facts_read_peaks(struct store *store, struct facts *f)
{
    sqlite3_stmt *s = NULL;
    struct buf text = BUF(1 << 12);
    char peak[UNITS_TEXT];
    int count = 0;
    if (sqlite3_prepare_v2(
            store_db(store),
            "SELECT d.name, t.peak_active_bytes, count(*) OVER (), t.device_id FROM total t JOIN device d "
            "USING(device_id) WHERE t.kind = 'all' ORDER BY t.device_id",
            -1, &s, NULL) != SQLITE_OK)
        return;
    while (sqlite3_step(s) == SQLITE_ROW) {
        units_bytes(peak, sqlite3_column_int64(s, 1));
        if (sqlite3_column_int64(s, 3) == 0)
            f->host_peak_bytes = sqlite3_column_int64(s, 1);
        if (sqlite3_column_int(s, 2) == 1)
            buf_puts(&text, peak);
        else if (text.length + UNITS_TEXT + 32 < sizeof f->peaks) /* of many, those that fit */
            buf_printf(&text, "%s%s on %.24s", count++ ? ", " : "", peak, (const char *)sqlite3_column_text(s, 0));
    }
    sqlite3_finalize(s);
    snprintf(f->peaks, sizeof f->peaks, "%s", text.data ? text.data : "0 B");
    buf_free(&text);
}

static void print_loss(uint64_t value, const char *one, const char *text, const char *wrong)
{
    char count[UNITS_TEXT];
    if (value)
        fprintf(stderr, "memprof: not whole: %s %s%s%s\n", units_count(count, (int64_t)value), value == 1 ? one : text,
                wrong ? "; " : "", wrong ? wrong : "");
}

/* "the program that it executed and 2 programs of its children" */
static void print_missing(const struct facts *f, const char *file)
{
    const uint32_t executed = f->executed_missing, children = f->programs_missing - executed;
    struct buf who = BUF(256);
    if (executed == 1)
        buf_puts(&who, "the program that it executed");
    else if (executed)
        buf_printf(&who, "%u programs that it executed", executed);
    if (executed && children)
        buf_puts(&who, " and ");
    if (children)
        buf_printf(&who, "%u program%s of its children", children, children == 1 ? "" : "s");
    if (who.length)
        fprintf(stderr, "memprof: %s could not be recorded: 'memprof info %s' says why\n", who.data, file);
    buf_free(&who);
}

void facts_print(const struct facts *f, const char *path)
{
    struct stat st = {0};
    struct buf name = BUF(1 << 16);
    struct loss losses[LOSSES];
    char replaced[80];
    char events[UNITS_TEXT], size[UNITS_TEXT];
    stat(path, &st);
    units_count(events, (int64_t)f->counts.events);
    text_clean(&name, path);
    const uint32_t all = f->processes_seen > f->processes ? f->processes_seen : f->processes;
    char recorded[32] = "";
    if (all > f->processes)
        snprintf(recorded, sizeof recorded, "%u of ", f->processes);
    fprintf(stderr,
            "memprof: %s event%s from %s%u process%s written to %s (%s); peak %s; 'memprof report %s' shows it\n",
            events, f->counts.events == 1 ? "" : "s", recorded, all, all == 1 ? "" : "es", buf_text(&name),
            units_bytes(size, st.st_size), f->peaks, buf_text(&name));
    print_missing(f, buf_text(&name));
    buf_free(&name);
    list_losses(f, losses, replaced);
    for (unsigned i = 0; i < LOSSES; i++)
        if (losses[i].is_partial || losses[i].wrong)
            print_loss(losses[i].value, losses[i].one, losses[i].text, losses[i].wrong);
    for (unsigned i = 0; i < FACTS_PROGRAM_LOSSES; i++)
        print_loss(f->program_losses[i], program_losses[i].one, program_losses[i].text, NULL);
}
