/*
 * recover.h: a file whose collector was killed, or had no memory left.
 */
#ifndef MEMPROF_RECOVER_H
#define MEMPROF_RECOVER_H

#include "../../common/error.h"

/* Finishes it in place (finish.h) after saying so; 0 when there was nothing to do. A file that is still being recorded
 * by a living collector is left alone. -errno with err when it cannot be written. */
int recover_file(const char *path, struct error *err);

#endif
