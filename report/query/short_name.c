#include "short_name.h"

#include "../../common/buf.h"
#include "../../common/error.h"
#include "../../common/match.h"
#include "../../common/text.h"

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

int short_name_unbuilt(char *name)
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
    char *copy = short_name_cut(name);
    struct buf bare = BUF(1 << 16);
    match_shown_name(copy, MATCH_SHORT, &bare);
    if (text_is_endless(buf_text(&bare))) {
        struct buf cut = BUF(1 << 10);
        text_fit(&cut, bare.data, TEXT_ENDLESS_WIDTH, TEXT_CUT_MIDDLE, 0);
        buf_free(&bare);
        bare = cut;
    }
    if (bare.length) {
        free(copy);
        return buf_take(&bare);
    }
    buf_free(&bare);
    if (*copy) /* all of it in brackets */
        return copy;
    free(copy);
    return xstrdup("?");
}

char *short_label(const char *name)
{
    char *copy = short_name_cut(name);
    if (short_name_unbuilt(copy))
        return copy;
    free(copy);
    return short_name(name);
}
