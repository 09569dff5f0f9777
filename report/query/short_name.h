/*
 * short_name.h: names of functions and files as sentences and the page show them.
 */
#ifndef MEMPROF_SHORT_NAME_H
#define MEMPROF_SHORT_NAME_H

#define SHORT_NAME_BYTES 2000

/* The caller's to free. */
char *short_name(const char *name);     /* without template and call arguments, cut */
char *short_label(const char *name);    /* the same; of code without a symbol, without how its module was built */
char *short_name_cut(const char *text); /* cut at SHORT_NAME_BYTES */

#endif
