#include "demangle.h"

#include "../../common/error.h"
#include "../../common/stack_call.h"
#include "symbols.h"

#include <ctype.h>
#include <errno.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define RAW_MAX  8192         /* longer raw names are left as they are */
#define WORK_MAX (256u << 10) /* bytes that the demangler may say of one name; substitutions can double 2^N times */
#define TICK_US  50000        /* of processor time; a name has two */

/* From this length on libiberty refuses a C++ name (DEMANGLE_RECURSION_LIMIT), unless it is told that there is room. On
 * its stack it puts 72 bytes for each byte of the name, a few frames for each level, and 64 bytes for each template
 * with each reference to a parameter: of RAW_MAX bytes 85 MiB, as a template has four of them and such a reference
 * three. */
#define LONG_NAME   1024
#define STACK_BYTES (128u << 20)

struct sink {
    char *out;
    size_t length, said;
    sigjmp_buf stop;
    volatile sig_atomic_t late; /* the first tick has come */
};

static struct sink *volatile ticking;

static void sink_add(const char *text, size_t length, void *opaque)
{
    struct sink *s = opaque;
    size_t room = DEMANGLE_MAX - 4 - s->length;
    s->said += length;
    if (s->late || s->said > WORK_MAX)
        siglongjmp(s->stop, 1);
    if (length > room)
        length = room;
    if (!length) /* text may be NULL then */
        return;
    memcpy(s->out + s->length, text, length);
    s->length += length;
}

/* The demangler can also work for ever without a word. Out of the middle of it we may jump only where it holds nothing:
 * it allocates only for what it is about to say, so not between two ticks without a word. */
static void tick(int number)
{
    (void)number;
    struct sink *s = ticking;
    if (s && s->late)
        siglongjmp(s->stop, 1);
    if (s)
        s->late = 1;
}

static void tick_every(long us)
{
    setitimer(ITIMER_VIRTUAL, &(struct itimerval){{0, us}, {0, us}}, NULL);
}

/* As the demanglers do: 0 where the name is none of theirs, or takes too much work. */
static int demangle_into(struct sink *s, const char *raw, int options)
{
    struct sigaction before;
    int ok = 0;
    sigaction(SIGVTALRM, &(struct sigaction){.sa_handler = tick, .sa_flags = SA_RESTART}, &before);
    if (sigsetjmp(s->stop, 1) == 0) {
        ticking = s;
        tick_every(TICK_US);
        /* Rust first: its legacy scheme is valid C++ mangling with a hash at the end, which nobody wants to read. */
        ok = rust_demangle_callback(raw, DMGL_PARAMS | DMGL_ANSI, sink_add, s);
        if (!ok && raw[1] == 'Z') {
            s->length = s->said = 0;
            ok = cplus_demangle_v3_callback(raw, DMGL_PARAMS | DMGL_ANSI | options, sink_add, s);
        }
    } else {
        ok = 0;
    }
    ticking = NULL;
    tick_every(0);
    sigaction(SIGVTALRM, &before, NULL);
    return ok;
}

struct job {
    struct sink *sink;
    const char *raw;
    int ok;
};

static void demangle_long(void *argument)
{
    struct job *job = argument;
    job->ok = demangle_into(job->sink, job->raw, DMGL_NO_RECURSE_LIMIT);
}

static int demangle(struct sink *s, const char *raw)
{
    struct job job = {s, raw, 0};
    if (strlen(raw) < LONG_NAME)
        return demangle_into(s, raw, 0);
    return stack_call(STACK_BYTES, demangle_long, &job) == 0 && job.ok;
}

int demangle_name(const char *raw, char out[DEMANGLE_MAX])
{
    /* Some tools leave one or two underscores more in front. */
    const char *start = raw;
    if (strncmp(start, "__Z", 3) == 0 || strncmp(start, "__R", 3) == 0)
        start++;
    if ((strncmp(start, "_Z", 2) && strncmp(start, "_R", 2)) || strnlen(start, RAW_MAX) >= RAW_MAX)
        return -ENOENT;
    char text[DEMANGLE_MAX];
    struct sink sink = {.out = text};
    if (!demangle(&sink, start) || sink.length == 0)
        return -ENOENT;
    if (sink.said > sink.length) {
        memcpy(text + sink.length, "...", 3);
        sink.length += 3;
    }
    memcpy(out, text, sink.length);
    out[sink.length] = 0;
    return 0;
}

/* The end of the bracketed part that begins at p, just after its closing bracket; the end of the text when it is never
 * closed. Brackets of one kind only are counted: the others inside need not match ("->", "operator<"). */
static const char *skip_brackets(const char *p)
{
    char open = *p;
    char close = open == '(' ? ')' : open == '<' ? '>' : open == '[' ? ']' : '}';
    int depth = 0;
    for (; *p; p++) {
        if (*p == '-' && p[1] == '>') {
            p++;
        } else if (open == '<' && *p == '(') {
            /* "(a > b)" inside template arguments */
            p = skip_brackets(p) - 1;
        } else if (*p == open) {
            depth++;
        } else if (*p == close && --depth == 0) {
            return p + 1;
        }
    }
    return p;
}

static int is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (c & 0x80);
}

/* The end of an operator's name, p after the word "operator". */
static const char *operator_end(const char *p)
{
    if (strncmp(p, "()", 2) == 0 || strncmp(p, "[]", 2) == 0)
        return p + 2;
    if (strspn(p, "+-*/%^&|~!=<>,")) {
        size_t n = strspn(p, "+-*/%^&|~!=<>,");
        return p + (n > 3 ? 3 : n);
    }
    if (strncmp(p, "\"\"", 2) == 0) { /* operator"" _suffix */
        p += 2;
        while (*p == ' ' || is_word(*p))
            p++;
        return p;
    }
    /* new, new[], delete, co_await, or a conversion: up to the parameters */
    while (*p && *p != '(') {
        if (*p == '<')
            p = skip_brackets(p);
        else
            p++;
    }
    return p;
}

/* What follows a parameter list but still belongs to it: " const", " &", "[abi:cxx11]". */
static const char *skip_qualifiers(const char *p)
{
    for (;;) {
        const char *q = p + (*p == ' ');
        if (strncmp(q, "const", 5) == 0 && !is_word(q[5]))
            p = q + 5;
        else if (strncmp(q, "volatile", 8) == 0 && !is_word(q[8]))
            p = q + 8;
        else if (*q == '&')
            p = q + 1;
        else if (*q == '[' && q == p)
            p = skip_brackets(q);
        else
            return p;
    }
}

/* Compiler-made suffixes of C names: "f.part.0", "f.cold"; and symbol versions: "f@@GLIBC_2.2.5". */
static size_t without_suffix(const char *name, size_t length)
{
    static const char *const suffixes[] = {".constprop.", ".isra.",      ".part.",  ".cold",    ".lto_priv.",
                                           ".llvm.",      ".localalias", ".clone.", ".__uniq.", ".resolver"};
    const char *at = memchr(name, '@', length);
    if (at && at > name)
        length = (size_t)(at - name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const char *found = memmem(name, length, suffixes[i], strlen(suffixes[i]));
        if (found && found > name)
            length = (size_t)(found - name);
    }
    return length;
}

static char *copy_part(const char *start, const char *end, const char *whole)
{
    size_t length = without_suffix(start, (size_t)(end - start));
    while (length && start[length - 1] == ' ')
        length--;
    if (length == 0)
        return xstrdup(whole);
    char *copy = xmalloc(length + 1);
    memcpy(copy, start, length);
    copy[length] = 0;
    return copy;
}

/* Finds the last component of a function's qualified name; scope gets where the qualified name begins, after a return
 * type. */
static const char *find_component(const char *name, const char **scope, const char **component_end)
{
    const char *start = name; /* of the last component of the scope */
    const char *end = NULL;   /* of its name; NULL: it goes on */
    const char *p = name;
    *scope = name;
    while (*p) {
        if (p == start && strncmp(p, "operator", 8) == 0 && !is_word(p[8]) && p[8]) {
            end = p = operator_end(p + 8);
            if (p[-1] == ' ')
                p--;
            if (*p == ' ' && p[1] == '<') /* "operator< <int>" */
                p++;
        } else if (strncmp(p, "::<", 3) == 0) { /* Rust's arguments: "f::<u8>" */
            if (!end)
                end = p;
            p = skip_brackets(p + 2);
        } else if (strncmp(p, "::", 2) == 0) {
            start = p += 2;
            end = NULL;
        } else if (*p == ' ') {
            if (p[1] == '[') /* " [clone .cold]" */
                break;
            if (strncmp(p, " as ", 4) == 0 || p[1] == 0)
                break;
            *scope = start = ++p;
            end = NULL;
        } else if (*p == '(') {
            const char *after = skip_brackets(p);
            /* "(anonymous namespace)", a pointer in parentheses, "decltype(auto)" */
            if (p == start || (p - start == 8 && strncmp(start, "decltype", 8) == 0)) {
                p = after;
                continue;
            }
            const char *next = skip_qualifiers(after);
            if (strncmp(next, "::", 2) == 0) { /* something local to a function */
                p = next;
                continue;
            }
            if (!end)
                end = p;
            break;
        } else if (*p == '<' || *p == '[') {
            const char *after = skip_brackets(p);
            if (p != start && !end)
                end = p;
            p = after;
        } else if (*p == '{') {
            p = skip_brackets(p);
        } else {
            p++;
        }
    }
    *component_end = end ? end : p;
    return start;
}

char *symbols_plain_name(const char *name)
{
    /* CPython's perf map entries: "py::function:/path/file.py" */
    if (strncmp(name, "py::", 4) == 0 && strchr(name + 4, ':'))
        return copy_part(name + 4, strchr(name + 4, ':'), name);
    const char *scope, *end;
    const char *start = find_component(name, &scope, &end);
    return copy_part(start, end, name);
}

const char *demangle_scope(const char *name)
{
    const char *scope, *end;
    find_component(name, &scope, &end);
    return scope;
}
