/* The findings (report/findings/), with their lines as the page numbers them. */
#include "page_data.h"

#include "../findings/finding.h"

static int64_t line_of_site(void *context, int64_t site_id)
{
    const struct page *page = context;
    uint32_t site = page_site(page, site_id);
    return site == MAP_NONE ? -1 : page->sites[site].line;
}

int page_make_findings(struct page *page)
{
    struct findings findings;
    page->findings = (struct buf)BUF(4u << 20);
    heap_end_load(page->db, &page->heap_end);
    const struct findings_options options = {.asked_for = FINDINGS_REPORT,
                                             .first_device =
                                                 page->device_count ? page->devices[page->open_device].device_id : 0,
                                             .file = page->options->database_path,
                                             .heap_end = &page->heap_end};
    int rc = findings_load(page->db, &options, &findings, page->err);
    findings_html(&findings, &page->findings, line_of_site, page);
    findings_free(&findings);
    return rc;
}
