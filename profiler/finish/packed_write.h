/* SPDX-License-Identifier: MIT */
/*
 * packed_write.h: whole columns of packed rows, written at the end.
 */
#ifndef MEMPROF_PACKED_WRITE_H
#define MEMPROF_PACKED_WRITE_H

#include "../../common/packed.h"

/* Writes rows 1 to that of a column, in chunks; changes the values, which are by row. insert: PACKED_INSERT. */
int packed_write(sqlite3_stmt *insert, struct chunk_codec *codec, enum packed_column column, uint64_t *values,
                 uint32_t rows, struct error *err);

#endif
