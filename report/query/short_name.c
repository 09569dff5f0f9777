#include "short_name.h"

#include "../../common/buf.h"
#include "../../common/error.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

char *short_name_cut(const char *text)
{
    size_t length = strnlen(text, SHORT_NAME_BYTES);
    if (length == SHORT_NAME_BYTES) /* not within a UTF-8 character */
        while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--;
    char *copy = xmalloc(length + 4);
    memcpy(copy, text, length);
    strcpy(copy + length, text[length] ? "..." : "");
    return copy;
}

/* Of code without a symbol: etree+0x12f for etree.cpython-311-x86_64-linux-gnu.so+0x12f; 0 for other names. */
static int shorten_stripped(char *name)
{
    static const char *const builds[] = {".cpython", ".pypy", ".abi"};
    char *plus = strrchr(name, '+'), *end = plus ? memmem(name, (size_t)(plus - name), ".so", 3) : NULL;
    if (!end || end == name || strncmp(plus, "+0x", 3) != 0 || plus[3 + strspn(plus + 3, "0123456789abcdef")])
        return 0;
    for (unsigned i = 0; i < sizeof builds / sizeof *builds; i++) {
        char *build = strstr(name + 1, builds[i]);
        end = build && build < end ? build : end;
    }
    memmove(end, plus, strlen(plus) + 1);
    return 1;
}

char *short_name(const char *name)
{
    char *copy = short_name_cut(name), *to = copy;
    static const char anonymous[] = "(anonymous namespace)";
    int depth = 0;
    unsigned char before = 0;
    if (strstr(copy, "operator") || *copy == '<') /* brackets are part of the name */
        return copy;
    for (const char *from = copy; *from; before = (unsigned char)*from++) {
        /* <locals> is a name of its own, what follows a name are its arguments */
        int is_name = *from == '<' && !(before >= 0x80 || before == '_' || isalnum(before));
        if (!depth && strncmp(from, anonymous, sizeof anonymous - 1) == 0) {
            memmove(to, from, sizeof anonymous - 1);
            to += sizeof anonymous - 1;
            from += sizeof anonymous - 2;
        } else if (!depth && (is_name || *from == '>')) {
            *to++ = *from;
        } else if (strchr("<([", *from)) {
            depth++;
        } else if (strchr(">)]", *from)) {
            depth -= depth > 0;
        } else if (!depth) {
            *to++ = *from;
        }
    }
    while (to > copy && to[-1] == ' ')
        to--;
    *to = 0;
    if (to == copy) { /* all of it in brackets */
        free(copy);
        return short_name_cut(*name ? name : "?");
    }
    return copy;
}

char *short_label(const char *name)
{
    char *copy = short_name_cut(name);
    if (shorten_stripped(copy))
        return copy;
    free(copy);
    return short_name(name);
}
