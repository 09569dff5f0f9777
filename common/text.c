#include "text.h"

#include "match.h"

#include <locale.h>
#include <string.h>
#include <wchar.h>

/* Control characters, and those that reorder or hide what follows them. */
static int is_dangerous(unsigned code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xad || code == 0x61c ||
           (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2060 && code <= 0x206f) || code == 0xfeff || (code >= 0xfff9 && code <= 0xfffb) ||
           code >= 0xe0000;
}

void text_clean(struct buf *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned code;
    while (*p) {
        int length = buf_decode(p, &code);
        if (length == 0)
            buf_printf(out, "\\x%02x", *p);
        else if (!is_dangerous(code))
            buf_add(out, p, (size_t)length);
        else if (code < 0x80)
            buf_printf(out, "\\x%02x", code);
        else
            buf_printf(out, "\\u{%x}", code);
        p += length ? length : 1;
    }
    if (!out->data) /* a string in every case */
        buf_add(out, "", 0);
}

void text_valid(struct buf *out, const char *text)
{
    unsigned code;
    const char *p = text;
    while (*p) {
        int length = buf_decode((const unsigned char *)p, &code);
        p += length;
        if (length)
            continue;
        buf_add(out, text, (size_t)(p - text));
        buf_puts(out, "\xef\xbf\xbd");
        text = ++p;
    }
    buf_add(out, text, (size_t)(p - text));
}

void text_plain(struct buf *out, const char *text)
{
    unsigned code;
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        int length = buf_decode(p, &code);
        if (length == 0 || code < 0x20 || (code >= 0x7f && code < 0xa0))
            buf_putc(out, '?');
        else
            buf_add(out, p, (size_t)length);
        p += length ? length : 1;
    }
}

/* Columns of one code point. wcwidth knows them in a UTF-8 locale only, and the user's may be another one. */
static int code_width(unsigned code)
{
    static locale_t utf8;
    if (code < 0x7f)
        return 1;
    if (!utf8)
        utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!utf8)
        return 1;
    locale_t before = uselocale(utf8);
    int width = wcwidth((wchar_t)code);
    uselocale(before);
    return width < 0 ? 1 : width;
}

int text_width(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    int width = 0;
    unsigned code;
    while (*p) {
        int length = buf_decode(p, &code);
        width += length ? code_width(code) : 1;
        p += length ? length : 1;
    }
    return width;
}

/* Bytes of text from its beginning that take at most width columns. */
static size_t head_bytes(const char *text, int width)
{
    const char *p = text;
    unsigned code;
    while (*p) {
        int length = buf_decode((const unsigned char *)p, &code);
        width -= length ? code_width(code) : 1;
        if (width < 0)
            break;
        p += length ? length : 1;
    }
    return (size_t)(p - text);
}

/* Where the end of text that takes at most width columns begins. */
static const char *tail_of(const char *text, int width)
{
    int excess = text_width(text) - width;
    const char *p = text;
    unsigned code;
    while (*p && excess > 0) {
        int length = buf_decode((const unsigned char *)p, &code);
        excess -= length ? code_width(code) : 1;
        p += length ? length : 1;
    }
    return p;
}

/* "__init__.py", "__init__.py:37": which one it is, the directory alone says. */
static int is_in_every_directory(const char *base)
{
    static const char *const names[] = {"__init__.py", "__main__.py", "mod.rs", "index.js"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(base, names[i], length) == 0 && (!base[length] || base[length] == ':'))
            return 1;
    }
    return 0;
}

/* A function without its arguments, then without template arguments but closures, and so on to least, where it is
 * wider: text, or what is in bare. */
static const char *bare_name(const char *text, int width, enum match_parts least, struct buf *bare)
{
    const char *shown = text;
    for (int parts = MATCH_TEMPLATES; parts <= (int)least && text_width(shown) > width; parts++) {
        buf_reset(bare);
        match_shown_name(text, (enum match_parts)parts, bare);
        shown = bare->length ? bare->data : text;
    }
    return shown;
}

int text_is_caller(const char *text)
{
    return strncmp(text, "<- ", 3) == 0;
}

/* Bytes of indentation and of the arrow before a caller's name. */
static size_t lead_bytes(const char *text)
{
    size_t spaces = strspn(text, " ");
    return spaces + (text_is_caller(text + spaces) ? strlen("<- ") : 0);
}

/* Where " and 2 others" begins behind a caller; the end: it is the only one. */
static const char *others_of(const char *text)
{
    const char *end = text + strlen(text), *at = text_is_caller(text) ? end : text;
    while (at > text && strncmp(at, " and ", 5) != 0)
        at--;
    size_t digits = at > text ? strspn(at + 5, "0123456789") : 0;
    return digits && strncmp(at + 5 + digits, " other", 6) == 0 ? at : end;
}

int text_is_endless(const char *name)
{
    static const char in_symbols[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.$:~";
    size_t length = strspn(name, in_symbols);
    int is_mangled = strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0;
    return length > (is_mangled ? TEXT_ENDLESS_WIDTH : TEXT_WORD_WIDTH) && !name[length];
}

void text_bare_name(struct buf *out, const char *text, int width)
{
    struct buf bare = BUF(1 << 20);
    size_t head = text_width(text) > width ? lead_bytes(text) : 0;
    struct buf name = BUF(1 << 20);
    const char *others = others_of(text);
    buf_add(&name, text + head, (size_t)(others - text) - head);
    buf_add(out, text, head);
    const char *shown = bare_name(buf_text(&name), width - (int)head, MATCH_CLOSURES, &bare);
    text_fit(out, shown, TEXT_ENDLESS_WIDTH, text_is_endless(shown) ? TEXT_CUT_MIDDLE : TEXT_CUT_NONE, 0);
    buf_puts(out, others);
    buf_free(&bare);
    buf_free(&name);
}

/* Where the arguments begin that a name has for a closure, and its others without them do not; NULL: it has none. */
static const char *closure_of(const char *text, const struct buf *with)
{
    struct buf without = BUF(1 << 20);
    size_t same = 0;
    match_shown_name(text, MATCH_NO_TEMPLATES, &without);
    while (same < without.length && with->data[same] == without.data[same])
        same++;
    buf_free(&without);
    return same < with->length && with->data[same] == '<' ? with->data + same : NULL;
}

/* A function for a closure, which says more than its own name: "..<main::{lambda()#1}>::_M_run", or the closure alone;
 * of a template ("..::each<main::{lambda()#1}>") that is a part of the name. 0: width is too small. */
static int fit_closure(struct buf *out, const char *text, const char *mark, int room)
{
    struct buf with = BUF(1 << 20), alone = BUF(1 << 20);
    match_shown_name(text, MATCH_CLOSURES, &with);
    const char *begin = closure_of(text, &with), *end = begin ? strstr(begin, ">::") : NULL, *own = begin;
    while (!end && own && own > with.data && strncmp(own, "::", 2) != 0)
        own--;
    if (end)
        buf_add(&alone, begin, (size_t)(end + 1 - begin));
    int fits = own && own > with.data && text_width(own) <= room;
    int fits_alone = !fits && alone.length && text_width(alone.data) + text_width(mark) <= room;
    if (fits || fits_alone)
        buf_printf(out, "%s%s%s", mark, fits ? own : alone.data, fits ? "" : mark);
    buf_free(&with);
    buf_free(&alone);
    return fits || fits_alone;
}

/* A function as whole as width allows, from the end: its own name says most. */
static void fit_name(struct buf *out, const char *text, int width, const char *mark, int room)
{
    struct buf bare = BUF(1 << 20);
    size_t head = lead_bytes(text); /* it stays */
    int head_width = (int)head < room / 2 ? (int)head : 0;
    if (head_width) {
        buf_add(out, text, head);
        text += head;
        width -= head_width;
        room -= head_width;
    }
    const char *shown = bare_name(text, width, MATCH_CLOSURES, &bare), *own;
    if (text_width(shown) > width && fit_closure(out, text, mark, room)) {
        buf_free(&bare);
        return;
    }
    own = shown = bare_name(text, width, MATCH_NO_TEMPLATES, &bare);
    for (const char *next = shown; (next = strstr(next, "::")) && next[2]; next += 2)
        own = next + 2;
    if (text_width(shown) <= width) {
        buf_puts(out, shown);
    } else if (own != shown && text_width(own) + 2 <= room) {
        buf_puts(out, mark);
        buf_puts(out, own - 2);
    } else { /* recognized by how it begins */
        int fits = text_width(own) <= width;
        buf_add(out, own, head_bytes(own, fits ? width : room));
        buf_puts(out, fits ? "" : mark);
    }
    buf_free(&bare);
}

/* The caller gives way to how many others there are, and that to the caller where there is little room: " +2". */
static void fit_caller(struct buf *out, const char *text, const char *others, int width, int utf8)
{
    enum { LEAST = 20 };
    struct buf caller = BUF(1 << 20), few = BUF(64);
    const char *number = others + strlen(" and ");
    buf_puts(&few, " +");
    buf_add(&few, number, strspn(number, "0123456789"));
    const char *tail = width - text_width(others) >= LEAST ? others : buf_text(&few);
    buf_add(&caller, text, (size_t)(others - text));
    text_fit(out, buf_text(&caller), width - text_width(tail), TEXT_CUT_NAME, utf8);
    buf_puts(out, tail);
    buf_free(&caller);
    buf_free(&few);
}

void text_fit(struct buf *out, const char *text, int width, enum text_cut cut, int utf8)
{
    const char *mark = utf8 ? "\xe2\x80\xa6" : "..";
    int room = width - (utf8 ? 1 : 2);
    if (cut == TEXT_CUT_LEFT && text_is_caller(text))
        cut = TEXT_CUT_NAME;
    if (cut == TEXT_CUT_NONE || text_width(text) <= width) {
        buf_puts(out, text);
    } else if (cut == TEXT_CUT_NAME && *others_of(text) && room > 8) {
        fit_caller(out, text, others_of(text), width, utf8);
    } else if (room < 1) {
        buf_add(out, text, head_bytes(text, width < 0 ? 0 : width));
    } else if (cut == TEXT_CUT_RIGHT) {
        buf_add(out, text, head_bytes(text, room));
        buf_puts(out, mark);
    } else if (cut == TEXT_CUT_LEFT) {
        const char *tail = tail_of(text, room), *slash = strchr(tail, '/');
        /* whole directory names read better, where not much is lost by it */
        if (slash && slash - tail < room / 3 && !is_in_every_directory(slash + 1))
            tail = slash;
        buf_puts(out, mark);
        buf_puts(out, tail);
    } else if (cut == TEXT_CUT_NAME) {
        fit_name(out, text, width, mark, room);
    } else {
        int head = (room + 1) / 2;
        buf_add(out, text, head_bytes(text, head));
        buf_puts(out, mark);
        buf_puts(out, tail_of(text, room - head));
    }
}

const char *text_relative(const char *path, const char *base)
{
    size_t length = base ? strlen(base) : 0;
    while (length && base[length - 1] == '/')
        length--;
    if (length && strncmp(path, base, length) == 0 && path[length] == '/' && path[length + 1])
        return path + length + 1;
    return path;
}

void text_path(struct buf *out, const char *path, const char *base)
{
    struct buf plain = BUF(1 << 20);
    int is_absolute = *path == '/';
    for (const char *p = path; *p;) {
        size_t length = strcspn(p, "/");
        const char *last = plain.length ? plain.data + plain.length : NULL;
        while (last && last > plain.data && last[-1] != '/')
            last--;
        if (length == 2 && strncmp(p, "..", 2) == 0 && last && strcmp(last, "..") != 0) {
            plain.length = (size_t)(last - plain.data);
            plain.length -= plain.length > 0;
            plain.data[plain.length] = 0;
        } else if (length == 2 && strncmp(p, "..", 2) == 0 && is_absolute) {
            ; /* above the root is the root */
        } else if (length && !(length == 1 && *p == '.')) {
            if (is_absolute || plain.length)
                buf_putc(&plain, '/');
            buf_add(&plain, p, length);
        }
        p += length + (p[length] == '/');
    }
    buf_puts(out, plain.length ? text_relative(plain.data, base) : path);
    buf_free(&plain);
}

const char *text_basename(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

const char *text_filename(const char *path)
{
    const char *base = text_basename(path);
    if (!is_in_every_directory(base) || base - path < 2)
        return base;
    for (base--; base > path && base[-1] != '/';)
        base--;
    return base;
}

const char *text_without_path(const char *text, const char *path)
{
    const char *base = text_basename(path);
    const size_t length = strlen(path), base_length = strlen(base);
    if (strncmp(text, path, length) == 0 && strncmp(text + length, ": ", 2) == 0)
        return text + length + 2;
    const char *at = text[0] == '/' && base_length ? strstr(text, base) : NULL;
    return at && at[-1] == '/' && strncmp(at + base_length, ": ", 2) == 0 ? at + base_length + 2 : text;
}
