#include "collect_private.h"

#include "../../common/db.h"
#include "../../common/error.h"
#include "../../common/kind.h"
#include "../finish/symbolize.h"
#include "facts.h"
#include "left_out.h"
#include "process_title.h"
#include "program.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMIT_NS        200000000u  /* with what comes between, a killed collector's file lacks at most 0.25 s; but */
#define COMMIT_SHARE     8u          /* a commit may take this part of the time between two of them */
#define COMMIT_IDLE_NS   1000000000u /* where nothing was read: samples of resident bytes alone */
#define COMMIT_WORD      64u       /* or once the words read since then, so many times, may take all the disk's room */
#define SAMPLE_NS        20000000u /* between two samples of resident bytes */
#define NAP_NS           1000000u  /* after a round that read something */
#define FILLING_LEAST_NS 20000u    /* a shorter pause is none */
#define NAP_IDLE_NS      20000000u
#define NAP_LONG_NS      100000000u /* after: */
#define LONG_IDLE_NS     1000000000u
#define NAP_ASKED_NS     20000u      /* while somebody waits for an answer */
#define NAP_LEAVING_NS   200000u     /* while the end of a process is awaited */
#define NAP_FIRST_NS     500000u     /* until the program's library is there */
#define JOIN_NS          1000000000u /* after the program's end, in which its last children may begin */
#define LEAST_FILE_BYTES (1u << 20)  /* a recording has been begun with; and this many descriptors: */
#define LEAST_FILES      32u
#define SPARE_BYTES      (32u << 10)
#define STRAGGLERS_NS    100000000u /* after the program's end, before we speak of what still runs */

/* --- while it runs --- */

static int64_t now_ns(const struct collection *c)
{
    return clock_ns(&c->clock, clock_stamp(&c->clock));
}

/* Those that are gone first: what began since would be summed up with what they had. Of one process alone the newest
 * sample stands until its end is known. */
static void sample_rss(struct collection *c)
{
    uint64_t now_ns = clock_monotonic_ns(); /* later than the beginning of those that this round adopted */
    for (uint32_t i = 0; i < c->processes.slot_end; i++) {
        struct process *p = c->processes.by_slot[i];
        if (!p || p->discard)
            continue;
        process_see_title(p, c->sample_ns);
        p->sampled_peak_bytes = p->peak_rss_bytes;
        p->sampled_bytes = process_rss(&c->processes, p);
        if (!p->sampled_bytes && p->rss_bytes && c->processes.total > 1)
            drain_emit_rss(c->drain, p, 0, 0);
    }
    for (uint32_t i = 0; i < c->processes.slot_end; i++) {
        struct process *p = c->processes.by_slot[i];
        if (!p || p->discard || !p->sampled_bytes)
            continue;
        uint64_t peak_bytes = p->peak_rss_bytes > p->sampled_peak_bytes ? p->peak_rss_bytes : 0;
        drain_emit_rss(c->drain, p, peak_bytes, p->sampled_bytes);
        p->sampled_ns = now_ns;
    }
}

static void sample_devices(struct collection *c)
{
    const struct device_rows *rows = drain_state(c->drain).devices;
    char uuid[64];
    if (rows->count > 1 && !c->nvml)
        c->nvml = nvml_start(SAMPLE_NS);
    for (unsigned id = 1; id < rows->count && c->nvml; id++) {
        struct nvml_figures f;
        if (strcmp(rows->rows[id].kind, "cuda") != 0)
            continue;
        device_row_uuid(&rows->rows[id], uuid);
        nvml_watch(c->nvml, id, uuid);
        nvml_read(c->nvml, id, &f);
        if (f.count == c->nvml_counts[id])
            continue;
        c->nvml_counts[id] = f.count;
        drain_emit(c->drain, (struct event){.size_bytes = f.used_bytes,
                                            .address = f.total_bytes,
                                            .op = EVENT_DEVICE_USED,
                                            .device = (uint8_t)id,
                                            .kind = KIND_device});
    }
}

static uint64_t processor_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void commit_store(struct collection *c)
{
    store_commit(c->store);
    if (c->kept || !c->processes.total || store_failed(c->store, NULL))
        return;
    c->kept = 1;
    output_keep(&c->output);
}

static void commit(struct collection *c)
{
    uint64_t begin_ns = processor_ns();
    struct account_counts counts;
    struct drain_state state = drain_state(c->drain);
    /* not now: events of before may come yet, and would be moved to the time that was written */
    account_flush(c->account, (uint64_t)clock_ns(&c->clock, state.merged));
    transfers_write(state.transfers, c->store);
    left_out_write(&c->session, c->store);
    stacks_write(c->stacks);
    account_counts(c->account, &counts);
    clock_refine(&c->clock, state.merged);
    facts_progress(c->store, counts.events, clock_ns(&c->clock, state.merged));
    commit_store(c);
    uint64_t wait_ns = c->commit_cost_ns = (processor_ns() - begin_ns) * COMMIT_SHARE;
    wait_ns = wait_ns < COMMIT_NS ? COMMIT_NS : wait_ns > COMMIT_IDLE_NS ? COMMIT_IDLE_NS : wait_ns;
    if (wait_ns > c->commit_wait_ns)
        c->commit_wait_ns = wait_ns;
}

/* Copies what was recorded so far, and drops its events when they are there. */
static void rotate(struct collection *c)
{
    int64_t time_ns = clock_ns(&c->clock, drain_state(c->drain).merged);
    c->uncommitted |= rotate_settle(c->rotation, 0);
    if (!rotate_is_due(c->rotation, time_ns) || store_failed(c->store, NULL))
        return;
    if (!c->kept || !rotate_prepare(c->rotation, time_ns))
        return;
    commit(c);
    account_part_end(c->account);
    commit_store(c);
    rotate_begin(c->rotation, time_ns);
    transfers_anew(drain_state(c->drain).transfers, c->store);
    commit(c);
    rotate_copy(c->rotation);
}

static int commit_is_due(const struct collection *c, uint64_t now)
{
    if (c->uncommitted_words * COMMIT_WORD > store_room_bytes(c->store))
        return now - c->commit_ns >= c->commit_cost_ns;
    return now - c->commit_ns >= (c->uncommitted ? c->commit_wait_ns : COMMIT_IDLE_NS);
}

/* After the first failed write there is nothing to record for: the program goes on alone. */
static void check_store(struct collection *c)
{
    struct error err;
    if (c->told_failure || !store_failed(c->store, &err))
        return;
    c->told_failure = 1;
    __atomic_store_n(&c->session.control->state, WIRE_STATE_OFF, __ATOMIC_RELEASE);
    fprintf(stderr, "memprof: %s; %s, the program goes on\n", err.text,
            c->kept ? "recording stopped" : "nothing was recorded");
}

/* A program that writes fast is left alone until its fullest ring is about a quarter full: each wake-up costs both
 * sides more than a thousand events do. A ring found fuller than that halves the next pause. Returns 0 where the
 * program writes too slowly for all this. */
static int nap_while_filling(struct collection *c, uint32_t pressure)
{
    if (pressure < WIRE_RING_WORDS / 32) {
        c->filling_ns = NAP_NS / 4;
        return 0;
    }
    if (pressure > WIRE_RING_WORDS / 4)
        c->filling_ns /= 2;
    else if (pressure < WIRE_RING_WORDS / 8 && c->filling_ns < NAP_NS)
        c->filling_ns += c->filling_ns / 8 + 1000;
    if (c->filling_ns >= FILLING_LEAST_NS)
        desk_nap(c->desk, c->filling_ns);
    else
        c->filling_ns = FILLING_LEAST_NS;
    return 1;
}

static void nap(struct collection *c, uint64_t words, unsigned news)
{
    struct drain_state state = drain_state(c->drain);
    uint64_t now = state.now_ns;
    if (desk_is_asked(c->desk, now) || control_waits(c->control)) {
        nanosleep(&(struct timespec){0, NAP_ASKED_NS}, NULL);
        return;
    }
    if (nap_while_filling(c, state.pressure))
        return;
    uint32_t *sleeping = &c->session.control->sleeping;
    if (words) {
        c->nap_ns = NAP_NS;
        c->idle_since_ns = now;
    } else if (c->nap_ns < NAP_IDLE_NS) {
        c->nap_ns *= 2;
    } else {
        c->nap_ns = now - c->idle_since_ns > LONG_IDLE_NS ? NAP_LONG_NS : NAP_IDLE_NS;
    }
    /* the first words of a program come without a call for us */
    uint64_t most_ns = state.leaving ? NAP_LEAVING_NS : c->processes.total ? NAP_LONG_NS : NAP_FIRST_NS;
    uint64_t nap_ns = c->nap_ns < most_ns ? c->nap_ns : most_ns;
    __atomic_store_n(sleeping, 1, __ATOMIC_SEQ_CST);
    if (drain_may_sleep(c->drain) && watch_news(c->watch) == news && !desk_is_asked(c->desk, now)) {
        struct timespec timeout = {(time_t)(nap_ns / 1000000000u), (long)(nap_ns % 1000000000u)};
        syscall(SYS_futex, sleeping, FUTEX_WAIT, 1, &timeout, NULL, 0);
    }
    __atomic_store_n(sleeping, 0, __ATOMIC_RELAXED);
}

static void tell_stragglers(struct collection *c)
{
    const struct process *one;
    unsigned count = processes_that_outlive(&c->processes, &one);
    if (!count)
        return;
    if (!c->options->quiet)
        fprintf(stderr, "memprof: still recording %u process%s (%d %s); ^C ends the recording\n", count,
                count == 1 ? "" : "es", one->outer_pid, one->name);
    c->told_stragglers = 1;
}

/* Whether the program, and all that it started, is over or told to be. */
static int is_over(struct collection *c)
{
    const struct processes *ps = &c->processes;
    if (c->options->is_attached)
        return collect_attach_is_over(c);
    if (!ps->first_ended) {
        c->stops_at_end = watch_stops(c->watch);
        return 0;
    }
    uint64_t now = drain_state(c->drain).now_ns;
    if (!c->first_end_ns)
        c->first_end_ns = now;
    if (c->told_failure || watch_stops(c->watch) != c->stops_at_end)
        return 1;
    if (ps->live) {
        if (!c->told_stragglers && now - c->first_end_ns > STRAGGLERS_NS)
            tell_stragglers(c);
        return 0;
    }
    if (!c->options->follow || !ps->total)
        return 1;
    if (processes_expected(ps, now))
        return 0;
    /* A child that was just forked has our memory mapped, and no slot yet. Where there are many, it may not run for
     * long. */
    if (now - c->first_end_ns > JOIN_NS)
        return 1;
    watch_hold(c->watch);
    int is_shared = session_is_shared(&c->session);
    watch_release(c->watch);
    return !is_shared;
}

/* Without memory nothing more can be counted, nor the file be finished, which the next command that reads it does. The
 * program keeps its parent and its status. May run on any thread. */
static void stand_by(void *arg)
{
    struct collection *c = arg;
    int status = 0;
    __atomic_store_n(&c->session.control->state, WIRE_STATE_OFF, __ATOMIC_RELEASE);
    if (c->kept) {
        fprintf(stderr, "recording stopped; 'memprof report %s' shows what was stored before that\n", c->output.path);
    } else {
        fputs("nothing was recorded, the program goes on\n", stderr);
        free(c->spare); /* for the names of the files */
        output_remove(&c->output, 1);
        output_set_aside(c->options->output, NULL);
    }
    while (waitpid(c->pid, &status, 0) < 0)
        if (errno != EINTR) {
            status = c->processes.first_status;
            break;
        }
    _exit(launch_exit_status(status));
}

static void record(struct collection *c)
{
    out_of_memory_then(stand_by, c);
    c->idle_since_ns = c->commit_ns = clock_monotonic_ns();
    c->nap_ns = NAP_NS;
    c->commit_wait_ns = COMMIT_NS;
    for (;;) {
        unsigned news = watch_news(c->watch);
        uint64_t words = drain_round_until(c->drain, control_bound(c->control));
        resident_settle(c->resident);
        struct drain_state state = drain_state(c->drain);
        uint64_t now = state.now_ns;
        /* also the first bytes of a process, and the last ones of one that is about to end */
        if (now - c->sample_ns >= SAMPLE_NS || c->processes.total != c->sampled_total ||
            state.announced != c->sampled_announced) {
            c->sample_ns = now;
            c->uncommitted |= c->processes.total != c->sampled_total;
            c->sampled_total = c->processes.total;
            sample_rss(c);
            words += c->options->sample_bytes ? 0 : resident_look(c->resident); /* most blocks are not known */
            sample_devices(c);
        }
        c->sampled_announced = state.announced;
        c->uncommitted |= words != 0;
        c->uncommitted_words += words;
        if (commit_is_due(c, now) || desk_wants_commit(c->desk)) {
            c->commit_ns = now;
            c->uncommitted = 0;
            c->uncommitted_words = 0;
            commit(c);
            desk_committed(c->desk);
            rotate(c);
        }
        desk_publish(c->desk, now);
        c->uncommitted |= control_look(c->control) != 0;
        c->uncommitted |= policies_look(c->policies, now) != 0;
        check_store(c);
        if (is_over(c))
            break;
        nap(c, words, news);
    }
    __atomic_store_n(&c->session.control->state, WIRE_STATE_OFF, __ATOMIC_RELEASE);
    prctl(PR_SET_TIMERSLACK, 0ul, 0ul, 0ul, 0ul); /* a next program inherits it */
    drain_finish(c->drain);
    resident_end(c->resident);
    rotate_settle(c->rotation, 1);
}

/* --- the end --- */

/* The run ends with its last process; what is still alive when the recording ends was seen until now. */
static int64_t run_end_ns(struct collection *c)
{
    int64_t end_ns = db_int(store_db(c->store),
                            "SELECT CASE WHEN count(*) = count(end_ns) THEN max(end_ns) END FROM process "
                            "WHERE not_recorded IS NULL",
                            0);
    return end_ns > 0 && !c->told_failure ? end_ns : now_ns(c);
}

static void write_down(struct collection *c, struct facts *f)
{
    int64_t end_ns = run_end_ns(c);
    account_finish(c->account, (uint64_t)end_ns);
    stacks_write(c->stacks);
    transfers_write(drain_state(c->drain).transfers, c->store);
    desk_write(c->desk, c->store);
    control_end(c->control, c->store, end_ns);
    policies_end(c->policies);
    rotate_end(c->rotation, end_ns);
    struct drain_state state = drain_state(c->drain);
    *f = (struct facts){
        .duration_ns = end_ns,
        /* an exec makes another image of one process */
        .processes = (unsigned)db_int(
            store_db(c->store),
            "SELECT count(DISTINCT first_id) FROM v_image JOIN process USING(process_id) WHERE not_recorded IS NULL",
            0),
        .processes_seen = (unsigned)db_int(store_db(c->store), "SELECT count(DISTINCT first_id) FROM v_image", 0),
        .programs_missing =
            (unsigned)db_int(store_db(c->store), "SELECT count(*) FROM process WHERE not_recorded IS NOT NULL", 0),
        .executed_missing =
            (unsigned)db_int(store_db(c->store),
                             "SELECT count(*) FROM v_image JOIN process USING(process_id) WHERE not_recorded IS NOT "
                             "NULL AND first_id = (SELECT min(process_id) FROM process)",
                             0),
        .processes_refused = c->processes.refused + c->session.control->procs_refused,
        .processes_disowned = c->session.control->procs_disowned,
        .threads_refused = c->session.control->rings_refused,
        .bad_rings = state.bad_rings,
        .bad_records = state.bad_records,
        .unknown_stacks = state.unknown_stacks,
        .unresolved_names = state.unresolved_names,
        .is_attached = c->options->is_attached,
    };
    account_counts(c->account, &f->counts);
    left_out_write(&c->session, c->store);
    facts_read_losses(c->store, f);
    if (!store_failed(c->store, NULL))
        facts_end(c->store, f);
    commit_store(c);
    facts_read_peaks(c->store, f);
}

static void finish_file(struct collection *c, const struct facts *f)
{
    const struct collect_options *o = c->options;
    struct error err = {""};
    int rc = store_close(c->store, &err);
    c->store = NULL;
    if (rc && !c->told_failure)
        fprintf(stderr, "memprof: %s; the file is not whole\n", err.text);
    if (rc) {
        if (!o->quiet)
            fprintf(stderr, "memprof: 'memprof report %s' shows what was stored before that\n", c->output.path);
        return;
    }
    struct finish_options finish = {.with_source = o->with_source, .progress = !o->quiet && isatty(STDERR_FILENO)};
    if (o->symbolize && symbolize_file(c->output.path, &finish, c->launch.signal_fd, &err))
        fprintf(stderr, "memprof: %s\n", err.text);
    if (!o->quiet)
        facts_print(f, c->output.path); /* last, when the file has its size */
}

void collect_drop(struct collection *c, int undo)
{
    if (!c->store)
        return;
    store_close(c->store, NULL);
    c->store = NULL;
    output_remove(&c->output, undo);
}

/* What would be read as this run's is not left in its place. */
static int set_aside(struct collection *c, struct error *err)
{
    output_close(&c->output);
    return output_set_aside(c->options->output, err) == -EEXIST ? -EEXIST : 0;
}

/* Nothing of it was stored. */
static void nothing_kept(struct collection *c)
{
    struct error err = {""};
    if (store_failed(c->store, &err) && !c->told_failure)
        fprintf(stderr, "memprof: %s; nothing was recorded\n", err.text);
    collect_drop(c, 1);
    set_aside(c, &err);
}

/* Whether a limit of ours, not the place or the program, is why it could not begin. */
static int is_limited(const struct collection *c, int rc)
{
    struct rlimit file, files, space;
    if (c->pid < 0)
        return rc == -EMFILE || rc == -ENFILE || rc == -EAGAIN || rc == -ENOMEM;
    getrlimit(RLIMIT_FSIZE, &file);
    getrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_AS, &space);
    if (rc == -ENOMEM || rc == -EFBIG || rc == -ENOSPC) /* no room for the rings, or for the first pages of the file */
        return 1;
    return rc != -EEXIST && (file.rlim_cur < LEAST_FILE_BYTES || files.rlim_cur < LEAST_FILES ||
                             (space.rlim_cur != RLIM_INFINITY && !c->session.control));
}

/* In our place, as what cannot be recorded is. Returns only when it cannot be run. */
static void run_plainly(struct collection *c, const char *path, struct collect_result *result)
{
    struct error err;
    collect_close_parts(c);
    output_close(&c->output);
    if (c->launch.signal_fd >= 0)
        launch_restore(&c->launch);
    result->status = launch_replace(path, c->argv, &err) == -ENOENT ? 127 : 126;
    fprintf(stderr, "memprof: %s\n", err.text);
}

/* It runs, and keeps its parent and its status. */
static void wait_for_program(struct collection *c, struct collect_result *result)
{
    int status = 0;
    collect_close_parts(c);
    launch_restore(&c->launch);
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        ;
    result->status = launch_exit_status(status);
}

struct starting {
    struct collection *c;
    const char *path;
};

/* There was no memory for our parts. Nothing is closed, which takes some: the program's exec, or our end, does it. */
static void start_plainly(void *arg)
{
    const struct starting *s = arg;
    struct collection *c = s->c;
    struct error err;
    int status = 0;
    free(c->spare); /* for the names of the files */
    fputs(c->options->is_required ? "the program was not run\n" : "running it without recording\n", stderr);
    if (c->output.path)
        output_remove(&c->output, 1);
    output_set_aside(c->options->output, &err);
    if (c->launch.signal_fd >= 0)
        launch_restore(&c->launch);
    if (c->options->is_required && c->pid <= 0)
        _exit(2);
    if (c->pid <= 0) {
        status = launch_replace(s->path, c->argv, &err) == -ENOENT ? 127 : 126;
        fprintf(stderr, "memprof: %s\n", err.text);
        _exit(status);
    }
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        ;
    _exit(launch_exit_status(status));
}

void collect_go_on(struct collection *c, struct collect_result *result)
{
    struct facts facts;
    record(c);
    write_down(c, &facts);
    result->status = launch_exit_status(c->processes.first_status);
    result->event_count = facts.counts.events;
    result->recorded = c->kept;
    collect_close_parts(c);
    launch_over();
    if (result->recorded) {
        finish_file(c, &facts);
    } else if (c->processes.total) {
        nothing_kept(c);
    } else {
        if (!c->told_failure)
            fprintf(stderr, "memprof: %s: nothing was recorded: the library did not start in it\n", c->argv[0]);
        collect_drop(c, 0);
    }
}

static int run(struct collection *c, const char *path, struct collect_result *result, struct error *err)
{
    struct starting starting = {c, path};
    out_of_memory_then(start_plainly, &starting);
    c->spare = xmalloc(SPARE_BYTES);
    int rc = collect_open_parts(c, err), started = 0;
    if (rc == 0) {
        rc = collect_start_program(c, path, err);
        started = c->pid > 0;
    }
    if (rc) {
        int plainly = started || (is_limited(c, rc) && !c->options->is_required);
        collect_drop(c, 1);
        if (!c->pid && !plainly)
            return rc;
        fprintf(stderr, "memprof: %s%s\n", err->text, plainly ? "; running it without recording" : "");
        set_aside(c, err);
        if (plainly) {
            if (started)
                wait_for_program(c, result);
            else
                run_plainly(c, path, result);
            return 0;
        }
        result->status = rc == -ENOENT ? 127 : 126;
        return 0;
    }
    collect_go_on(c, result);
    return 0;
}

int collect_run(const struct collect_options *options, char *const argv[], struct collect_result *result,
                struct error *err)
{
    struct collection *c = xcalloc(1, sizeof *c);
    char path[PATH_MAX];
    struct error note;
    *result = (struct collect_result){0};
    c->options = options;
    c->argv = argv;
    c->pidfd = c->session.fd = c->launch.signal_fd = c->output.fd = c->output.directory_fd = -1;
    clock_open(&c->clock, 1);
    int rc = program_find(argv[0], path, &note);
    if (rc) {
        fprintf(stderr, "memprof: %s\n", note.text);
        set_aside(c, &note);
        result->status = rc == -EACCES ? 126 : 127;
        free(c);
        return 0;
    }
    if (options->is_required && program_is_unusable(path, &note)) {
        free(c);
        return error_set(err, ENOEXEC, "%s: %s", path, note.text);
    }
    enum program_check check = program_check(path, &note);
    if (check != PROGRAM_OK)
        fprintf(stderr, "memprof: %s\n", note.text);
    if (check == PROGRAM_UNUSABLE) {
        rc = set_aside(c, err);
        if (rc == 0)
            run_plainly(c, path, result);
        free(c);
        return rc;
    }
    rc = run(c, path, result, err);
    collect_close_parts(c);
    if (c->store)
        store_close(c->store, NULL);
    if (result->recorded)
        result->output = xstrdup(c->output.path);
    output_close(&c->output);
    if (c->launch.signal_fd >= 0)
        launch_restore(&c->launch);
    free(c);
    return rc;
}
