#include "python.h"

#include "../sys.h"
#include "../unwind/modules.h"
#include "python_layout.h"

#include <pthread.h>

struct python_state python;

/* --- reading --- */

int python_readable(uint64_t at, uint64_t bytes)
{
    if (bytes == 0)
        return 1;
    if (at < 4096 || at >> 47 || bytes > 1ull << 30)
        return 0;
    for (uint64_t page = at & ~4095ull; page < at + bytes; page += 4096)
        if (!memory_readable(page))
            return 0;
    return 1;
}

static int type_is(uint64_t object, const char *name)
{
    if (!is_object(object) || !python_readable(object, 48))
        return 0;
    uint64_t type = word_at(object + python.layout.ob_type);
    if (!is_object(type) || !python_readable(type, 64))
        return 0;
    const char *is = (const char *)word_at(type + python.layout.tp_name);
    unsigned i = 0;
    if (!python_readable((uint64_t)is, 16))
        return 0;
    while (name[i] && name[i] == is[i])
        i++;
    return name[i] == is[i];
}

/* --- the first look --- */

static int text_read(uint64_t object, struct python_text *out)
{
    const struct python_layout *l = &python.layout;
    if (!type_is(object, "str"))
        return 0;
    uint64_t length = word_at(object + l->text_length), data;
    uint32_t state = half_at(object + l->text_state) >> (l->minor >= 14 ? 16 : 2);
    uint32_t kind = state & 7, is_compact = state >> 3 & 1, is_ascii = state >> 4 & 1;
    if ((kind != 1 && kind != 2 && kind != 4) || length > 1u << 20)
        return 0;
    data = is_compact ? object + (is_ascii ? l->ascii_bytes : l->ascii_bytes + l->compact_more) : 0;
    if (!is_compact && python_readable(object, l->ascii_bytes + l->compact_more + 8u))
        data = word_at(object + l->ascii_bytes + l->compact_more);
    if (!python_readable(data, length * kind))
        return 0;
    *out = (struct python_text){(const void *)data, kind, (uint32_t)length};
    return 1;
}

int python_code_read(uint64_t code, struct python_code *out)
{
    const struct python_layout *l = &python.layout;
    if (!type_is(code, "code") || !python_readable(code, l->bytecode ? l->bytecode : 160u))
        return 0;
    uint64_t table = word_at(code + l->table);
    if (!type_is(table, "bytes"))
        return 0;
    uint64_t bytes = word_at(table + l->bytes_size);
    if (bytes > 1u << 26 || !python_readable(table + l->bytes_data, bytes))
        return 0;
    *out = (struct python_code){.minor = l->minor, .first_line = half_at(code + l->first_line)};
    out->table = (struct python_text){(const void *)(table + l->bytes_data), 1, (uint32_t)bytes};
    /* the interpreter's own: what comes after an inlined __init__ */
    if (word_at(code + l->filename) == word_at(code + l->name))
        return 0;
    if (!text_read(word_at(code + l->filename), &out->file) || !text_read(word_at(code + l->name), &out->name))
        return 0;
    if (!l->qualname || !text_read(word_at(code + l->qualname), &out->qualified_name))
        out->qualified_name = out->name;
    return 1;
}

/* The state's frames, each object of them only after the kernel was asked whether it is there. 1: they are what the
 * layout says; 0: not; -1: there are none. */
static int frames_are_sound(uint64_t state)
{
    const struct python_layout *l = &python.layout;
    struct python_code code;
    int found = 0, is_new = l->minor >= 11;
    if (!python_readable(state, 512))
        return 0;
    uint64_t frame = word_at(state + l->frame);
    if (is_new && l->cframe_frame != NOT_THERE) {
        if (!is_object(frame) || !python_readable(frame, 32))
            return frame ? 0 : -1;
        frame = word_at(frame + l->cframe_frame);
    }
    for (unsigned n = 0; frame && n < WIRE_STACK_MAX; n++, frame = word_at(frame + l->previous)) {
        if (!is_object(frame) || !python_readable(frame, 128))
            return 0;
        if (is_new && *(const uint8_t *)(frame + l->owner) >= OWNED_BY_C)
            continue;
        if (!python_code_read(word_at(frame + l->code) & ~7ull, &code))
            return 0;
        if (is_new) {
            uint64_t offset = word_at(frame + l->instruction) - (word_at(frame + l->code) & ~7ull) - l->bytecode;
            if (offset + 16 > 1u << 28)
                return 0;
        }
        found = 1;
    }
    return found ? 1 : -1;
}

/* The key by its value: the layout's place of it differs between versions of 3.12 and later. */
static int find_key(void)
{
    const struct python_layout *l = &python.layout;
    for (uint32_t key = 0; key < 128; key++) {
        uint64_t state = (uint64_t)pthread_getspecific(key), thread, interpreter;
        if (is_object(state) && python_readable(state, 512) && word_at(state + l->thread_id) == this_thread()) {
            interpreter = word_at(state + 16);
            thread = is_object(interpreter) && python_readable(interpreter, 8);
            if (thread && frames_are_sound(state) == 1) {
                python.key = key + 1;
                return 1;
            }
        }
    }
    return 0;
}

static void refuse(void)
{
    __atomic_store_n(&python_loaded, 0, __ATOMIC_RELAXED);
    COUNT(python_unknown);
}

int python_verify(void)
{
    const struct python_layout *l = &python.layout;
    uint64_t tss = word_at(python.runtime + l->tss), state = 0;
    int sound = -1;
    if (python.failures >= FAILURES_MOST)
        return 0;
    if ((uint32_t)tss == 1 && tss >> 32 < 1024)
        state = (uint64_t)pthread_getspecific((pthread_key_t)(tss >> 32));
    if (state)
        sound = is_object(state) && python_readable(state, 512) && word_at(state + l->thread_id) == this_thread()
                    ? frames_are_sound(state)
                    : 0;
    /* where the runtime may have its key elsewhere; now and then, because most threads run no Python */
    if (sound < 1 && l->minor >= 12 && (++python.looks < 64 || python.looks % 64 == 0) && find_key())
        sound = 1;
    if (sound == 0 && __atomic_add_fetch(&python.failures, 1, __ATOMIC_RELAXED) == FAILURES_MOST)
        refuse();
    if (sound == 1) {
        __atomic_store_n(&python_finalizing, (const uint64_t *)(python.runtime + l->finalizing), __ATOMIC_RELAXED);
        __atomic_store_n(&python.is_verified, 1, __ATOMIC_RELEASE);
    }
    return sound == 1;
}

/* --- the end --- */

const uint64_t *python_finalizing;

static int is_in(uint64_t pc, uint64_t start, uint64_t end)
{
    return pc > start && pc <= end; /* a return address may be that behind the last instruction */
}

int python_ends_program(const uint64_t *pcs, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (is_in(pcs[i], python.run_start, python.run_end) || is_in(pcs[i], python.exit_start, python.exit_end))
            return 1;
    return 0;
}
