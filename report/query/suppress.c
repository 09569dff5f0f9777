#include "suppress.h"

#include "../../common/array.h"
#include "../../common/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* length bytes of part at the beginning of, or (anywhere) somewhere in, name; NULL, or what follows them. */
static const char *find_part(const char *name, const char *part, size_t length, int anywhere)
{
    size_t left = strlen(name);
    if (!anywhere)
        return strncmp(name, part, length) == 0 ? name + length : NULL;
    const char *found = length <= left ? memmem(name, left, part, length) : NULL;
    return found ? found + length : NULL;
}

static int ends_with(const char *name, const char *part, size_t length)
{
    size_t left = strlen(name);
    return length <= left && memcmp(name + left - length, part, length) == 0;
}

int suppress_matches(const char *pattern, const char *name)
{
    int anywhere = *pattern != '^';
    pattern += !anywhere;
    while (*pattern) {
        size_t length = strcspn(pattern, "*$");
        /* a '$' that is not at the end is a character like others */
        while (pattern[length] == '$' && pattern[length + 1])
            length += 1 + strcspn(pattern + length + 1, "*$");
        if (pattern[length] == '$') {
            if (anywhere)
                return ends_with(name, pattern, length);
            return strncmp(name, pattern, length) == 0 && name[length] == 0;
        }
        /* the earliest place leaves most for the parts that follow, so no other one has to be tried */
        name = find_part(name, pattern, length, anywhere);
        if (!name)
            return 0;
        pattern += length;
        if (*pattern == '*') {
            anywhere = 1;
            pattern++;
        }
    }
    return 1;
}

static int add_line(struct suppressions *s, const char *path, int number, char *line, struct error *err)
{
    static const char head[] = "leak:";
    line[strcspn(line, "\r\n")] = 0;
    line += strspn(line, " \t");
    for (size_t length = strlen(line); length && (line[length - 1] == ' ' || line[length - 1] == '\t'); length--)
        line[length - 1] = 0;
    if (!*line || *line == '#')
        return 0;
    if (strncmp(line, head, sizeof head - 1) != 0)
        return error_set(err, EINVAL, "%s:%d: '%.60s': expected leak:PATTERN", path, number, line);
    line += sizeof head - 1;
    if (!*line)
        return error_set(err, EINVAL, "%s:%d: an empty pattern would leave out everything; '*' does that", path,
                         number);
    if (s->count == SUPPRESS_COUNT_MAX)
        return error_set(err, E2BIG, "%s:%d: more than %d patterns", path, number, SUPPRESS_COUNT_MAX);
    *ARRAY_ADD(s->item, s->count, s->capacity) = (struct suppression){.pattern = xstrdup(line)};
    return 0;
}

int suppressions_load(struct suppressions *s, const char *path, struct error *err)
{
    char line[SUPPRESS_LINE_MAX], *text;
    size_t length;
    int number = 0, rc = input_read(path, SUPPRESS_FILE_MAX, &text, &length, err);
    for (size_t at = 0; rc == 0 && at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        const size_t bytes = end ? (size_t)(end - text) - at : length - at;
        number++;
        if (bytes > sizeof line - 2 || memchr(text + at, 0, bytes)) {
            rc = error_set(err, E2BIG, "%s:%d: a line of more than %d bytes, or one with a NUL", path, number,
                           SUPPRESS_LINE_MAX - 2);
        } else {
            memcpy(line, text + at, bytes);
            line[bytes] = 0;
            rc = add_line(s, path, number, line, err);
        }
        at += bytes + 1;
    }
    free(text);
    return rc;
}

void suppressions_free(struct suppressions *s)
{
    for (int i = 0; i < s->count; i++)
        free(s->item[i].pattern);
    free(s->item);
    *s = (struct suppressions){0};
}

static int matches_frame(const char *pattern, const struct walk_frame *f)
{
    const char *names[] = {f->function ? f->function : "??", f->plain_name, f->file, f->module};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i] && suppress_matches(pattern, names[i]))
            return 1;
    return 0;
}

int suppressed_by(const struct suppressions *s, const struct walk_stack *stack)
{
    int first, end;
    walk_shown(stack, &first, &end);
    for (int k = 0; k < s->count; k++) {
        for (int i = first; i < end; i++)
            if (matches_frame(s->item[k].pattern, stack->frames[i]))
                return k;
        if (stack->count == 0 && suppress_matches(s->item[k].pattern, "??"))
            return k;
    }
    return -1;
}
