#include "match.h"

#include <fnmatch.h>
#include <string.h>

/* Bytes of an "operator..." at p, whose punctuation is part of the name; 0 elsewhere. */
static size_t operator_bytes(const char *name, const char *p)
{
    static const char word[] = "operator";
    size_t length = sizeof word - 1;
    int is_start = p == name || p[-1] == ':' || p[-1] == ' ';
    if (!is_start || strncmp(p, word, length) != 0)
        return 0;
    if (strncmp(p + length, "()", 2) == 0)
        return length + 2;
    size_t signs = strspn(p + length, "<>=!+-*/%^&|~,[]");
    return signs ? length + signs : 0;
}

/* Bytes from '{' to the '}' that closes it. */
static size_t brace_bytes(const char *p)
{
    int depth = 0;
    for (size_t i = 0; p[i]; i++) {
        depth += (p[i] == '{') - (p[i] == '}');
        if (depth == 0)
            return i + 1;
    }
    return strlen(p);
}

void match_bare_name(const char *name, int with_templates, struct buf *out)
{
    static const char anonymous[] = "(anonymous namespace)";
    int depth = 0;
    size_t length = 0;
    for (const char *p = name; *p; p += length) {
        length = depth ? 0 : operator_bytes(name, p);
        if (length == 0 && depth == 0 && *p == '{') /* "{lambda(int)#1}" */
            length = brace_bytes(p);
        if (length == 0 && depth == 0 && *p == '<' &&
            (p == name || p[-1] == '.')) /* Python's "load.<locals>.<lambda>" */
            length = strcspn(p, ">") + (strchr(p, '>') != NULL);
        if (length == 0 && strncmp(p, anonymous, sizeof anonymous - 1) == 0)
            length = sizeof anonymous - 1;
        if (length) {
            buf_add(out, p, length);
            continue;
        }
        length = 1;
        if (*p == '(' && depth == 0)
            break;
        /* what stands before a space outside of brackets is a return type */
        if (*p == ' ' && depth == 0 && p[1] == '<') /* "operator<< <char>" */
            continue;
        if (*p == ' ' && depth == 0) {
            if (p[1] == '[') /* "f [clone .cold]" */
                break;
            buf_reset(out);
            continue;
        }
        depth += *p == '<';
        if (with_templates || depth == 0)
            buf_putc(out, *p);
        depth -= *p == '>' && depth > 0;
    }
    buf_puts(out, "");
}

static int matches_text(const char *pattern, const char *text, int is_glob, const char *separator)
{
    if (is_glob)
        return fnmatch(pattern, text, 0) == 0;
    size_t length = strlen(text), end = strlen(pattern), gap = strlen(separator);
    if (end > length || strcmp(text + length - end, pattern) != 0)
        return 0;
    return end == length || (length - end >= gap && strncmp(text + length - end - gap, separator, gap) == 0);
}

/* fnmatch takes exponential time for many stars; nobody types more than a few. */
static int is_too_starry(const char *pattern)
{
    int stars = 0;
    for (; *pattern; pattern++)
        stars += *pattern == '*';
    return stars > 8;
}

int match_function(const char *pattern, const char *name, const char *plain_name)
{
    int is_glob = strpbrk(pattern, "*?") != NULL, found;
    struct buf with = BUF(1 << 20), without = BUF(1 << 20);
    if (is_glob && is_too_starry(pattern))
        return 0;
    match_bare_name(name, 1, &with);
    match_bare_name(name, 0, &without);
    found = strcmp(pattern, name) == 0 || matches_text(pattern, plain_name, is_glob, "::") ||
            matches_text(pattern, buf_text(&with), is_glob, "::") ||
            matches_text(pattern, buf_text(&without), is_glob, "::") || (is_glob && fnmatch(pattern, name, 0) == 0);
    buf_free(&with);
    buf_free(&without);
    return found;
}

int match_file(const char *pattern, const char *path)
{
    int is_glob = strpbrk(pattern, "*?[") != NULL;
    if (is_glob && is_too_starry(pattern))
        return 0;
    if (matches_text(pattern, path, is_glob, "/") || (*pattern == '/' && strcmp(pattern, path) == 0))
        return 1;
    /* a pattern without its directories */
    for (const char *p = strchr(path, '/'); is_glob && p; p = strchr(p + 1, '/'))
        if (fnmatch(pattern, p + 1, FNM_PATHNAME) == 0)
            return 1;
    return 0;
}
