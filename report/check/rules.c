#include "rules.h"

#include "../../common/array.h"
#include "../../common/input.h"
#include "../../common/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct check_info check_infos[CHECK_ID_COUNT] = {
#define RULE(id, name, unit, of, text) [CHECK_##id] = {name, CHECK_UNIT_##unit, CHECK_OF_##of, text},
#include "rules.def"
};

static const char *const settings[] = {"max-growth", "growth-floor", "warmup"};
enum { SETTING_GROWTH, SETTING_FLOOR, SETTING_WARMUP, SETTING_COUNT };

static int find_rule(const char *name)
{
    for (int i = 0; i < CHECK_ID_COUNT; i++)
        if (strcmp(check_infos[i].name, name) == 0)
            return i;
    return -1;
}

/* "max-line?": the rule without its mark; -1: none of that name may have one. */
static int find_optional(const char *name)
{
    char bare[64];
    size_t length = strlen(name);
    if (!length || length > sizeof bare || name[length - 1] != '?')
        return -1;
    memcpy(bare, name, length - 1);
    bare[length - 1] = 0;
    int rule = find_rule(bare);
    return rule >= 0 && check_infos[rule].of == CHECK_OF_place ? rule : -1;
}

static int find_setting(const char *name)
{
    for (int i = 0; i < SETTING_COUNT; i++)
        if (strcmp(settings[i], name) == 0)
            return i;
    return -1;
}

int check_is_setting(const char *name)
{
    return find_rule(name) >= 0 || find_setting(name) >= 0;
}

/* --- values --- */

static int parse_count(const char *text, int64_t *count)
{
    char *end;
    if (*text < '0' || *text > '9')
        return -EINVAL;
    errno = 0;
    *count = strtoll(text, &end, 10);
    return errno || *end ? -EINVAL : 0;
}

/* "5%", "0.5 %"; digits only, as strtod takes more. */
static int parse_percent(const char *text, double *percent)
{
    size_t length = strspn(text, "0123456789.");
    char *end;
    if (!length || strcmp(text + length + strspn(text + length, " "), "%") != 0)
        return -EINVAL;
    *percent = strtod(text, &end);
    return end != text + length || !isfinite(*percent) || *percent > 1e9 ? -EINVAL : 0;
}

static int is_device(const char *text)
{
    const char *colon = strchr(text, ':');
    if (!colon)
        return strcmp(text, "host") == 0;
    return colon > text && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1);
}

static int bad(const char *origin, const char *name, const char *value, const char *expected, struct error *err)
{
    return error_set(err, EINVAL, "%s: %s '%.200s': expected %s", origin, name, value, expected);
}

static int add_setting(struct check_rules *r, int setting, const char *value, const char *origin, struct error *err)
{
    if (setting == SETTING_WARMUP) {
        if (parse_count(value, &r->warmup))
            return bad(origin, "warmup", value, "a whole number of executions", err);
        r->has_warmup = 1;
    } else if (setting == SETTING_FLOOR) {
        if (units_parse_bytes(value, &r->floor_bytes))
            return bad(origin, "growth-floor", value, "bytes, such as 4096 or 1M", err);
        r->has_floor = 1;
    } else if (strchr(value, '%')) {
        if (parse_percent(value, &r->percent))
            return bad(origin, "max-growth", value, "per cent or bytes, such as 5% or 1M", err);
        r->has_percent = 1;
    } else {
        if (units_parse_bytes(value, &r->growth_bytes))
            return bad(origin, "max-growth", value, "per cent or bytes, such as 5% or 1M", err);
        r->has_growth_bytes = 1;
    }
    return 0;
}

static const char *expected_of(const struct check_info *info)
{
    if (info->of == CHECK_OF_place)
        return "FILE:FUNCTION=BYTES, such as net.c:forward=64M";
    if (info->of == CHECK_OF_range)
        return "RANGE=BYTES, such as step=0";
    return info->unit == CHECK_UNIT_bytes ? "[DEVICE=]BYTES, such as 2G or cuda:0=10G" : "[DEVICE=]NUMBER";
}

static int is_subject(enum check_of of, const char *subject)
{
    struct check_place place;
    if (of == CHECK_OF_device)
        return !subject || is_device(subject);
    if (of == CHECK_OF_range)
        return subject && *subject;
    if (!subject || check_place_parse(subject, &place))
        return 0;
    check_place_free(&place);
    return 1;
}

static int add_rule(struct check_rules *r, enum check_id id, const char *value, int is_optional, const char *origin,
                    struct error *err)
{
    const struct check_info *info = &check_infos[id];
    const char *equals = strrchr(value, '='), *number = equals ? equals + 1 : value;
    char *subject = equals ? strndup(value, (size_t)(equals - value)) : NULL;
    int64_t limit;
    if (equals && !subject)
        out_of_memory(0);
    int rc = info->unit == CHECK_UNIT_bytes ? units_parse_bytes(number, &limit) : parse_count(number, &limit);
    if (rc || !is_subject(info->of, subject))
        rc = bad(origin, info->name, value, expected_of(info), err);
    else if (r->count == CHECK_RULES_MAX)
        rc = error_set(err, EINVAL, "%s: more than %d rules", origin, CHECK_RULES_MAX);
    if (rc) {
        free(subject);
        return rc;
    }
    *ARRAY_ADD(r->rule, r->count, r->capacity) = (struct check_rule){
        .id = id, .subject = subject, .limit = limit, .is_optional = is_optional, .origin = xstrdup(origin)};
    return 0;
}

int check_rules_add(struct check_rules *rules, const char *name, const char *value, const char *origin,
                    struct error *err)
{
    int rule = find_rule(name), optional = find_optional(name), setting = find_setting(name);
    if (rule >= 0)
        return add_rule(rules, (enum check_id)rule, value, 0, origin, err);
    if (optional >= 0)
        return add_rule(rules, (enum check_id)optional, value, 1, origin, err);
    if (setting >= 0)
        return add_setting(rules, setting, value, origin, err);
    return error_set(err, EINVAL, "%s: no rule '%.60s'; docs/check.md lists them", origin, name);
}

/* --- files --- */

/* Where the comment begins, or the line ends. */
static size_t content_length(const char *line)
{
    for (size_t i = 0; line[i]; i++)
        if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t'))
            return i;
    return strlen(line);
}

static int add_line(struct check_rules *r, const char *name, int number, char *line, struct error *err)
{
    char origin[300];
    snprintf(origin, sizeof origin, "%.250s:%d", name, number);
    line[strcspn(line, "\r")] = 0;
    line += strspn(line, " \t");
    size_t length = content_length(line);
    while (length && (line[length - 1] == ' ' || line[length - 1] == '\t'))
        length--;
    line[length] = 0;
    if (!length)
        return 0;
    char *value = line + strcspn(line, " \t");
    if (!*value)
        return error_set(err, EINVAL, "%s: '%.60s': expected NAME VALUE, such as max-peak 2G", origin, line);
    *value++ = 0;
    return check_rules_add(r, line, value + strspn(value, " \t"), origin, err);
}

int check_rules_parse(struct check_rules *rules, const char *name, const char *text, size_t length, struct error *err)
{
    char line[CHECK_LINE_MAX];
    int number = 0, rc = 0;
    if (length > CHECK_FILE_MAX)
        return error_set(err, E2BIG, "%s: a file of rules has at most %d bytes", name, CHECK_FILE_MAX);
    for (size_t at = 0; rc == 0 && at < length; number++) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t bytes = end ? (size_t)(end - text) - at : length - at;
        if (bytes >= sizeof line)
            return error_set(err, E2BIG, "%s:%d: a line of more than %d bytes", name, number + 1, CHECK_LINE_MAX - 1);
        if (memchr(text + at, 0, bytes))
            return error_set(err, EINVAL, "%s:%d: a NUL: this is no file of rules", name, number + 1);
        memcpy(line, text + at, bytes);
        line[bytes] = 0;
        rc = add_line(rules, name, number + 1, line, err);
        at += bytes + 1;
    }
    return rc;
}

int check_rules_load(struct check_rules *rules, const char *path, struct error *err)
{
    size_t length;
    char *text;
    int rc = input_read(path, CHECK_FILE_MAX, &text, &length, err);
    if (rc == -E2BIG)
        rc = error_set(err, E2BIG, "%s: a file of rules has at most %d bytes", path, CHECK_FILE_MAX);
    else if (rc == 0)
        rc = check_rules_parse(rules, path, text, length, err);
    free(text);
    return rc;
}

void check_rules_free(struct check_rules *rules)
{
    for (int i = 0; i < rules->count; i++) {
        free(rules->rule[i].subject);
        free(rules->rule[i].origin);
    }
    free(rules->rule);
    *rules = (struct check_rules){0};
}

/* --- places --- */

/* The first colon that is none of a "::". */
static const char *single_colon(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (*p != ':')
            continue;
        if (p[1] != ':')
            return p;
        p++;
    }
    return NULL;
}

int check_place_parse(const char *text, struct check_place *place)
{
    const char *colon = single_colon(text), *rest = colon ? colon + 1 : text;
    *place = (struct check_place){0};
    if (!*text || colon == text)
        return -EINVAL;
    if (colon && *rest && strspn(rest, "0123456789") == strlen(rest) &&
        (parse_count(rest, &place->line) || place->line < 1 || place->line > INT32_MAX))
        return -EINVAL;
    place->file = colon ? xstrdup(text) : NULL;
    if (colon)
        place->file[colon - text] = 0;
    place->function = *rest && !place->line ? xstrdup(rest) : NULL;
    return 0;
}

void check_place_free(struct check_place *place)
{
    free(place->file);
    free(place->function);
    *place = (struct check_place){0};
}
