#include "clock.h"

#include <cpuid.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int kernel_uses_tsc(void)
{
    char text[32] = "";
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n >= 4 && memcmp(text, "tsc\n", 4) == 0;
}

static int tsc_is_invariant(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
}

/* The tightest of a few readings: an interrupt between the two clocks would shift the pair. */
static void take_pair(const struct clock *c, uint64_t *stamp, uint64_t *monotonic_ns)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        uint64_t before = clock_stamp(c);
        uint64_t ns = clock_monotonic_ns();
        uint64_t after = clock_stamp(c);
        if (after - before < best) {
            best = after - before;
            *stamp = before + (after - before) / 2;
            *monotonic_ns = ns;
        }
    }
}

void clock_restart(struct clock *c)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    c->start_unix_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    take_pair(c, &c->start_stamp, &c->start_monotonic_ns);
    c->base_stamp = c->start_stamp;
    c->base_ns = 0;
}

void clock_open(struct clock *c, int choose)
{
    *c = (struct clock){.use_tsc = choose && tsc_is_invariant() && kernel_uses_tsc(), .run_rate = 1, .rate = 1ll << 32};
    clock_restart(c);
}

static int64_t fixed_point(double rate)
{
    return (int64_t)(rate * 4294967296.0);
}

void clock_calibrate(struct clock *c)
{
    uint64_t stamp, ns;
    if (!c->use_tsc)
        return;
    for (;;) {
        take_pair(c, &stamp, &ns);
        if (ns - c->start_monotonic_ns >= 2000000)
            break;
        usleep((useconds_t)((c->start_monotonic_ns + 2000000 - ns) / 1000 + 1));
    }
    c->run_rate = (double)(ns - c->start_monotonic_ns) / (double)(stamp - c->start_stamp);
    c->rate = fixed_point(c->run_rate);
}

void clock_refine(struct clock *c, uint64_t stamp)
{
    uint64_t now, ns;
    if (!c->use_tsc || stamp <= c->base_stamp)
        return;
    take_pair(c, &now, &ns);
    if (now <= c->start_stamp || ns <= c->start_monotonic_ns)
        return;
    double rate = (double)(ns - c->start_monotonic_ns) / (double)(now - c->start_stamp);
    int64_t ours = clock_ns(c, stamp);
    double truth = (double)(ns - c->start_monotonic_ns) - ((double)now - (double)stamp) * rate;
    /* the error so far is worked off over the next second; a bend of more than 1 % would be a broken clock */
    double bend = (truth - (double)ours) / 1e9;
    if (bend > 0.01)
        bend = 0.01;
    if (bend < -0.01)
        bend = -0.01;
    c->run_rate = rate;
    c->base_ns = ours;
    c->base_stamp = stamp;
    c->rate = fixed_point(rate * (1 + bend));
}

uint64_t clock_ticks(const struct clock *c, uint64_t time_ns)
{
    return c->use_tsc ? (uint64_t)((double)time_ns / c->run_rate) : time_ns;
}
