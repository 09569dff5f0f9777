/*
 * packer.h: chunks of rows for the table packed (common/packed.h), a column after the other.
 */
#ifndef MEMPROF_PACKER_H
#define MEMPROF_PACKER_H

#include "../../common/packed.h"
#include "store.h"

/* From a column's room to that of the next one, in values. Rows are written side by side: were the columns to begin at
 * the same offset in a page, they would compete for the same few lines of the cache. */
#define PACKER_STRIDE (PACKED_ROWS + 72u)

struct packer;
struct packer *packer_open(struct store *store, enum packed_table table);
void packer_close(struct packer *packer); /* NULL does nothing */

/* Room for the values of a column of the packer's table, or of PACKED_ROW_IDS: up to PACKED_ROWS, which packer_column
 * stores and changes. */
uint64_t *packer_values(struct packer *packer, enum packed_column column);
void packer_column(struct packer *packer, uint32_t part, enum packed_column column, uint32_t first_row, uint32_t count);

void packer_drop_chunk(struct packer *packer, uint32_t first_row); /* of part 0 */
void packer_drop_all(struct packer *packer);

#endif
