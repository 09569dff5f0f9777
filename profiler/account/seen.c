#include "seen.h"

#include "../../common/array.h"

#include <stdlib.h>

#define PAGES 512u

uint32_t seen_object(struct seen *s, uint64_t a, uint64_t b)
{
    return map_number_or(&s->objects, a, b, (uint32_t)s->objects.count) + 1;
}

int seen_has(const struct seen *s, uint32_t object, uint64_t page)
{
    uint32_t place = map_number(&s->places, object, page / PAGES);
    return place != MAP_NONE && (s->bits[place].words[page % PAGES / 64] >> page % 64 & 1);
}

int seen_again(struct seen *s, uint32_t object, uint64_t page)
{
    if (s->last_object != object || s->last_group != page / PAGES || !s->bits_count) {
        s->last_object = object;
        s->last_group = page / PAGES;
        s->last_place = map_number_or(&s->places, object, page / PAGES, s->bits_count);
        if (s->last_place == s->bits_count)
            (void)ARRAY_ADD(s->bits, s->bits_count, s->bits_capacity);
    }
    uint64_t *word = &s->bits[s->last_place].words[page % PAGES / 64], bit = 1ull << page % 64;
    int is_again = (*word & bit) != 0;
    *word |= bit;
    return is_again;
}

void seen_clear(struct seen *s)
{
    map_close(&s->objects);
    map_close(&s->places);
    free(s->bits);
    *s = (struct seen){0};
}
