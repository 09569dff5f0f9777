/*
 * short_name.h: names of functions and files as sentences and the page show them.
 */
#ifndef MEMPROF_SHORT_NAME_H
#define MEMPROF_SHORT_NAME_H

#define SHORT_NAME_BYTES 2000

/* The caller's to free. */
char *short_name(const char *name);     /* without template and call arguments, cut; of a symbol its ends */
char *short_label(const char *name);    /* the same; of code without a symbol, without how its module was built */
char *short_name_cut(const char *text); /* cut at SHORT_NAME_BYTES */

/* Of code without a symbol, in place: etree+0x12f for etree.cpython-311-x86_64-linux-gnu.so+0x12f; 0 for other names,
 * which stay. */
int short_name_unbuilt(char *name);

#endif
