/*
 * rules.h: what a recording is held to: from the command line and from text files, which are hostile input. A line of a
 * file is "NAME [SUBJECT=]VALUE", as the options are: "max-peak cuda:0=10G", "max-line net.c:forward=64M". What follows
 * a '#' at the beginning of a line or behind a space is a comment. "max-line? ..." may name code that is not there.
 */
#ifndef MEMPROF_CHECK_RULES_H
#define MEMPROF_CHECK_RULES_H

#include "../../common/error.h"

#include <stddef.h>
#include <stdint.h>

#define CHECK_FILE_MAX  (1 << 20) /* bytes of a file of rules */
#define CHECK_LINE_MAX  4096
#define CHECK_RULES_MAX 10000

enum check_id {
#define RULE(id, name, unit, of, text) CHECK_##id,
#include "rules.def"
    CHECK_ID_COUNT
};

enum check_unit { CHECK_UNIT_bytes, CHECK_UNIT_count };
enum check_of { CHECK_OF_device, CHECK_OF_place, CHECK_OF_range };

struct check_info {
    const char *name;
    enum check_unit unit;
    enum check_of of;
    const char *text;
};

extern const struct check_info check_infos[CHECK_ID_COUNT];

struct check_rule {
    enum check_id id;
    char *subject; /* owned: a device, a place or a range; NULL: each device that no other rule of this kind names */
    int64_t limit;
    int is_optional; /* a place may be absent from the recording */
    char *origin;    /* owned: "budget.txt:12", "--max-peak" */
};

struct check_rules { /* all-zero: none */
    struct check_rule *rule;
    int count, capacity;
    /* settings; 0 where they were not given */
    int has_percent, has_growth_bytes, has_floor, has_warmup;
    double percent;       /* how much more than the baseline there may be, of either unit, */
    int64_t growth_bytes; /* and of bytes alone */
    int64_t floor_bytes;  /* so many bytes more never break the bound in per cent */
    int64_t warmup;       /* executions of a range that do not count */
};

/* Whether an option or the first word of a line is one of these. */
int check_is_setting(const char *name);
/* A rule or a setting, which replaces one from before. -EINVAL with err, whose text begins with origin. */
int check_rules_add(struct check_rules *rules, const char *name, const char *value, const char *origin,
                    struct error *err);
/* The text of a file of that name; length bytes. */
int check_rules_parse(struct check_rules *rules, const char *name, const char *text, size_t length, struct error *err);
int check_rules_load(struct check_rules *rules, const char *path, struct error *err);
void check_rules_free(struct check_rules *rules);

/* FILE:FUNCTION, FILE:LINE, FILE: or FUNCTION, as match.h takes files and functions. */
struct check_place {
    char *file, *function; /* owned; NULL: any */
    int64_t line;          /* 0: any */
};
/* -EINVAL: it is none. */
int check_place_parse(const char *text, struct check_place *place);
void check_place_free(struct check_place *place);

#endif
