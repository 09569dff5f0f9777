/*
 * match.h: names of functions and files as a user types them.
 */
#ifndef MEMPROF_MATCH_H
#define MEMPROF_MATCH_H

#include "buf.h"

/* Whether pattern names the function: its plain name ("c"), a qualified one ("b::c", "a::b::c"), the name with template
 * arguments or with everything, or a shell pattern for any of these. */
int match_function(const char *pattern, const char *name, const char *plain_name);
/* Whether pattern names the file: its path, the end of its path from a slash on, or a shell pattern for either. */
int match_file(const char *pattern, const char *path);

/* "void a::b<int>::c<2>(char) const" -> "a::b<int>::c<2>"; with_templates 0: "a::b::c". Appended to out,
 * which is empty before. */
void match_bare_name(const char *name, int with_templates, struct buf *out);
/* The same without templates, but what is within a function stays so: "f(int)::{lambda(int)#1}" -> "f::{lambda#1}". */
void match_short_name(const char *name, struct buf *out);

#endif
