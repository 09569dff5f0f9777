/*
 * text.h: text from a database on its way to a terminal: control characters made visible, columns counted, long names
 * shortened. Input may be any bytes.
 */
#ifndef MEMPROF_TEXT_H
#define MEMPROF_TEXT_H

#include "buf.h"

/* Appends text with control characters, direction overrides and invalid UTF-8 as \xNN or \u{N}; the result is UTF-8. */
void text_clean(struct buf *out, const char *text);
/* The same for JSON and CSV: only invalid UTF-8 is replaced, by U+FFFD. */
void text_valid(struct buf *out, const char *text);
/* The same for other tools' formats: control characters and invalid UTF-8 are '?'. */
void text_plain(struct buf *out, const char *text);
/* Terminal columns of cleaned text. */
int text_width(const char *text);

enum text_cut { TEXT_CUT_NONE, TEXT_CUT_MIDDLE, TEXT_CUT_LEFT, TEXT_CUT_RIGHT, TEXT_CUT_NAME };
/* Appends cleaned text in at most width columns: MIDDLE keeps both ends, LEFT the end (paths), NAME the own name of a
 * function: its arguments give way first, then template arguments, then the scopes that it is in. */
void text_fit(struct buf *out, const char *text, int width, enum text_cut cut, int utf8);

/* "<- forward", where other rows have a path: a function's name. */
int text_is_caller(const char *text);
/* One word with more characters than anybody reads: a symbol that could not be demangled, or a name that a generator
 * made (of parsers, of bindings). */
int text_is_endless(const char *name);
#define TEXT_ENDLESS_WIDTH 80  /* which it is shown in; a symbol is wider */
#define TEXT_WORD_WIDTH    160 /* as wide are scopes and names that somebody wrote */
/* Appends a function; wider than width, without arguments, then without template arguments; cut only where that leaves
 * an endless symbol. */
void text_bare_name(struct buf *out, const char *text, int width);

/* path without the directory base (borrowed from path) when it lies in it, else path itself. base may be NULL. */
const char *text_relative(const char *path, const char *base);
/* Appends path for people: "/./", "//" and "dir/.." taken out, and from base on when it lies in it. */
void text_path(struct buf *out, const char *path, const char *base);
/* Part of path after the last slash. */
const char *text_basename(const char *path);
/* The same with the directory before it where every directory has a file of that name: "requests/__init__.py". */
const char *text_filename(const char *path);
/* A message without the "PATH: " that it begins with, where that is path, or path as SQLite names it: from / on. */
const char *text_without_path(const char *text, const char *path);

#endif
