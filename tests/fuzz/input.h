/* input.h: what is left of a fuzzer's input, taken from the front; zeros after its end. */
#ifndef MEMPROF_FUZZ_INPUT_H
#define MEMPROF_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>

struct input {
    const uint8_t *data;
    size_t size;
};

static inline unsigned input_take(struct input *in)
{
    if (!in->size)
        return 0;
    in->size--;
    return *in->data++;
}

#endif
