#include "terminal.h"

#include "../../common/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* The alternate screen, no cursor, lines that do not wrap; and back. */
static const char enter[] = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J",
                  leave[] = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

static const int ours[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

static struct {
    int keys, signals; /* descriptors */
    int owns_keys;     /* keys was opened here */
    volatile sig_atomic_t is_drawn;
    pid_t owner; /* a child that fails leaves the terminal alone */
    struct termios before;
    sigset_t mask_before;
} terminal = {.keys = -1, .signals = -1};

/* --- what the terminal is --- */

static int open_keys(int *is_own)
{
    *is_own = !isatty(STDIN_FILENO);
    return *is_own ? open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY) : STDIN_FILENO;
}

int terminal_is_there(void)
{
    const char *term = getenv("TERM");
    int is_own, fd = -1;
    if (!isatty(STDOUT_FILENO) || !term || !*term || !strcmp(term, "dumb"))
        return 0;
    fd = open_keys(&is_own);
    if (fd >= 0 && is_own)
        close(fd);
    return fd >= 0;
}

void terminal_size(int *width, int *height)
{
    struct winsize size = {0};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    *width = size.ws_col ? size.ws_col : 80;
    *height = size.ws_row ? size.ws_row : 24;
    *width = *width > 1000 ? 1000 : *width;
    *height = *height > 1000 ? 1000 : *height;
}

/* --- to have it and to give it back --- */

/* As a handler may call it. */
static void give_back(void)
{
    if (!terminal.is_drawn || getpid() != terminal.owner)
        return;
    terminal.is_drawn = 0;
    ssize_t n = write(STDOUT_FILENO, leave, sizeof leave - 1);
    (void)n;
    tcsetattr(terminal.keys, TCSADRAIN, &terminal.before);
}

static int take(void)
{
    struct termios raw = terminal.before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(terminal.keys, TCSADRAIN, &raw))
        return -1;
    terminal.owner = getpid();
    terminal.is_drawn = 1;
    return io_write(STDOUT_FILENO, enter, sizeof enter - 1);
}

static void crash(int signal_number)
{
    give_back();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        sigaddset(&set, ours[i]);
    sigprocmask(SIG_BLOCK, &set, &terminal.mask_before);
    terminal.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        signal(crashes[i], crash);
}

int terminal_open(struct error *err)
{
    static int is_registered;
    terminal.keys = open_keys(&terminal.owns_keys);
    if (terminal.keys < 0 || tcgetattr(terminal.keys, &terminal.before))
        return error_set(err, errno, "the terminal: %s; use --once", strerror(errno));
    if (!is_registered++)
        atexit(give_back);
    block_signals();
    if (terminal.signals >= 0 && take() == 0)
        return 0;
    int code = errno;
    terminal_close();
    return error_set(err, code, "the terminal: %s; use --once", strerror(code));
}

void terminal_close(void)
{
    give_back();
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        signal(crashes[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, &terminal.mask_before, NULL);
    if (terminal.signals >= 0)
        close(terminal.signals);
    if (terminal.owns_keys && terminal.keys >= 0)
        close(terminal.keys);
    terminal.keys = terminal.signals = -1;
}

int terminal_show(const struct buf *lines)
{
    struct buf text = BUF(16 << 20);
    buf_puts(&text, "\x1b[H");
    for (const char *at = buf_text(lines), *end; *at; at = *end ? end + 1 : end) {
        end = at + strcspn(at, "\n");
        buf_add(&text, at, (size_t)(end - at));
        buf_puts(&text, *end ? "\x1b[K\r\n" : "\x1b[K");
    }
    buf_puts(&text, "\x1b[J");
    int failed = io_write(STDOUT_FILENO, text.data, text.length);
    buf_free(&text);
    return failed;
}

/* --- keys --- */

/* The rest of what a key sends after ESC; a key ESC alone sends no more. */
static int escaped(void)
{
    static const struct {
        const char *sent;
        int key;
    } known[] = {{"[A", TERMINAL_UP},       {"[B", TERMINAL_DOWN},       {"OA", TERMINAL_UP},   {"OB", TERMINAL_DOWN},
                 {"[5~", TERMINAL_PAGE_UP}, {"[6~", TERMINAL_PAGE_DOWN}, {"[H", TERMINAL_HOME}, {"OH", TERMINAL_HOME},
                 {"[1~", TERMINAL_HOME},    {"[F", TERMINAL_END},        {"OF", TERMINAL_END},  {"[4~", TERMINAL_END}};
    char sent[16];
    size_t length = 0;
    struct pollfd fd = {.fd = terminal.keys, .events = POLLIN};
    while (length < sizeof sent - 1 && poll(&fd, 1, 20) > 0 && read(terminal.keys, &sent[length], 1) == 1) {
        char c = sent[length++];
        if (length > 1 && c >= 0x40 && c <= 0x7e)
            break;
    }
    sent[length] = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(sent, known[i].sent))
            return known[i].key;
    return TERMINAL_OTHER;
}

static int read_key(void)
{
    unsigned char c;
    ssize_t n = read(terminal.keys, &c, 1);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return TERMINAL_OTHER;
    if (n != 1)
        return TERMINAL_CLOSED;
    return c == 0x1b ? escaped() : c < 0x80 && c ? c : TERMINAL_OTHER;
}

/* --- signals --- */

static void die_of(int signal_number)
{
    sigset_t set;
    terminal_close();
    signal(signal_number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    raise(signal_number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* The shell gets its terminal as it was, and this process goes on here. */
static void stop(void)
{
    give_back();
    raise(SIGSTOP);
    tcgetattr(terminal.keys, &terminal.before);
    take();
}

static int take_signal(void)
{
    struct signalfd_siginfo info;
    if (read(terminal.signals, &info, sizeof info) != sizeof info)
        return TERMINAL_OTHER;
    switch (info.ssi_signo) {
    case SIGINT:
        return TERMINAL_QUIT;
    case SIGTSTP:
        stop();
        return TERMINAL_REDRAW;
    case SIGCONT: /* stopped by what cannot be caught: what is on the terminal is not known */
        take();
        return TERMINAL_REDRAW;
    case SIGWINCH:
        return TERMINAL_REDRAW;
    default:
        die_of((int)info.ssi_signo);
        return TERMINAL_QUIT;
    }
}

int terminal_wait(int fd, long long timeout_ns)
{
    struct pollfd fds[] = {{.fd = terminal.signals, .events = POLLIN},
                           {.fd = terminal.keys, .events = POLLIN},
                           {.fd = fd, .events = POLLIN}};
    struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    int n = ppoll(fds, 3, timeout_ns < 0 ? NULL : &timeout, NULL);
    if (n < 0)
        return errno == EINTR ? TERMINAL_OTHER : TERMINAL_CLOSED;
    if (fds[0].revents)
        return take_signal();
    if (fds[1].revents & POLLIN)
        return read_key();
    if (fds[1].revents)
        return TERMINAL_CLOSED;
    return fds[2].revents ? TERMINAL_READY : TERMINAL_NOTHING;
}
