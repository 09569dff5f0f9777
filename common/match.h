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
/* Whether pattern is the text, or a shell pattern with '*' or '?' that matches it. */
int match_text(const char *pattern, const char *text);

/* "void a::b<int>::c<2>(char) const" -> "a::b<int>::c<2>"; with_templates 0: "a::b::c". Appended to out,
 * which is empty before. */
void match_bare_name(const char *name, int with_templates, struct buf *out);

/* The same as people are shown it: what is within a function stays, "f(int)::{lambda(int)#1}" -> "f::{lambda(int)#1}",
 * and so does the first closure of the program's among template arguments, which says more than what it was given to:
 * "std::_Function_handler<void (int), f(int)::{lambda(int)#1}>::_M_invoke". */
enum match_parts {
    MATCH_TEMPLATES, /* with all template arguments */
    MATCH_CLOSURES,  /* of these closures alone: "std::_Function_handler<f::{lambda(int)#1}>::_M_invoke" */
    MATCH_NO_TEMPLATES,
    MATCH_SHORT /* as MATCH_CLOSURES, without the closures' own arguments: "f::{lambda#1}" */
};
void match_shown_name(const char *name, enum match_parts parts, struct buf *out);

/* What the recorder says behind a name that functions of several source files have: " [a.c]"; "" where it does not.
 * match_shown_name keeps it, match_bare_name does not. */
const char *match_unit(const char *name);

/* Whether a closure is in the name, also among template arguments: compilers number them in their order. */
int match_has_closure(const char *name);

#endif
