#include "pickle_private.h"

#include "../../common/array.h"

#include <stdlib.h>
#include <string.h>

static int text_intern(struct pickle *p, const char *data, size_t length, struct pickle_value *value, struct error *err)
{
    uint32_t *slot = text_map_slot(&p->text_map, data, length);
    if (!*slot) {
        p->text_bytes += length + sizeof(struct pickle_kept_text);
        if (p->text_count == PICKLE_INDEX_MAX || p->text_bytes > PICKLE_TEXTS_MAX)
            return pickle_too_much(p, err, "more text than a memory snapshot has");
        *ARRAY_ADD(p->texts, p->text_count, p->text_capacity) =
            (struct pickle_kept_text){text_map_key(slot), (uint32_t)length};
        *slot = p->text_count;
    }
    *value = pickle_make(PICKLE_TEXT, *slot - 1);
    return 0;
}

/* length bytes of the file as a text; larger than the buffer, through scratch. */
int pickle_text_read(struct pickle *p, uint64_t length, struct pickle_value *value, struct error *err)
{
    if (length > PICKLE_TEXT_MAX)
        return pickle_too_much(p, err, "a text of more than 16 MiB");
    if (length <= PICKLE_BUFFER_BYTES) {
        const uint8_t *data = pickle_take(p, length);
        return data ? text_intern(p, (const char *)data, length, value, err) : pickle_truncated(p, err);
    }
    ARRAY_ROOM(p->scratch, length, p->scratch_capacity);
    for (size_t done = 0; done < length;) {
        size_t part = length - done < PICKLE_BUFFER_BYTES ? length - done : PICKLE_BUFFER_BYTES;
        const uint8_t *data = pickle_take(p, part);
        if (!data)
            return pickle_truncated(p, err);
        memcpy(p->scratch + done, data, part);
        done += part;
    }
    return text_intern(p, p->scratch, length, value, err);
}

const char *pickle_text(const struct pickle *p, struct pickle_value v, size_t *length)
{
    const struct pickle_kept_text *t = &p->texts[pickle_index(v)];
    if (length)
        *length = t->length;
    return t->data;
}

void pickle_texts_free(struct pickle *p)
{
    text_map_close(&p->text_map);
    free(p->texts);
    free(p->scratch);
}
