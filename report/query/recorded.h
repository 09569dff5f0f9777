/*
 * recorded.h: the images that numbers belong to. An exec makes another program of a process, and that may be one that
 * cannot be recorded: what was counted is of the images before it.
 */
#ifndef MEMPROF_QUERY_RECORDED_H
#define MEMPROF_QUERY_RECORDED_H

/* SQL: why nothing of an image was recorded; NULL: it was. Files of older versions lack the column: there it is the
 * outer query's. */
#define NOT_RECORDED(process_id)                                                                                       \
    "(SELECT (SELECT not_recorded FROM process asked WHERE asked.process_id = " process_id ") FROM (SELECT NULL AS "   \
    "not_recorded))"

/* SQL: the last image of a process that was recorded, by its first one, out of a table as v_image is; the last one
 * where none was. */
#define LAST_RECORDED(images, first_id)                                                                                \
    "(SELECT image.process_id FROM " images " image WHERE image.first_id = " first_id                                  \
    " ORDER BY " NOT_RECORDED("image.process_id") " IS NOT NULL, image.process_id DESC LIMIT 1)"

/* The same of the first process; and behind FROM process p, where there are the images of one process only. */
#define LAST_RECORDED_FIRST    LAST_RECORDED("v_image", "(SELECT min(process_id) FROM process)")
#define ORDER_BY_LAST_RECORDED " ORDER BY " NOT_RECORDED("p.process_id") " IS NOT NULL, p.process_id DESC LIMIT 1"

#endif
