/*
 * diff_text.h: a row of a diff in words: its name, where it is, and how it was matched. One place for the terminal and
 * the page. Each appends what the recording has, which is hostile text.
 */
#ifndef MEMPROF_DIFF_TEXT_H
#define MEMPROF_DIFF_TEXT_H

#include "diff.h"

/* What a row is called by: its new side, where it is there. */
const struct diff_item *diff_shown_item(const struct diff_row *row);

/* "forward", "libz.so.1+0x1234", a path from base on (NULL: whole). */
void diff_name_text(enum row_key by, const struct diff_item *item, const char *base, struct buf *out);
/* "src/net.c:42", "[libz.so.1]", "<- caller"; nothing where the name says all. */
void diff_place_text(enum row_key by, const struct diff_item *item, const char *base, struct buf *out);
/* "renamed from a.c, moved 3 -> 6"; nothing of a row that is the same. */
void diff_how_text(const struct diff_row *row, struct buf *out);

#endif
