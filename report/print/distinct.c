#include "distinct.h"

#include "../../common/error.h"
#include "../../common/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define FREE_PART  40 /* columns of what differs, where a name may take any */
#define LEAST_PART 6

struct name {
    const char *text, *shown;
    const char *key;   /* shown, or where that is the whole text, what is left of it without its arguments */
    const char *clone; /* " [clone .constprop.0]" at the end of text, or its end */
    size_t index;
};

/* A compiler's copy of a function has its name, with the copy's behind. */
static const char *clone_of(const char *text)
{
    const char *clone = strstr(text, " [clone ");
    return clone ? clone : text + strlen(text);
}

static size_t length_of(const struct name *name)
{
    return (size_t)(name->clone - name->text);
}

static int by_key(const void *x, const void *y)
{
    const struct name *a = x, *b = y;
    int order = strcmp(a->key, b->key);
    return order ? order : strcmp(a->text, b->text);
}

static int is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == ':' || (unsigned char)c >= 0x80;
}

/* The innermost bracket that is open before end: < or (; 0: none. Operators' own are no brackets, and few. */
static char open_bracket(const char *text, size_t end)
{
    int depth = 0;
    while (end > 0) {
        char c = text[--end];
        if (c == '>' || c == ')')
            depth += !(c == '>' && end && text[end - 1] == '-');
        else if ((c == '<' || c == '(') && depth-- == 0)
            return c;
    }
    return 0;
}

/* Where the bracket that is open at begin closes, if that is before end, else end. */
static size_t bracket_end(const char *text, size_t begin, size_t end)
{
    int depth = 0;
    for (size_t i = begin; i < end; i++) {
        depth += text[i] == '<' || text[i] == '(';
        if ((text[i] == ')' || (text[i] == '>' && text[i - 1] != '-')) && depth-- == 0)
            return i;
    }
    return end;
}

/* What texts have in common: bytes from the beginning and from the end (before what a copy has behind), which do not
 * overlap in any of them. */
static void common(const struct name *names, size_t count, size_t *head, size_t *tail)
{
    const char *first = names[0].text;
    size_t length = length_of(names);
    *head = *tail = length;
    for (size_t i = 1; i < count; i++) {
        const char *text = names[i].text;
        size_t other = length_of(&names[i]), h = 0, t = 0;
        while (h < *head && h < other && text[h] == first[h])
            h++;
        while (t < *tail && t < other && text[other - 1 - t] == first[length - 1 - t])
            t++;
        *head = h;
        *tail = t;
    }
    for (size_t i = 0; i < count; i++) {
        size_t all = length_of(&names[i]);
        if (*head + *tail > all)
            *tail = all - *head;
    }
}

/* "<..int..>": the words of text that lie between. Empty: they are no arguments. */
static void part_of(const struct name *name, size_t head, size_t tail, int width, int utf8, struct buf *out)
{
    const char *mark = utf8 ? "\xe2\x80\xa6" : "..", *text = name->text;
    size_t begin = head, end = length_of(name) - tail;
    if (head == length_of(name) && tail == 0) /* of these a copy is told by what it has behind */
        return;
    while (begin > 0 && is_word(text[begin - 1]))
        begin--;
    while (is_word(text[end]))
        end++;
    char open = open_bracket(text, begin), closing = open == '<' ? '>' : ')';
    if (!open)
        return;
    end = bracket_end(text, begin, end);
    struct buf part = BUF(1 << 20);
    buf_add(&part, text + begin, end - begin);
    buf_putc(out, open);
    buf_puts(out, text[begin - 1] == open ? "" : mark);
    text_fit(out, buf_text(&part), width, TEXT_CUT_RIGHT, utf8);
    buf_puts(out, text[end] == closing ? "" : mark);
    buf_putc(out, closing);
    buf_free(&part);
}

static void tell_apart(const struct name *names, size_t count, char **shown, int width, int utf8)
{
    size_t head, tail;
    common(names, count, &head, &tail);
    int most = width ? width / 2 - 6 : FREE_PART;
    if (most < LEAST_PART)
        return;
    for (size_t i = 0; i < count; i++) {
        struct buf part = BUF(1 << 16), name = BUF(1 << 20);
        part_of(&names[i], head, tail, most, utf8, &part);
        if (!width || text_width(buf_text(&part)) + text_width(names[i].clone) + LEAST_PART <= width)
            buf_puts(&part, names[i].clone);
        if (part.length && strcmp(names[i].shown, names[i].text) != 0) {
            text_fit(&name, names[i].shown, width ? width - text_width(part.data) : (int)strlen(names[i].shown) + 1,
                     TEXT_CUT_NAME, utf8);
            buf_puts(&name, part.data);
            shown[names[i].index] = buf_take(&name);
        }
        buf_free(&part);
        buf_free(&name);
    }
}

static char *bare_name(const char *text)
{
    struct buf name = BUF(1 << 20);
    text_bare_name(&name, text, text_width(text) - 1);
    return name.data ? buf_take(&name) : xstrdup("");
}

void distinct_names(const char *const *texts, char **shown, size_t count, int width, int utf8)
{
    struct name *names = xcalloc(count + 1, sizeof *names);
    char **bare = xcalloc(count + 1, sizeof *bare);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(texts[i], shown[i]) == 0)
            bare[i] = bare_name(texts[i]);
        names[i] = (struct name){texts[i], shown[i], bare[i] ? bare[i] : shown[i], clone_of(texts[i]), i};
    }
    qsort(names, count, sizeof *names, by_key);
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && strcmp(names[i + n].key, names[i].key) == 0;)
            n++;
        /* sorted: the first and the last are the same if all are */
        if (n > 1 && strcmp(names[i].text, names[i + n - 1].text) != 0) {
            char **old = xcalloc(n, sizeof *old);
            for (size_t k = 0; k < n; k++)
                old[k] = shown[names[i + k].index];
            tell_apart(names + i, n, shown, width, utf8);
            for (size_t k = 0; k < n; k++)
                if (shown[names[i + k].index] != old[k])
                    free(old[k]);
            free(old);
        }
    }
    for (size_t i = 0; i < count; i++)
        free(bare[i]);
    free(bare);
    free(names);
}
