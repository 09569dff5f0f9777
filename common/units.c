#include "units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *bytes_text(char text[UNITS_TEXT], int64_t size_bytes, const char *plain, const char *suffix)
{
    static const char letters[] = "KMGTPE";
    double value = (double)size_bytes;
    int unit = -1;
    /* Bytes are exact; of the others none has four digits, so that 1,020 KiB is not beside 1.02 MiB. 999.995 would
     * print as 1000.00 */
    while (fabs(value) >= (unit < 0 ? 1024 : 999.995) && unit < 5) {
        value /= 1024;
        unit++;
    }
    if (unit < 0)
        snprintf(text, UNITS_TEXT, "%lld%s", (long long)size_bytes, plain);
    else
        snprintf(text, UNITS_TEXT, "%.2f%s%c%s", value, *plain ? " " : "", letters[unit], suffix);
    return text;
}

const char *units_bytes(char text[UNITS_TEXT], int64_t size_bytes)
{
    return bytes_text(text, size_bytes, " B", "iB");
}

const char *units_bytes_short(char text[UNITS_TEXT], int64_t size_bytes)
{
    return bytes_text(text, size_bytes, "", "");
}

const char *units_count(char text[UNITS_TEXT], int64_t count)
{
    char digits[UNITS_TEXT];
    int n = snprintf(digits, sizeof digits, "%llu", count < 0 ? -(unsigned long long)count : (unsigned long long)count);
    char *out = text;
    if (count < 0)
        *out++ = '-';
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = 0;
    return text;
}

const char *units_ns(char text[UNITS_TEXT], int64_t time_ns)
{
    double ns = (double)time_ns, size = fabs(ns);
    if (size < 1000)
        snprintf(text, UNITS_TEXT, "%lld ns", (long long)time_ns);
    else if (size < 999.5e3)
        snprintf(text, UNITS_TEXT, "%.3g us", ns / 1e3);
    else if (size < 999.5e6)
        snprintf(text, UNITS_TEXT, "%.3g ms", ns / 1e6);
    else if (size < 120e9)
        snprintf(text, UNITS_TEXT, "%.3f s", ns / 1e9);
    else
        snprintf(text, UNITS_TEXT, "%s%lld m %02d s", ns < 0 ? "-" : "", (long long)(size / 60e9),
                 (int)fmod(size / 1e9, 60));
    return text;
}

int units_parse_ns(const char *text, int64_t *time_ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"m", 60e9}};
    char *end;
    double value = strtod(text, &end);
    if (end == text || !isfinite(value) || value < 0)
        return -EINVAL;
    while (*end == ' ')
        end++;
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].name) == 0) {
            double ns = value * units[i].ns;
            if (ns > 9e18)
                return -EINVAL;
            *time_ns = (int64_t)llround(ns);
            return 0;
        }
    }
    return -EINVAL;
}

/* "", "B", "K", "KB", "KiB", ...; the power of 1024; -1: no unit. */
static int byte_unit(const char *text)
{
    static const char letters[] = "KMGTP";
    const char *letter = *text ? strchr(letters, *text == 'k' ? 'K' : *text) : NULL;
    text += letter != NULL;
    if (*text && strcmp(text, "B") != 0 && (!letter || strcmp(text, "iB") != 0))
        return -1;
    return letter ? (int)(letter - letters) + 1 : 0;
}

int units_parse_bytes(const char *text, int64_t *size_bytes)
{
    char *end;
    if (*text < '0' || *text > '9')
        return -EINVAL;
    errno = 0;
    long long whole = strtoll(text, &end, 10);
    double value = (double)whole;
    int is_whole = *end != '.';
    if (!is_whole) /* not strtod alone: it knows exponents, hexadecimal numbers and the locale's point */
        for (double digit = 0.1; *++end >= '0' && *end <= '9'; digit /= 10)
            value += digit * (*end - '0');
    while (*end == ' ')
        end++;
    int unit = byte_unit(end);
    if (errno || unit < 0)
        return -EINVAL;
    if (is_whole)
        return __builtin_mul_overflow(whole, 1ll << 10 * unit, size_bytes) ? -EINVAL : 0;
    value *= (double)(1ll << 10 * unit);
    if (value > 9e18)
        return -EINVAL;
    *size_bytes = (int64_t)llround(value);
    return 0;
}
