#include "yield_private.h"

#include "../../common/monotonic.h"
#include "request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define OPEN_NS  10000000000 /* more than other answers may take: a driver that starts takes seconds */
#define GRACE_NS 2000000000  /* the driver ends a lock itself, that much earlier */
#define GIB_NS   2000000000  /* a GiB is moved in that time even between slow hosts */

const char *yield_state_text(enum checkpoint_state state)
{
    static const char *const texts[] = {"running", "locked",           "given back",
                                        "failed",  "being given back", "being restored"};
    return state < sizeof texts / sizeof *texts ? texts[state] : "unknown";
}

/* --- beginning and end --- */

static int start_driver(struct yield *y, struct error *err)
{
    return checkpoint_open(y->options->pid, y->options->what, y->options->timeout_ns + OPEN_NS, &y->c, err);
}

static int begin(struct yield *y, const struct yield_options *options, struct yield_result *result, struct error *err)
{
    *y = (struct yield){.options = options};
    *result = (struct yield_result){.notes = BUF(1 << 12)};
    int rc = yield_find(y, err);
    result->is_recorded = y->recording != NULL;
    return rc;
}

static void end(struct yield *y)
{
    checkpoint_close(y->c);
    outside_close(y->recording);
}

static int ask_state(struct yield *y, enum checkpoint_state *state, struct error *err)
{
    return checkpoint_ask(y->c, y->options->timeout_ns, state, err);
}

static int look(struct yield *y, struct checkpoint_gpus *gpus, struct error *err)
{
    return checkpoint_look(y->c, y->options->timeout_ns, gpus, err);
}

static int64_t move_limit_ns(const struct yield *y)
{
    return y->options->timeout_ns + (int64_t)(yield_bytes(y) / (1u << 20)) * (GIB_NS / 1024);
}

static int unlock(struct yield *y, struct error *err)
{
    return checkpoint_do(y->c, CHECKPOINT_UNLOCK, 0, y->options->timeout_ns, err);
}

/* --- when a step failed --- */

static void append(struct error *err, const char *format, const char *what)
{
    char more[256], all[sizeof err->text + sizeof more];
    snprintf(more, sizeof more, format, what);
    snprintf(all, sizeof all, "%s%s", err->text, more);
    error_set(err, 1, "%s", all);
}

/* The state after that, by a new process where the old one is stuck or crashed. -1: not known. */
static int state_after(struct yield *y)
{
    struct error unused = {""};
    enum checkpoint_state state;
    if (ask_state(y, &state, &unused) == 0)
        return (int)state;
    checkpoint_close(y->c);
    y->c = NULL;
    return start_driver(y, &unused) == 0 && ask_state(y, &state, &unused) == 0 ? (int)state : -1;
}

/* Leaves it running if that is possible, and says in err what became of it. */
static void settle(struct yield *y, struct error *err)
{
    const char *what = y->options->what;
    struct error unused = {""};
    if (!yield_goes_on(y->options->pid)) {
        append(err, "; the process has ended%s", "");
        return;
    }
    switch (state_after(y)) {
    case CHECKPOINT_RUNNING:
        append(err, "; it runs on%s", "");
        break;
    case CHECKPOINT_LOCKED:
        if (unlock(y, &unused) == 0)
            append(err, "; it was unlocked and runs on%s", "");
        else
            append(err, "; it is still locked: 'memprof restore %s' unlocks it", what);
        break;
    case CHECKPOINT_GIVEN:
        append(err, "; its memory is in host memory: 'memprof restore %s' brings it back", what);
        break;
    case CHECKPOINT_FAILED:
        append(err, "; the driver says that it cannot go on: end it%s", "");
        break;
    default:
        append(err, "; what state it is in is not known: ask 'memprof state %s', and end it if it stays so", what);
    }
}

/* --- to give --- */

static int check_state(const struct yield *y, enum checkpoint_state state, struct error *err)
{
    const char *what = y->options->what;
    switch (state) {
    case CHECKPOINT_RUNNING:
        return 0;
    case CHECKPOINT_LOCKED:
        return error_set(err, EBUSY,
                         "%s: it is locked, by another 'memprof yield' or cuda-checkpoint; if nothing is at it, "
                         "'memprof restore %s' unlocks it",
                         what, what);
    case CHECKPOINT_FAILED:
        return error_set(err, EIO, "%s: the driver failed at it before, and it cannot go on: end it", what);
    default:
        return error_set(err, EBUSY, "%s: another one is at it: it is %s", what, yield_state_text(state));
    }
}

static void note(struct yield_result *result, const struct error *err)
{
    buf_printf(&result->notes, "not noted in the recording: %s\n", err->text);
}

static void write_given(struct yield *y, struct yield_result *result)
{
    struct wire_given given[YIELD_GPUS];
    struct error err = {""};
    uint32_t count = 0;
    for (uint32_t i = 0; i < result->gpu_count; i++)
        if (result->gpu[i].is_known) {
            memcpy(given[count].uuid, result->gpu[i].uuid, sizeof given[count].uuid);
            given[count++].bytes = result->gpu[i].given_bytes;
        }
    if (y->recording && request_yielded(y->recording, y->options->what, y->options->pid, given, count, &err))
        note(result, &err);
}

/* Its calls wait. */
static int give_locked(struct yield *y, struct yield_result *result, struct error *err)
{
    struct checkpoint_gpus after = {0};
    struct error unused = {""};
    int rc = yield_find_holdings(y, err); /* nothing is allocated from here on */
    if (rc == 0)
        rc = yield_check_give(y, err);
    if (rc == 0)
        rc = checkpoint_do(y->c, CHECKPOINT_GIVE, 0, move_limit_ns(y), err);
    if (rc == 0 && !yield_goes_on(y->options->pid)) /* a driver may not notice until its parent has */
        rc = error_set(err, ESRCH, "%s: its memory was moved", y->options->what);
    if (rc) {
        settle(y, err);
        return rc;
    }
    result->took_ns = (int64_t)monotonic_ns() - y->begin_ns;
    result->state = CHECKPOINT_GIVEN;
    look(y, &after, &unused); /* not known then */
    yield_fill(y, &after, result);
    write_given(y, result);
    return 0;
}

static int lock_and_give(struct yield *y, struct yield_result *result, struct error *err)
{
    const int64_t timeout_ns = y->options->timeout_ns;
    y->begin_ns = (int64_t)monotonic_ns();
    int rc = checkpoint_do(y->c, CHECKPOINT_LOCK, timeout_ns, timeout_ns + GRACE_NS, err);
    if (rc == 0)
        return give_locked(y, result, err);
    if (rc != -EBUSY && rc != -EINVAL) /* of these two the lock is nobody's, or another one's */
        settle(y, err);
    return rc;
}

int yield_give(const struct yield_options *options, struct yield_result *result, struct error *err)
{
    struct yield y;
    int rc = begin(&y, options, result, err);
    if (rc == 0)
        rc = yield_check_give(&y, err);
    if (rc == 0)
        rc = start_driver(&y, err);
    if (rc == 0)
        rc = ask_state(&y, &result->state, err);
    if (rc == 0 && result->state == CHECKPOINT_GIVEN) {
        result->is_already = 1;
        yield_fill_held(&y, result);
        goto out;
    }
    if (rc == 0)
        rc = check_state(&y, result->state, err);
    if (rc == 0)
        rc = look(&y, &y.before, err);
    if (rc == 0)
        rc = yield_check_driver(&y, err);
    if (rc == 0)
        rc = yield_check_give(&y, err);
    if (rc == 0)
        rc = lock_and_give(&y, result, err);
out:
    end(&y);
    return rc;
}

/* --- to restore --- */

/* The driver runs, and result has the state. y is to be ended in any case. */
static int begin_with_state(struct yield *y, const struct yield_options *options, struct yield_result *result,
                            struct error *err)
{
    int rc = begin(y, options, result, err);
    if (rc == 0)
        rc = start_driver(y, err);
    if (rc == 0)
        rc = ask_state(y, &result->state, err);
    return rc;
}

static int wait_for_room(struct yield *y, struct error *err)
{
    for (;;) {
        int rc = look(y, &y->before, err);
        if (rc == 0)
            rc = yield_check_room(y, &y->before, err);
        if (rc != -ENOSPC)
            return rc;
        if (!y->options->wait_for_room || !y->options->wait_for_room(y->options->arg, err->text)) {
            append(err, ": nothing was done; 'memprof restore --wait %s' waits for them", y->options->what);
            return rc;
        }
    }
}

static void write_restored(struct yield *y, struct yield_result *result)
{
    struct error err = {""};
    enum wire_reply reply;
    if (y->recording &&
        request_ask(y->recording, y->options->what, WIRE_WISH_RESTORED, y->options->pid, "", &reply, &err))
        note(result, &err);
}

static int bring_home(struct yield *y, struct error *err)
{
    int rc = wait_for_room(y, err);
    if (rc)
        return rc;
    y->begin_ns = (int64_t)monotonic_ns();
    rc = checkpoint_do(y->c, CHECKPOINT_RESTORE, 0, move_limit_ns(y), err);
    if (rc == -EIO)
        append(err, "; a driver whose restore once found no room may refuse all later ones%s", "");
    if (rc)
        settle(y, err);
    return rc;
}

static int unlock_at_last(struct yield *y, struct yield_result *result, struct error *err)
{
    int rc = unlock(y, err);
    if (rc) {
        settle(y, err);
        return rc;
    }
    result->state = CHECKPOINT_RUNNING;
    write_restored(y, result);
    return 0;
}

static int restore_from(struct yield *y, struct yield_result *result, struct error *err)
{
    int rc = 0;
    y->begin_ns = (int64_t)monotonic_ns();
    switch (result->state) {
    case CHECKPOINT_RUNNING:
        result->is_already = 1;
        return 0;
    case CHECKPOINT_LOCKED:
        buf_puts(&result->notes, "it was only locked, and had its memory\n");
        break;
    case CHECKPOINT_GIVEN:
        yield_fill_held(y, result);
        rc = bring_home(y, err);
        break;
    default:
        return check_state(y, result->state, err);
    }
    if (rc == 0)
        rc = unlock_at_last(y, result, err);
    result->took_ns = (int64_t)monotonic_ns() - y->begin_ns;
    return rc;
}

int yield_restore(const struct yield_options *options, struct yield_result *result, struct error *err)
{
    struct yield y;
    int rc = begin_with_state(&y, options, result, err);
    if (rc == 0)
        rc = restore_from(&y, result, err);
    end(&y);
    return rc;
}

/* --- to ask --- */

int yield_ask(const struct yield_options *options, struct yield_result *result, struct error *err)
{
    struct yield y;
    int rc = begin_with_state(&y, options, result, err);
    if (rc == 0)
        yield_fill_held(&y, result);
    end(&y);
    return rc;
}
