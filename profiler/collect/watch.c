#include "watch.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY_SIGNAL (1ull << 32)
#define KEY_STOP   (2ull << 32)
#define KEY_FIRST  (3ull << 32)

#define STOP_POLL_MS 10
#define STOP_POLLS   200 /* a program that has not stopped by then goes on */

struct watch {
    const struct session *session;
    const struct clock *clock;
    pthread_t thread;
    pthread_mutex_t held; /* while the session's memory is touched */
    int epoll_fd, stop_fd, signal_fd, first_pidfd;
    pid_t first_pid;
    unsigned stop_polls;        /* until a SIGTSTP that was for the program is forgotten; 0: none */
    int resumed;                /* the SIGCONT that ends our own stop is still to be read */
    unsigned news;              /* the same as: */
    unsigned stops;             /* watch thread writes, collector reads; relaxed */
    uint64_t ended[WIRE_PROCS]; /* the same; 0 by the collector before the slot is watched */
};

static void wake(struct watch *w)
{
    uint32_t *sleeping = &w->session->control->sleeping;
    pthread_mutex_lock(&w->held);
    __atomic_store_n(sleeping, 0, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, sleeping, FUTEX_WAKE, 1, NULL, NULL, 0);
    pthread_mutex_unlock(&w->held);
}

static int asks_to_end(int number)
{
    return number == SIGINT || number == SIGQUIT || number == SIGTERM || number == SIGHUP;
}

static int first_has_state(const struct watch *w, int options)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)w->first_pid, &info, options | WNOHANG | WNOWAIT) == 0 && info.si_pid == w->first_pid;
}

/* Whether the signal reached the program by itself: the terminal sends to all of its foreground's group, and a program
 * that sends to its group or its parent knows what it does. A shell's "fg" continues the whole group too; kill's
 * SIGCONT for us alone leaves the program stopped. */
static int reached_program(struct watch *w, const struct signalfd_siginfo *info)
{
    int after_stop = info->ssi_signo == SIGCONT && w->resumed;
    if (info->ssi_signo == SIGCONT)
        w->resumed = 0;
    return info->ssi_code == SI_KERNEL || info->ssi_pid == (uint32_t)w->first_pid ||
           (after_stop && !first_has_state(w, WSTOPPED));
}

static void read_signals(struct watch *w)
{
    struct signalfd_siginfo info;
    while (read(w->signal_fd, &info, sizeof info) == sizeof info) {
        int number = (int)info.ssi_signo;
        if (asks_to_end(number))
            __atomic_fetch_add(&w->stops, 1, __ATOMIC_RELEASE);
        if (!reached_program(w, &info))
            syscall(SYS_pidfd_send_signal, w->first_pidfd, number, NULL, 0);
        if (number == SIGTSTP)
            w->stop_polls = STOP_POLLS;
    }
}

/* Whoever waits for us, a shell most of all, is to see the program's stop as its own child's. */
static void stop_with_program(struct watch *w)
{
    sigset_t stop;
    w->stop_polls--;
    if (!first_has_state(w, WSTOPPED))
        return;
    w->stop_polls = 0;
    w->resumed = 1;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    raise(SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, NULL); /* here the whole process stops */
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
}

static void *watch_thread(void *arg)
{
    struct watch *w = arg;
    struct epoll_event events[64];
    for (;;) {
        int n = epoll_wait(w->epoll_fd, events, 64, w->stop_polls ? STOP_POLL_MS : -1);
        if (n < 0 && errno != EINTR)
            return NULL;
        if (w->stop_polls)
            stop_with_program(w);
        if (n <= 0)
            continue;
        uint64_t stamp = clock_stamp(w->clock);
        for (int i = 0; i < n; i++) {
            uint64_t key = events[i].data.u64;
            if (key == KEY_STOP)
                return NULL;
            if (key == KEY_SIGNAL)
                read_signals(w);
            else if (key != KEY_FIRST)
                __atomic_store_n(&w->ended[key], stamp, __ATOMIC_RELEASE);
        }
        __atomic_fetch_add(&w->news, 1, __ATOMIC_RELEASE);
        wake(w);
    }
}

static int add(const struct watch *w, int fd, uint64_t key, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u64 = key};
    return epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

int watch_start(struct watch **watch, const struct session *session, const struct clock *clock, int signal_fd,
                pid_t first_pid, int first_pidfd, struct error *err)
{
    struct watch *w = xcalloc(1, sizeof *w);
    w->session = session;
    w->clock = clock;
    w->signal_fd = signal_fd;
    w->first_pid = first_pid;
    w->first_pidfd = first_pidfd;
    pthread_mutex_init(&w->held, NULL);
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    w->stop_fd = eventfd(0, EFD_CLOEXEC);
    int code = w->epoll_fd < 0 || w->stop_fd < 0 || add(w, w->stop_fd, KEY_STOP, EPOLLIN) ||
                       (signal_fd >= 0 && add(w, signal_fd, KEY_SIGNAL, EPOLLIN))
                   ? errno
                   : 0;
    if (!code)
        code = pthread_create(&w->thread, NULL, watch_thread, w);
    if (!code) {
        *watch = w;
        return 0;
    }
    if (w->epoll_fd >= 0)
        close(w->epoll_fd);
    if (w->stop_fd >= 0)
        close(w->stop_fd);
    pthread_mutex_destroy(&w->held);
    free(w);
    return error_set(err, code, "watching processes: %s", strerror(code));
}

void watch_stop(struct watch *watch)
{
    if (!watch)
        return;
    uint64_t one = 1;
    ssize_t n = write(watch->stop_fd, &one, sizeof one);
    (void)n;
    pthread_join(watch->thread, NULL);
    close(watch->stop_fd);
    close(watch->epoll_fd);
    pthread_mutex_destroy(&watch->held);
    free(watch);
}

void watch_hold(struct watch *watch)
{
    pthread_mutex_lock(&watch->held);
}

void watch_release(struct watch *watch)
{
    pthread_mutex_unlock(&watch->held);
}

int watch_process(struct watch *watch, uint32_t slot, int pidfd)
{
    __atomic_store_n(&watch->ended[slot], 0, __ATOMIC_RELAXED);
    return add(watch, pidfd, slot, EPOLLIN | EPOLLONESHOT) ? -errno : 0;
}

uint64_t watch_ended(const struct watch *watch, uint32_t slot)
{
    return __atomic_load_n(&watch->ended[slot], __ATOMIC_ACQUIRE);
}

void watch_first(struct watch *watch, int pidfd)
{
    if (pidfd >= 0)
        add(watch, pidfd, KEY_FIRST, EPOLLIN | EPOLLONESHOT);
}

unsigned watch_news(const struct watch *watch)
{
    return __atomic_load_n(&watch->news, __ATOMIC_ACQUIRE);
}

unsigned watch_stops(const struct watch *watch)
{
    return __atomic_load_n(&watch->stops, __ATOMIC_ACQUIRE);
}
