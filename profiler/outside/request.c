#include "request.h"

#include "../../common/monotonic.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WAIT_NS      2000000000u /* for a slot, and as long for the answer */
#define LOOK_NS      200000u     /* between two looks at first; each is twice as long as the one before */
#define LOOK_MOST_NS 20000000u

static uint64_t slot_at(unsigned slot)
{
    return WIRE_DESK_OFFSET + offsetof(struct wire_desk, requests) + slot * sizeof(struct wire_request);
}

/* 0, or -1: somebody else has it. Undone by the kernel when this process ends, or by closing what is open. */
static int set_lock(int fd, unsigned slot, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)slot_at(slot), .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &lock);
}

/* Whether the slot's last request was answered. */
static int is_answered(int fd, unsigned slot, struct wire_request *r)
{
    return pread(fd, r, sizeof *r, (off_t)slot_at(slot)) == sizeof *r && r->asked == (uint8_t)r->answered;
}

/* A slot of our own, or -1. One whose asker was killed is free once it is answered. */
static int take_slot(int fd, struct wire_request *r)
{
    for (unsigned slot = 0; slot < WIRE_REQUESTS; slot++) {
        if (set_lock(fd, slot, F_WRLCK))
            continue;
        if (is_answered(fd, slot, r))
            return (int)slot;
        set_lock(fd, slot, F_UNLCK);
    }
    return -1;
}

static int write_at(int fd, unsigned slot, size_t offset, const void *from, size_t size)
{
    return pwrite(fd, from, size, (off_t)(slot_at(slot) + offset)) == (ssize_t)size;
}

/* The collector's naps are up to 0.1 s long. Its futexes are found through a mapping that nobody reads here; of a file
 * opened for reading, as any other one would count as one that can be written. */
static void wake_collector(int fd)
{
    static const uint64_t words[] = {offsetof(struct wire_control, sleeping),
                                     WIRE_DESK_OFFSET + offsetof(struct wire_desk, asked)};
    char path[64], *p = MAP_FAILED;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int reading = open(path, O_RDONLY | O_CLOEXEC);
    if (reading >= 0) {
        p = mmap(NULL, WIRE_DATA_OFFSET, PROT_READ, MAP_SHARED | MAP_NORESERVE, reading, 0);
        close(reading);
    }
    for (unsigned i = 0; p != MAP_FAILED && i < sizeof words / sizeof *words; i++)
        syscall(SYS_futex, p + words[i], FUTEX_WAKE, 1, NULL, NULL, 0);
    if (p != MAP_FAILED)
        munmap(p, WIRE_DATA_OFFSET);
}

/* A nap before the next look, longer each time. 0: it was waited long enough. */
static int look_again(uint64_t begin_ns, uint64_t *nap_ns)
{
    if (monotonic_ns() - begin_ns > WAIT_NS)
        return 0;
    nanosleep(&(struct timespec){0, (long)*nap_ns}, NULL);
    *nap_ns = *nap_ns * 2 < LOOK_MOST_NS ? *nap_ns * 2 : LOOK_MOST_NS;
    return 1;
}

static int not_recording(const char *what, struct error *err)
{
    return error_set(err, ESRCH, "%s: its recording has ended", what);
}

static int no_answer(const struct outside *o, const char *what, struct error *err)
{
    return error_set(err, ETIMEDOUT,
                     "%s: its collector (PID %d) does not answer; if it is stopped, 'kill -CONT %d' and ask again",
                     what, outside_collector(o), outside_collector(o));
}

static int wait_for_slot(const struct outside *o, const char *what, struct wire_request *r, struct error *err)
{
    const uint64_t begin_ns = monotonic_ns();
    uint64_t nap_ns = LOOK_NS;
    int slot;
    while ((slot = take_slot(outside_fd(o), r)) < 0) {
        if (!outside_is_recording(o))
            return not_recording(what, err);
        if (!look_again(begin_ns, &nap_ns))
            return error_set(err, EBUSY, "%s: too many ask at once, or its collector (PID %d) is stopped; ask again",
                             what, outside_collector(o));
    }
    return slot;
}

/* All but its byte asked, which makes it one. */
static int write_request(int fd, unsigned slot, enum wire_wish wish, int pid, const void *text, size_t length)
{
    const uint8_t wish_byte = (uint8_t)wish;
    const uint16_t text_bytes = (uint16_t)length;
    const int32_t pid_word = pid;
    return write_at(fd, slot, offsetof(struct wire_request, what), &wish_byte, 1) &&
           write_at(fd, slot, offsetof(struct wire_request, text_bytes), &text_bytes, sizeof text_bytes) &&
           write_at(fd, slot, offsetof(struct wire_request, pid), &pid_word, sizeof pid_word) &&
           write_at(fd, slot, offsetof(struct wire_request, text), text, length);
}

/* Who asked is gone, and what he asked for shall not be done later, when nobody expects it. */
static void withdraw(int fd, unsigned slot)
{
    write_at(fd, slot, offsetof(struct wire_request, what), &(uint8_t){WIRE_WISH_NOTHING}, 1);
}

static int wait_for_answer(const struct outside *o, const char *what, unsigned slot, struct wire_request *r,
                           struct error *err)
{
    const uint64_t begin_ns = monotonic_ns();
    uint64_t nap_ns = LOOK_NS;
    while (!is_answered(outside_fd(o), slot, r)) {
        if (!outside_is_recording(o))
            return not_recording(what, err);
        if (!look_again(begin_ns, &nap_ns)) {
            withdraw(outside_fd(o), slot);
            return no_answer(o, what, err);
        }
    }
    return 0;
}

static int ask(const struct outside *o, const char *what, enum wire_wish wish, int pid, const void *text, size_t length,
               struct wire_request *r, struct error *err)
{
    const int fd = outside_fd(o), slot = wait_for_slot(o, what, r, err);
    if (slot < 0)
        return slot;
    const uint8_t asked = (uint8_t)(r->answered + 1);
    int rc = 0;
    if (!write_request(fd, (unsigned)slot, wish, pid, text, length) || !write_at(fd, (unsigned)slot, 0, &asked, 1))
        rc = not_recording(what, err); /* sealed */
    if (rc == 0) {
        wake_collector(fd);
        rc = wait_for_answer(o, what, (unsigned)slot, r, err);
    }
    set_lock(fd, (unsigned)slot, F_UNLCK);
    return rc;
}

int request_ask(const struct outside *o, const char *what, enum wire_wish wish, int pid, const char *text,
                enum wire_reply *reply, struct error *err)
{
    struct wire_request r;
    int rc = ask(o, what, wish, pid, text, strnlen(text, WIRE_TEXT_MAX), &r, err);
    *reply = rc == 0 && r.reply == WIRE_REPLY_ALREADY ? WIRE_REPLY_ALREADY : WIRE_REPLY_DONE;
    return rc;
}

/* Whatever lies there, it goes to terminals. */
static void clean_name(char name[WIRE_NAME_BYTES])
{
    name[WIRE_NAME_BYTES - 1] = 0;
    for (char *p = name; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
}

static int no_process(const char *what, struct error *err)
{
    return error_set(err, ENOENT, "%s: the recording has no such process", what);
}

int request_holdings(const struct outside *o, const char *what, int pid, struct wire_holding holdings[WIRE_HOLDINGS],
                     uint32_t *count, struct error *err)
{
    struct wire_request r;
    int rc = ask(o, what, WIRE_WISH_HOLDINGS, pid, "", 0, &r, err);
    if (rc)
        return rc;
    if (r.reply == WIRE_REPLY_NO_PROCESS)
        return no_process(what, err);
    if (r.holding_count > WIRE_HOLDINGS)
        return error_set(err, E2BIG, "%s: it has memory on more than %u devices", what, WIRE_HOLDINGS);
    *count = r.holding_count;
    memcpy(holdings, r.holdings, sizeof r.holdings);
    for (uint32_t i = 0; i < *count; i++)
        clean_name(holdings[i].name);
    return 0;
}

int request_yielded(const struct outside *o, const char *what, int pid, const struct wire_given *given, size_t count,
                    struct error *err)
{
    const size_t most = WIRE_TEXT_MAX / sizeof *given;
    struct wire_request r;
    int rc = ask(o, what, WIRE_WISH_YIELDED, pid, given, (count < most ? count : most) * sizeof *given, &r, err);
    return rc == 0 && r.reply == WIRE_REPLY_NO_PROCESS ? no_process(what, err) : rc;
}
