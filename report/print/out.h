/*
 * out.h: where a report goes and how: text for people (a terminal, or a pipe without limits), JSON or CSV for programs.
 */
#ifndef MEMPROF_OUT_H
#define MEMPROF_OUT_H

#include <stdio.h>

enum report_format { REPORT_TEXT, REPORT_JSON, REPORT_CSV };

struct report_out {
    FILE *file;
    enum report_format format;
    int width;      /* columns of the terminal; 0: not a terminal, nothing is shortened */
    int color;      /* 1: ANSI colours */
    int utf8;       /* 1: the terminal shows UTF-8 */
    int has_window; /* 1: what is shown is of a window of the run (lens.h) */
};

#endif
