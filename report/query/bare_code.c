#include "bare_code.h"

#include "../../common/match.h"
#include "../../common/text.h"
#include "short_name.h"

#include <stdlib.h>
#include <string.h>

void bare_code_name(const char *module, int64_t offset, struct buf *out)
{
    buf_printf(out, "%s+0x%llx", text_basename(module), (unsigned long long)offset);
}

int bare_code_matches(const char *pattern, const char *module, int64_t offset)
{
    struct buf name = BUF(1 << 16);
    if (!strchr(pattern, '+'))
        return 0;
    bare_code_name(module, offset, &name);
    int is_match = !name.failed && match_text(pattern, buf_text(&name));
    buf_free(&name);
    return is_match;
}

int bare_code_is_label(const char *text, const char *module, int64_t offset)
{
    struct buf name = BUF(1 << 16);
    if (!strchr(text, '+'))
        return 0;
    bare_code_name(module, offset, &name);
    char *label = short_label(buf_text(&name));
    int is_it = strcmp(label, text) == 0;
    free(label);
    buf_free(&name);
    return is_it;
}

int bare_code_is_name(const char *text)
{
    return strstr(text, "+0x") != NULL;
}
