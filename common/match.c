#include "match.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

static int is_word(char c)
{
    return (unsigned char)c >= 0x80 || c == '_' || c == '$' || isalnum((unsigned char)c);
}

static int begins(const char *p, const char *with)
{
    return strncmp(p, with, strlen(with)) == 0;
}

/* Bytes of an "operator..." at p, whose punctuation is part of the name; 0 elsewhere. "operator ", of new and delete
 * and of conversions, ends at the arguments. */
static size_t operator_bytes(const char *name, const char *p)
{
    static const char word[] = "operator";
    static const char *const signs[] = {
        "<=>", "<<=", ">>=", "->*", "()", "[]", "<<", ">>", "<=", ">=", "==", "!=",   "&&", "||",
        "++",  "--",  "+=",  "-=",  "*=", "/=", "%=", "^=", "&=", "|=", "->", "<",    ">",  "+",
        "-",   "*",   "/",   "%",   "^",  "&",  "|",  "~",  "!",  "=",  ",",  "\"\"", " "};
    size_t length = sizeof word - 1;
    if (!begins(p, word) || (p > name && is_word(p[-1])))
        return 0;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (begins(p + length, signs[i]))
            return length + strlen(signs[i]);
    return 0;
}

static int is_to_the_arguments(const char *operator, size_t length)
{
    return length && (operator[length - 1] == ' ' || operator[length - 1] == '"');
}

/* Bytes from a bracket to the one that closes it. */
static size_t bracket_bytes(const char *p, char open, char close)
{
    int depth = 0;
    for (size_t i = 0; p[i]; i++) {
        depth += (p[i] == open) - (p[i] == close);
        if (depth == 0)
            return i + 1;
    }
    return strlen(p);
}

/* Whether a '<' begins a name, not arguments: Python's "load.<locals>.<lambda>", Rust's "<T as U>::f" and
 * "core::<impl U for T>::f". */
static int is_name(const char *name, const char *p)
{
    return p == name || p[-1] == '.' || (p[-1] == ':' && (begins(p, "<impl ") || begins(p, "<lambda")));
}

/* What follows the arguments of a function in which another one is: "f(int) const::{lambda()#1}"; NULL: nothing. */
static const char *after_arguments(const char *p)
{
    static const char *const qualifiers[] = {" const", " volatile", " &&", " &", "&&", "&"};
    p += bracket_bytes(p, '(', ')');
    for (size_t i = 0; i < sizeof qualifiers / sizeof *qualifiers; i++)
        if (begins(p, qualifiers[i]))
            p += strlen(qualifiers[i]);
    if (*p == '[')
        p += bracket_bytes(p, '[', ']');
    return begins(p, "::") ? p : NULL;
}

/* What is none of a list's brackets and commas, at p: an operator, what is in parentheses, an arrow; 0: nothing. */
static size_t group_bytes(const char *name, const char *p)
{
    size_t length = operator_bytes(name, p);
    return length ? length : *p == '(' ? bracket_bytes(p, '(', ')') : begins(p, "->") ? 2 : 0;
}

/* Bytes from a '<' to the '>' that closes it. */
static size_t angle_bytes(const char *name, const char *p)
{
    size_t length;
    int depth = 0;
    for (const char *at = p; *at; at += length) {
        length = group_bytes(name, at);
        depth += length ? 0 : (*at == '<') - (*at == '>');
        length = length ? length : 1;
        if (depth == 0)
            return (size_t)(at - p) + length;
    }
    return strlen(p);
}

/* --- closures ----------------------------------------------------------------------------------------------------- */

/* Bytes of a closure's own name at p: "{lambda(int)#1}", "<lambda(int)>", clang's "$_0", Rust's "{closure#0}". */
static size_t closure_bytes(const char *name, const char *p)
{
    if (begins(p, "{lambda(") || begins(p, "{closure#"))
        return bracket_bytes(p, '{', '}');
    if (begins(p, "<lambda("))
        return angle_bytes(name, p);
    return begins(p, "$_") && p > name && p[-1] == ':' ? 2 + strspn(p + 2, "0123456789") : 0;
}

/* Behind the closure at p, and those that are within it: "{lambda()#1}::operator()() const::{lambda()#2}". */
static const char *closure_end(const char *name, const char *p)
{
    const char *end = p;
    for (size_t length; *p && !strchr(",> *&", *p); p += length) {
        const char *after = *p == '(' ? after_arguments(p) : p;
        if (!after)
            break;
        length = closure_bytes(name, p);
        end = length ? p + length : end;
        length = length ? length : operator_bytes(name, p);
        length = length ? length : *p == '(' ? (size_t)(after - p) : *p == '<' ? angle_bytes(name, p) : 1;
    }
    return end;
}

static int is_of_library(const char *type)
{
    static const char *const scopes[] = {"std::", "__gnu_cxx::", "core::", "alloc::"};
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++)
        if (begins(type, scopes[i]))
            return 1;
    return 0;
}

/* The first of the program's closures among the template arguments at p, else in those of an argument. NULL: none. */
static const char *find_closure(const char *name, const char *p, const char **end, int depth)
{
    enum { DEEPEST = 32 };
    const char *type = p + 1, *inner = NULL;
    for (size_t length = 1; *(p += length) && *p != '>';) {
        length = closure_bytes(name, p);
        if (length && !is_of_library(type += strspn(type, "&* "))) {
            *end = closure_end(name, p);
            return type;
        }
        length = length ? length : group_bytes(name, p);
        if (length)
            continue;
        if (*p == ',' && inner)
            break;
        if (*p == '<' && !inner && depth < DEEPEST)
            inner = find_closure(name, p, end, depth + 1);
        type = *p == ',' ? p + 1 : type;
        length = *p == '<' ? angle_bytes(name, p) : 1;
    }
    return inner;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

struct bare {
    const char *name;
    struct buf *out;
    int with_templates, goes_on;    /* goes_on: to what is within a function */
    int with_closures, is_unargued; /* of templates; "{lambda#1}" */
    int level;                      /* of closures: what they are instances for may be one */
    int depth, names;               /* of brackets: that are left out, or at least no name; that are names */
    int is_type;                    /* of a conversion: its spaces are its own */
};

/* What is copied as it is, at p; 0: nothing. */
static size_t whole_bytes(const struct bare *b, const char *p)
{
    static const char anonymous[] = "(anonymous namespace)";
    size_t length = operator_bytes(b->name, p);
    if (length)
        return length;
    if (*p == '{' && b->depth == 0 && !b->is_unargued) /* "{lambda(int)#1}" */
        return bracket_bytes(p, '{', '}');
    if (begins(p, "<lambda(") && b->depth == 0 && b->goes_on && !b->is_unargued)
        return angle_bytes(b->name, p);
    if (begins(p, "(*") && p > b->name && p[-1] == '.') /* Go's "main.(*T).f" */
        return bracket_bytes(p, '(', ')');
    return begins(p, anonymous) ? sizeof anonymous - 1 : 0;
}

/* Arguments at p: their bytes, to go on behind them; 0: the name ends there. */
static size_t argument_bytes(struct bare *b, const char *p)
{
    static const char type[] = "decltype";
    size_t length = sizeof type - 1;
    const char *after = b->goes_on ? after_arguments(p) : NULL;
    if ((size_t)(p - b->name) >= length && begins(p - length, type))
        return bracket_bytes(p, '(', ')');
    b->is_type = 0;
    return after && p > b->name ? (size_t)(after - p) : 0;
}

static void bare_name(struct bare *b);

/* "<f::{lambda()#1}>" for the template arguments at p; a long one without the scopes that it is in. */
static void add_closure(struct bare *b, const char *p)
{
    enum { MOST = 60, LEVELS = 4 };
    struct buf type = BUF(1 << 20), shown = BUF(1 << 20);
    const char *end, *begin = b->level < LEVELS ? find_closure(b->name, p, &end, 0) : NULL, *next;
    if (!begin)
        return;
    buf_add(&type, begin, (size_t)(end - begin));
    bare_name(&(struct bare){.name = buf_text(&type),
                             .out = &shown,
                             .goes_on = 1,
                             .with_closures = 1,
                             .is_unargued = b->is_unargued,
                             .level = b->level + 1});
    const char *text = buf_text(&shown);
    while (strlen(text) > MOST && (next = strstr(text, "::")) && strcspn(text, "<{") > (size_t)(next - text))
        text = next + 2;
    buf_putc(b->out, '<');
    buf_puts(b->out, text);
    buf_putc(b->out, '>');
    buf_free(&type);
    buf_free(&shown);
}

/* A '<' or '>' that is no operator. */
static void take_angle(struct bare *b, const char *p)
{
    int is_open = *p == '<', is_own = b->depth == 0 && (is_open ? is_name(b->name, p) : b->names > 0);
    int is_rust = is_open && !is_own && b->depth == 0 && p - b->name >= 2 && begins(p - 2, "::"); /* "f::<u8>" */
    if (is_own)
        b->names += is_open ? 1 : -1;
    else
        b->depth += is_open;
    if (is_rust && !b->with_templates && b->out->length >= 2)
        b->out->data[b->out->length -= 2] = 0;
    if (b->depth == 0 || b->with_templates)
        buf_putc(b->out, *p);
    else if (b->depth == 1 && is_open && b->with_closures)
        add_closure(b, p);
    b->depth -= !is_own && !is_open && b->depth > 0;
}

static void take(struct bare *b, const char *p)
{
    if (*p == ' ' && b->depth == 0 && b->names == 0 && !b->is_type) {
        if (p[1] != '<') /* "operator<< <char>"; else what stands before a space outside of brackets is a return type */
            buf_reset(b->out);
    } else if ((*p == '<' || *p == '>') && !(*p == '>' && p > b->name && p[-1] == '-')) {
        take_angle(b, p);
    } else if (b->depth == 0 || b->with_templates) {
        b->names += (*p == '{') - (*p == '}' && b->names > 0);
        buf_putc(b->out, *p);
    }
}

static void bare_name(struct bare *b)
{
    size_t length;
    for (const char *p = b->name; *p; p += length) {
        length = whole_bytes(b, p);
        if (length) {
            b->is_type |= b->depth == 0 && is_to_the_arguments(p, length);
            if (b->depth == 0 || b->with_templates)
                buf_add(b->out, p, length);
            continue;
        }
        length = 1;
        if (*p == '(' && b->depth == 0 && b->names == 0) {
            length = argument_bytes(b, p);
            if (!length)
                break;
        } else if (*p == '(' && b->depth == 0 && is_word(p[-1])) { /* "{lambda(int)#1}" */
            length = bracket_bytes(p, '(', ')');
        } else if (begins(p, " [") && b->depth == 0 && b->names == 0 && !b->is_type) { /* "f [clone .cold]" */
            break;
        } else {
            take(b, p);
        }
    }
    while (b->out->length && b->out->data[b->out->length - 1] == ' ')
        b->out->data[--b->out->length] = 0;
    buf_puts(b->out, "");
}

void match_bare_name(const char *name, int with_templates, struct buf *out)
{
    bare_name(&(struct bare){.name = name, .out = out, .with_templates = with_templates});
}

void match_shown_name(const char *name, enum match_parts parts, struct buf *out)
{
    bare_name(&(struct bare){.name = name,
                             .out = out,
                             .with_templates = parts == MATCH_TEMPLATES,
                             .goes_on = 1,
                             .with_closures = parts == MATCH_CLOSURES || parts == MATCH_SHORT,
                             .is_unargued = parts == MATCH_SHORT});
    buf_puts(out, match_unit(name));
}

const char *match_unit(const char *name)
{
    size_t length = strlen(name);
    const char *at = length && name[length - 1] == ']' ? strrchr(name, '[') : NULL;
    return at && at > name && at[-1] == ' ' && !begins(at, "[clone ") ? at - 1 : "";
}

int match_has_closure(const char *name)
{
    for (const char *p = name; *p; p++)
        if (closure_bytes(name, p))
            return 1;
    return 0;
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

int match_text(const char *pattern, const char *text)
{
    if (strcmp(pattern, text) == 0)
        return 1;
    return strpbrk(pattern, "*?") && !is_too_starry(pattern) && fnmatch(pattern, text, 0) == 0;
}

int match_function(const char *pattern, const char *name, const char *plain_name)
{
    int is_glob = strpbrk(pattern, "*?") != NULL, found;
    struct buf with = BUF(1 << 20), without = BUF(1 << 20);
    if (is_glob && is_too_starry(pattern))
        return 0;
    match_bare_name(name, 1, &with);
    match_bare_name(name, 0, &without);
    found = match_text(pattern, name) || matches_text(pattern, plain_name, is_glob, "::") ||
            matches_text(pattern, buf_text(&with), is_glob, "::") ||
            matches_text(pattern, buf_text(&without), is_glob, "::");
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
