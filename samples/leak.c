/*
 * Parses 1,000 lines of "name=value" and forgets the name where the value is malformed, which is every tenth line.
 *
 * What memprof must show:
 *   leak     100 blocks of 32 bytes, 3,200 bytes, allocated by parse_line at `entry->name = ...`.
 *   not one  the table of defaults, 4,096 bytes, stays reachable until the end on purpose: `memprof leaks` lists it too
 *            until it is suppressed (leak:load_defaults).
 *   all      2,001 allocations, 1,900 frees.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 1000, NAME_BYTES = 32, DEFAULTS_BYTES = 4096 };

struct entry {
    char *name;
    int value;
};

static char *defaults; /* wanted until the process ends */

static void load_defaults(void)
{
    defaults = malloc(DEFAULTS_BYTES);
    memset(defaults, 0, DEFAULTS_BYTES);
}

static struct entry *parse_line(const char *line)
{
    struct entry *entry = malloc(sizeof *entry);
    const char *equals = strchr(line, '=');
    entry->name = malloc(NAME_BYTES);
    snprintf(entry->name, NAME_BYTES, "%.*s", (int)(equals - line), line);
    char *end;
    entry->value = (int)strtol(equals + 1, &end, 10);
    if (*end) {
        free(entry); /* the bug: its name is still there */
        return NULL;
    }
    return entry;
}

int main(void)
{
    load_defaults();
    long sum = 0;
    for (int i = 0; i < LINES; i++) {
        char line[64];
        snprintf(line, sizeof line, "key%d=%d%s", i, i, i % 10 == 7 ? "x" : "");
        struct entry *entry = parse_line(line);
        if (!entry)
            continue;
        sum += entry->value;
        free(entry->name);
        free(entry);
    }
    fprintf(stderr, "sum %ld\n", sum);
    return sum == 449300 ? 0 : 1;
}
