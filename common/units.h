/*
 * units.h: numbers for people. Sizes in 1024s, times in seconds.
 */
#ifndef MEMPROF_UNITS_H
#define MEMPROF_UNITS_H

#include <stdint.h>

#define UNITS_TEXT 32 /* enough for every text below */

/* "0 B", "640 B", "40.00 KiB", "0.98 MiB" (1000 KiB), "1.25 GiB"; a negative size keeps its sign. Returns text. */
const char *units_bytes(char text[UNITS_TEXT], int64_t size_bytes);
/* The same without the unit's "iB": "640", "40.00K", "1.25G": for narrow columns. */
const char *units_bytes_short(char text[UNITS_TEXT], int64_t size_bytes);
/* "12,345,678" */
const char *units_count(char text[UNITS_TEXT], int64_t count);
/* "417 ns", "12.3 us", "1.25 ms", "3.204 s", "2 m 05 s" */
const char *units_ns(char text[UNITS_TEXT], int64_t time_ns);
/* Parses "12", "1.5s", "20ms", "300us", "5000ns" (no unit: seconds) into ns. Returns 0 or -EINVAL. */
int units_parse_ns(const char *text, int64_t *time_ns);
/* Parses "963072", "64M", "64 MiB", "1.5G" into bytes (K, M, G, T, P: 1024 each; to the nearest byte). Returns 0 or
 * -EINVAL. */
int units_parse_bytes(const char *text, int64_t *size_bytes);

#endif
