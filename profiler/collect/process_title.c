#include "process_title.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define APART    4u /* parts of its life between two looks, and: */
#define LEAST_NS 50000000u

/* Whether the pid was still its own. */
static int still_lives(const struct process *p)
{
    struct pollfd fd = {.fd = p->pidfd, .events = POLLIN};
    return p->pidfd >= 0 && poll(&fd, 1, 0) == 0;
}

void process_see_title(struct process *p, uint64_t now_ns)
{
    char path[64], title[WIRE_TITLE_MAX];
    if (p->dead || p->has_exec || now_ns < p->title_next_ns)
        return;
    p->title_next_ns = now_ns + (now_ns > p->adopted_ns ? now_ns - p->adopted_ns : 0) / APART + LEAST_NS;
    snprintf(path, sizeof path, "/proc/%d/cmdline", p->outer_pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, title, sizeof title);
    close(fd);
    if (n > 0 && still_lives(p)) {
        memcpy(p->title, title, (size_t)n);
        p->title_bytes = (uint32_t)n;
    }
}

/* What a program has made of its arguments, or else the name that its first thread gave itself: what ps shows. */
void process_write_title(struct processes *ps, const struct process *p)
{
    const struct wire_proc *slot = &ps->session->procs[p->slot];
    char title[WIRE_TITLE_MAX + 1];
    uint32_t length = __atomic_load_n(&slot->title_bytes, __ATOMIC_RELAXED);
    const char *told = slot->title;
    if (!length) { /* killed: what was seen last, or else what it had as it began */
        length = p->title_bytes ? p->title_bytes : __atomic_load_n(&slot->command_bytes, __ATOMIC_RELAXED);
        told = p->title_bytes ? p->title : slot->command;
    }
    length = length < WIRE_TITLE_MAX ? length : WIRE_TITLE_MAX;
    memcpy(title, told, length);
    const char *text = p->comm;
    if (length && p->started_bytes && (length != p->started_bytes || memcmp(title, p->started_as, length) != 0)) {
        while (length && (title[length - 1] == 0 || title[length - 1] == ' '))
            length--;
        for (uint32_t i = 0; i < length; i++)
            title[i] = title[i] ? title[i] : ' ';
        title[length] = 0;
        text = title;
    }
    sqlite3_stmt *q = store_statement(ps->store, "UPDATE process SET title = ? WHERE process_id = ?");
    sqlite3_bind_text(q, 1, text, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(q, 2, p->process_id);
    if (*text)
        store_step(ps->store, q);
}
