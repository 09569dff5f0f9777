/*
 * beside.h: the files that are called like a database with a suffix behind: SQLite's own, and the names that reports
 * keep (docs/format.md). A file of such a name may as well be somebody else's: what it is, its first bytes say.
 */
#ifndef MEMPROF_BESIDE_H
#define MEMPROF_BESIDE_H

#include "error.h"

#define BESIDE_SYMBOLS_MAGIC 0x31424d5350524d00ull

enum beside { BESIDE_SYMBOLS, BESIDE_JOURNAL, BESIDE_SHM, BESIDE_WAL, BESIDE_COUNT };
enum beside_what {
    BESIDE_NONE,
    BESIDE_OWN,     /* memprof's, SQLite's, or empty: nothing is lost with it */
    BESIDE_OTHER,   /* a file of somebody else */
    BESIDE_SPECIAL, /* no regular file, or one that cannot be read */
};

/* "-wal" */
const char *beside_suffix(enum beside which);
enum beside_what beside_look(const char *path, enum beside which);
/* 0, or -EEXIST with err, which names it: one of them is not ours to remove. */
int beside_check(const char *path, struct error *err);
/* Those that are ours. */
void beside_remove(const char *path);
void beside_remove_one(const char *path, enum beside which);
/* Whether name is that of a file beside path, through links too. */
int beside_is_name(const char *path, const char *name);

#endif
