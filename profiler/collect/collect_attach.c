/* `memprof attach`: a recording of a process that runs already, from its beginning to its end. */
#include "collect_private.h"

#include "../../common/buf.h"
#include "../../common/io.h"
#include "../../common/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMAND_BYTES (64u << 10)
#define ARGUMENTS_MAX 1024u
#define JOINED_NS     1000000000u /* between two looks whether it still is the program that was attached to */

/* --- the end --- */

static int has_ended(const struct collection *c)
{
    struct pollfd poll_fd = {.fd = c->pidfd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) == 1;
}

/* Another program than it was, by an exec that no hook has seen, has our memory mapped no more. */
static int has_memory(const struct collection *c)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)c->pid);
    FILE *file = fopen(path, "re");
    int is_there = !file;
    while (file && !is_there && fgets(line, sizeof line, file))
        is_there = strstr(line, "/memfd:memprof") != NULL;
    if (file)
        fclose(file);
    return is_there;
}

static void look_for_exec(struct collection *c)
{
    uint64_t now = drain_state(c->drain).now_ns;
    if (now - c->joined_ns < JOINED_NS || has_ended(c))
        return;
    c->joined_ns = now;
    for (uint32_t i = 0; i < c->processes.slot_end && !has_memory(c); i++) {
        struct process *p = c->processes.by_slot[i];
        if (!p || p->dead)
            continue;
        p->dead = p->replaced = 1;
        p->dead_stamp = clock_stamp(&c->clock);
    }
}

/* The program may wait for room in its rings, so all goes on until it was let go. */
static int is_let_go(struct collection *c)
{
    struct error err;
    if (!c->detach.helper || !attach_end_done(&c->detach, 0, &c->detach_rc, &err))
        return 0;
    if (c->detach_rc && !has_ended(c))
        fprintf(stderr, "memprof: %s\n", err.text);
    else
        c->detach_rc = 0;
    return 1;
}

static void let_go(struct collection *c)
{
    struct error err;
    c->is_detached = 1;
    c->detach_rc = attach_end_start(&c->detach, c->pid, &err);
    if (c->detach_rc)
        fprintf(stderr, "memprof: %s\n", err.text);
}

int collect_attach_is_over(struct collection *c)
{
    if (c->is_detached)
        return !c->detach.helper || is_let_go(c);
    if ((c->processes.total && !c->processes.live) || (!c->processes.total && has_ended(c)))
        return 1;
    look_for_exec(c);
    if (watch_stops(c->watch) || c->told_failure)
        let_go(c);
    return 0;
}

/* --- the beginning --- */

/* Without the empty arguments at its end: what a title of its own (setproctitle) leaves of their memory. */
static void read_command(int pid, char *text, char *argv[ARGUMENTS_MAX + 1])
{
    char path[64];
    size_t n = 0, count = 0;
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = io_read(fd, text, COMMAND_BYTES - 1);
        close(fd);
    }
    while (n && !text[n - 1])
        n--;
    text[n] = 0;
    for (char *p = text; p < text + n && count < ARGUMENTS_MAX; p += strlen(p) + 1)
        argv[count++] = p;
    argv[count] = NULL;
}

static int begin(struct collection *c, struct error *err)
{
    int rc = collect_open_parts(c, err);
    if (rc)
        return rc;
    clock_restart(&c->clock);
    rc = collect_join_program(c, err);
    if (rc == 0)
        rc = attach_begin(c->pid, c->options->library, c->session.control->session_path, err);
    return rc;
}

static void close_all(struct collection *c)
{
    collect_close_parts(c);
    if (c->store)
        store_close(c->store, NULL);
    output_close(&c->output);
    if (c->launch.signal_fd >= 0)
        launch_restore(&c->launch);
}

int collect_attach(const struct collect_options *options, int pid, struct collect_result *result, struct error *err)
{
    static char command[COMMAND_BYTES], *argv[ARGUMENTS_MAX + 1];
    struct buf name = BUF(1 << 16);
    *result = (struct collect_result){0};
    int rc = attach_check(pid, options->library, err);
    if (rc)
        return rc;
    struct collection *c = xcalloc(1, sizeof *c);
    read_command(pid, command, argv);
    text_clean(&name, argv[0] ? argv[0] : "");
    c->options = options;
    c->argv = argv;
    c->pid = pid;
    c->pidfd = c->session.fd = c->launch.signal_fd = c->output.fd = c->output.directory_fd = c->detach.pipe = -1;
    clock_open(&c->clock, 1);
    rc = begin(c, err);
    if (rc) {
        collect_drop(c, 1);
    } else {
        if (!options->quiet)
            fprintf(stderr, "memprof: recording %d (%s); ^C or 'memprof detach %d' ends that and lets it go on\n", pid,
                    buf_text(&name), pid);
        collect_go_on(c, result);
        result->status = c->detach_rc ? 1 : 0;
    }
    if (result->recorded)
        result->output = xstrdup(c->output.path);
    buf_free(&name);
    close_all(c);
    free(c);
    return rc;
}
