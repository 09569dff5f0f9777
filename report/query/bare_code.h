/*
 * bare_code.h: code without a symbol by the names that people are shown and type: what tables have ("git+0x28961c"), a
 * shell pattern for it, and what the page has of it ("etree+0x12f", short_name.h).
 */
#ifndef MEMPROF_BARE_CODE_H
#define MEMPROF_BARE_CODE_H

#include "../../common/buf.h"

/* "libz.so.1+0x1234"; module: a path. Appended to out. */
void bare_code_name(const char *module, int64_t offset, struct buf *out);
/* Whether a pattern is its name in tables, or matches that: only one that has a '+', so that '*' means functions. */
int bare_code_matches(const char *pattern, const char *module, int64_t offset);
/* Whether a text is its name on the page. */
int bare_code_is_label(const char *text, const char *module, int64_t offset);
/* Whether a text looks like such a name: "libz.so.1+0x1234", "*z.so*+0x12*". */
int bare_code_is_name(const char *text);

/* What to say of such a name that is not in a recording. */
#define BARE_CODE_OF_ONE_BUILD "a name with +0x is of one build of its module"

#endif
