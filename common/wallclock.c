#include "wallclock.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define SECOND_NS  1000000000ll
#define DAY_S      86400ll
#define YEAR_FIRST 1970
#define YEAR_LAST  2261 /* the last whole one that 63 bits of nanoseconds reach */

struct moment {
    struct tm tm;
    int64_t fraction_ns;
    int has_date, has_zone, zone_s;
};

int wallclock_is(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits && (text[digits] == ':' || text[digits] == '-');
}

/* A number of so many digits; -1: it is none. */
static int take(const char **at, int digits)
{
    int value = 0;
    for (int i = 0; i < digits; i++) {
        char c = (*at)[i];
        if (c < '0' || c > '9')
            return -1;
        value = value * 10 + c - '0';
    }
    *at += digits;
    return value;
}

static int skip(const char **at, char c)
{
    if (**at != c)
        return 0;
    ++*at;
    return 1;
}

/* The date, if there is one, up to where the time begins. */
static int parse_date(const char **at, struct moment *m)
{
    if (strspn(*at, "0123456789") != 4)
        return 0;
    m->has_date = 1;
    m->tm.tm_year = take(at, 4) - 1900;
    if (!skip(at, '-'))
        return -EINVAL;
    m->tm.tm_mon = take(at, 2) - 1;
    if (!skip(at, '-'))
        return -EINVAL;
    m->tm.tm_mday = take(at, 2);
    if (!skip(at, 'T') && !skip(at, ' '))
        return -EINVAL;
    return m->tm.tm_year < YEAR_FIRST - 1900 || m->tm.tm_year > YEAR_LAST - 1900 || m->tm.tm_mon < 0 ||
                   m->tm.tm_mon > 11 || m->tm.tm_mday < 1
               ? -EINVAL
               : 0;
}

static int parse_fraction(const char **at, int64_t *ns)
{
    int64_t unit = SECOND_NS / 10;
    if (!skip(at, '.'))
        return 0;
    if (**at < '0' || **at > '9')
        return -EINVAL;
    for (; **at >= '0' && **at <= '9'; ++*at, unit /= 10)
        *ns += unit * (**at - '0');
    return 0;
}

static int parse_clock(const char **at, struct moment *m)
{
    int is_bad = 0;
    m->tm.tm_hour = take(at, strspn(*at, "0123456789") == 1 ? 1 : 2);
    if (!skip(at, ':'))
        return -EINVAL;
    m->tm.tm_min = take(at, 2);
    if (skip(at, ':')) {
        m->tm.tm_sec = take(at, 2);
        is_bad = parse_fraction(at, &m->fraction_ns) != 0;
    }
    return is_bad || m->tm.tm_hour < 0 || m->tm.tm_hour > 23 || m->tm.tm_min < 0 || m->tm.tm_min > 59 ||
                   m->tm.tm_sec < 0 || m->tm.tm_sec > 59
               ? -EINVAL
               : 0;
}

/* Z, +01:00, -0530, or nothing. */
static int parse_zone(const char **at, struct moment *m)
{
    const int is_east = **at == '+';
    if (!**at)
        return 0;
    m->has_zone = 1;
    if (skip(at, 'Z'))
        return 0;
    if (!skip(at, '+') && !skip(at, '-'))
        return -EINVAL;
    int hours = take(at, 2);
    skip(at, ':');
    int minutes = take(at, 2);
    if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59)
        return -EINVAL;
    m->zone_s = (hours * 3600 + minutes * 60) * (is_east ? 1 : -1);
    return 0;
}

static int is_same(const struct tm *a, const struct tm *b)
{
    return a->tm_year == b->tm_year && a->tm_mon == b->tm_mon && a->tm_mday == b->tm_mday && a->tm_hour == b->tm_hour &&
           a->tm_min == b->tm_min && a->tm_sec == b->tm_sec;
}

/* Seconds since 1970; -ERANGE for a time that its zone's clocks never showed. */
static int seconds_of(const struct moment *m, int64_t *seconds)
{
    struct tm tm = m->tm;
    tm.tm_isdst = -1;
    *seconds = m->has_zone ? timegm(&tm) : mktime(&tm);
    *seconds -= m->zone_s;
    return is_same(&tm, &m->tm) ? 0 : -ERANGE;
}

static int date_of(struct moment *m, int64_t seconds)
{
    struct tm day;
    time_t at = seconds + m->zone_s;
    if (!(m->has_zone ? gmtime_r(&at, &day) : localtime_r(&at, &day)))
        return -EINVAL;
    m->tm.tm_year = day.tm_year;
    m->tm.tm_mon = day.tm_mon;
    m->tm.tm_mday = day.tm_mday;
    return 0;
}

/* Of that day, or of the next one. */
static int find_day(struct moment *m, int64_t since_s, int64_t *seconds)
{
    int rc = date_of(m, since_s);
    if (rc == 0)
        rc = seconds_of(m, seconds);
    if ((rc == 0 && *seconds >= since_s) || rc == -EINVAL)
        return rc;
    rc = date_of(m, since_s + DAY_S);
    return rc ? rc : seconds_of(m, seconds);
}

int wallclock_parse(const char *text, int64_t since_ns, int64_t *unix_ns)
{
    struct moment m = {.fraction_ns = 0};
    int64_t seconds = 0;
    int rc = parse_date(&text, &m);
    if (rc == 0)
        rc = parse_clock(&text, &m);
    if (rc == 0)
        rc = parse_zone(&text, &m);
    if (rc == 0 && (*text || since_ns < 0))
        rc = -EINVAL;
    if (rc == 0)
        rc = m.has_date ? seconds_of(&m, &seconds) : find_day(&m, since_ns / SECOND_NS, &seconds);
    if (rc == 0 && (__builtin_mul_overflow(seconds, SECOND_NS, unix_ns) ||
                    __builtin_add_overflow(*unix_ns, m.fraction_ns, unix_ns)))
        rc = -ERANGE;
    return rc;
}
