#include "diff_private.h"

#include <ctype.h>
#include <string.h>

/* "constprop", "cold", ...: what gcc and clang append to the name of a function that they split or copied. */
static int is_clone_word(const char *text, size_t length)
{
    static const char *const words[] = {"constprop", "isra", "part", "cold", "lto_priv", "llvm", "clone"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == length && strncmp(words[i], text, length) == 0)
            return 1;
    return 0;
}

/* The length of name without its last ".WORD" or ".WORD.NUMBER"; length where there is none. */
static size_t without_suffix(const char *name, size_t length)
{
    size_t end = length;
    while (end > 0 && isdigit((unsigned char)name[end - 1]))
        end--;
    if (end == length || end == 0 || name[end - 1] != '.')
        end = length;
    else
        end--;
    size_t start = end;
    while (start > 0 && name[start - 1] != '.')
        start--;
    return start > 1 && is_clone_word(name + start, end - start) ? start - 1 : length;
}

/* The same of "f(int) [clone .isra.0]" and "f(int) (.isra.0)", as demanglers write it. */
static size_t without_remark(const char *name, size_t length)
{
    static const struct {
        const char *head;
        char end;
    } remarks[] = {{" [clone .", ']'}, {" (.", ')'}};
    for (size_t i = 0; i < sizeof remarks / sizeof *remarks; i++) {
        size_t head = strlen(remarks[i].head);
        if (length <= head || name[length - 1] != remarks[i].end)
            continue;
        for (size_t at = length - head; at > 0; at--)
            if (strncmp(name + at, remarks[i].head, head) == 0)
                return at;
    }
    return length;
}

void diff_bare_name(const char *name, struct buf *out)
{
    size_t length = strlen(name), shorter;
    for (;; length = shorter) {
        shorter = without_suffix(name, length);
        if (shorter == length)
            shorter = without_remark(name, length);
        if (shorter == length)
            break;
    }
    buf_add(out, name, length);
}

const char *diff_path_end(const char *path, int components)
{
    const char *p = path + strlen(path);
    while (p > path) {
        while (p > path && p[-1] != '/')
            p--;
        if (--components == 0)
            return *p ? p : NULL;
        while (p > path && p[-1] == '/')
            p--;
    }
    return NULL;
}
