/*
 * distinct.h: names that were shortened to the same, though they differ: the template or call argument that tells them
 * apart stays.
 */
#ifndef MEMPROF_DISTINCT_H
#define MEMPROF_DISTINCT_H

#include <stddef.h>

/* texts: the whole names of a column. shown: what was made of each, count of both; those to be told from others become
 * other strings, as "insert<..int..>". width: columns that each may take; 0: any. */
void distinct_names(const char *const *texts, char **shown, size_t count, int width, int utf8);

#endif
