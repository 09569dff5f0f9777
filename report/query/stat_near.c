#include "stat_near.h"

#include "../../common/near.h"
#include "stat.h"

#include <string.h>

#define SEPARATORS "._"
#define FEW        4 /* that a word tells: "bytes" tells none */

static int is_begun(const char *known, const char *name)
{
    size_t length = strlen(name);
    return strncmp(known, name, length) == 0 && known[length] == '.';
}

static int has_word(const char *known, const char *word)
{
    size_t length = strcspn(word, SEPARATORS), part;
    for (; *known; known += part + strspn(known + part, SEPARATORS)) {
        part = strcspn(known, SEPARATORS);
        if (part == length && strncmp(known, word, length) == 0)
            return 1;
    }
    return 0;
}

/* Those that are so, as a list; none where they are more than most. */
static int list(const char *text, int (*is_so)(const char *known, const char *text), int among, int most,
                struct buf *out)
{
    int count = 0, listed = 0;
    for (int i = 0; i < among; i++)
        count += is_so(stat_infos[i].name, text);
    if (count > most)
        return 0;
    for (int i = 0; i < among; i++)
        if (is_so(stat_infos[i].name, text))
            buf_printf(out, "%s%s", listed++ == 0 ? "" : listed == count ? " or " : ", ", stat_infos[i].name);
    return count;
}

static const char *find_slip(const char *name, int among)
{
    const char *names[STAT_LINES_COUNT] = {0};
    for (int i = 0; i < among; i++)
        names[i] = stat_infos[i].name;
    return near_name(name, names, among);
}

int stat_list_near(const char *name, int among, struct buf *out)
{
    const char *slip = find_slip(name, among);
    if (slip) {
        buf_puts(out, slip);
        return 1;
    }
    int count = list(name, is_begun, among, among, out);
    for (size_t at = strlen(name); count == 0 && at-- > 0;)
        if (at == 0 || strchr(SEPARATORS, name[at - 1]))
            count = list(name + at, has_word, among, FEW, out);
    return count;
}
