/*
 * page_categories.h: what the blocks were for that were live at the stored instants: the categories that programs said
 * (memprof_category, --torch-names), and PyTorch's phases for what nobody named. Empty where no category was said.
 */
#ifndef MEMPROF_PAGE_CATEGORIES_H
#define MEMPROF_PAGE_CATEGORIES_H

#include "page_data.h"

/* Before the instants: which sites are of a phase. 0 or -errno with page->err. */
int page_load_phases(struct page *page);

/* Bytes that came to a site, or (of a negative number) went from it. */
void page_phase_add(struct page *page, int64_t site_id, uint64_t bytes);
/* What follows is all that is live; device: of it alone; -1: of all. */
void page_phase_restart(struct page *page, int32_t device);
/* Keeps what the phases hold now: its number, for page_instant. */
uint32_t page_phase_keep(struct page *page);

/* After the instants: a member of the object that is open. 0 or -errno with page->err. */
int page_write_categories(struct page *page, struct page_pack *pack);
void page_phases_free(struct page *page);

#endif
