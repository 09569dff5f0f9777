#include "desk.h"

#include "../account/account_figures.h"

#include "../../common/array.h"
#include "../../common/error.h"

#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PUBLISH_NS 1000000u  /* rows are at most so much older than the accounts */
#define ASKED_NS   20000000u /* who announced a SYNC and did not write it by then is not waited for */

struct desk {
    struct wire_desk *wire;
    struct wire_answer *answers; /* one a ring */
    uint32_t ring_count;
    struct account *account;
    const struct device_rows *devices;
    unsigned device_count;            /* that have their type */
    const char *types[ACCOUNT_TYPES]; /* their names; NULL: not used yet */
    uint64_t publish_ns;
    uint32_t asked, answered;
    uint64_t asked_ns; /* when the newest one was seen to be announced */
    struct waiting {
        uint32_t ring, number;
    } * waiting; /* for a commit */
    uint32_t waiting_count, waiting_room;
};

struct desk *desk_open(struct session *session, struct account *account, const struct device_rows *devices)
{
    struct desk *k = xcalloc(1, sizeof *k);
    k->wire = (struct wire_desk *)((char *)session->control + WIRE_DESK_OFFSET);
    k->answers = (struct wire_answer *)((char *)session->control + WIRE_ANSWERS_OFFSET);
    k->ring_count = session->ring_count;
    k->account = account;
    k->devices = devices;
    k->device_count = 1;
    k->types[0] = "";
    return k;
}

void desk_close(struct desk *k)
{
    if (k)
        free(k->waiting);
    free(k);
}

/* --- which devices --- */

static unsigned find_type(const struct desk *k, const char *name)
{
    for (unsigned type = 1; type < ACCOUNT_TYPES; type++)
        if (k->types[type] && !strcmp(k->types[type], name))
            return type;
    return 0;
}

void desk_devices(struct desk *k)
{
    for (; k->device_count < k->devices->count; k->device_count++) {
        const char *name = k->devices->rows[k->device_count].kind;
        unsigned type = find_type(k, name);
        for (unsigned i = 1; !type && i < ACCOUNT_TYPES; i++)
            if (!k->types[i]) {
                k->types[i] = name;
                type = i;
            }
        account_set_type(k->account, k->device_count, type, strcmp(name, "foreign") != 0);
    }
}

static void name_device(const struct desk *k, unsigned device, char name[WIRE_NAME_BYTES])
{
    memset(name, 0, WIRE_NAME_BYTES);
    if (device)
        snprintf(name, WIRE_NAME_BYTES, "%s:%u", k->devices->rows[device].kind, k->devices->rows[device].ordinal);
    else
        memcpy(name, "host", 4);
}

/* 0: there is no such device. */
static int find_figures(struct desk *k, const char *name, uint32_t thread_id, struct account_figures *f)
{
    char other[WIRE_NAME_BYTES];
    desk_devices(k);
    unsigned type = find_type(k, name);
    if (!*name || type) {
        account_figures_type(k->account, type, thread_id, f);
        return 1;
    }
    for (unsigned i = 0; i < k->devices->count; i++) {
        name_device(k, i, other);
        if (strcmp(name, other) != 0)
            continue;
        account_figures_device(k->account, i, thread_id, f);
        return 1;
    }
    return 0;
}

static void write_figures(struct wire_figures *to, const struct account_figures *f)
{
#define X(name, text) __atomic_store_n(&to->name, f->name, __ATOMIC_RELAXED);
#include "../wire_figures.def"
#undef X
}

/* --- answers --- */

static void wake(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void set_answered(struct desk *k, uint32_t count)
{
    k->answered = count;
    __atomic_store_n(&k->wire->answered, count, __ATOMIC_RELAXED);
}

static void answer(struct desk *k, uint32_t ring, uint32_t number)
{
    uint32_t *answered = &k->answers[ring].answered;
    __atomic_store_n(answered, number, __ATOMIC_RELEASE);
    set_answered(k, k->answered + 1);
    wake(answered);
}

void desk_sync(struct desk *k, const struct drain_sync *sync)
{
    struct account_figures figures = {0};
    if (sync->ring >= k->ring_count)
        return;
    if (!k->publish_ns)
        desk_publish(k, PUBLISH_NS); /* who had an answer finds rows, too */
    struct wire_answer *a = &k->answers[sync->ring];
    a->is_known = (uint32_t)find_figures(k, sync->name, sync->thread_id, &figures);
    if (sync->flags & WIRE_SYNC_POLICY && sync->is_refused)
        a->is_known = 0;
    write_figures(&a->figures, &figures);
    if (sync->flags & WIRE_SYNC_COMMIT)
        *ARRAY_ADD(k->waiting, k->waiting_count, k->waiting_room) = (struct waiting){sync->ring, sync->number};
    else
        answer(k, sync->ring, sync->number);
}

int desk_wants_commit(const struct desk *k)
{
    return k->waiting_count != 0;
}

void desk_committed(struct desk *k)
{
    for (uint32_t i = 0; i < k->waiting_count; i++)
        answer(k, k->waiting[i].ring, k->waiting[i].number);
    k->waiting_count = 0;
}

/* --- rows --- */

static void write_row(struct desk *k, unsigned index, const char *name, const struct account_figures *f)
{
    struct wire_row *row = &k->wire->rows[index];
    const uint32_t next = row->version + 1;
    if (!row->name[0])
        strncpy(row->name, name, sizeof row->name);
    write_figures(&row->figures[next & 1], f);
    __atomic_store_n(&row->version, next, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* before the next one's words in the copy that was valid */
}

/* A row keeps its place: devices only come, and a type's row is before its first device's. */
void desk_publish(struct desk *k, uint64_t now_ns)
{
    struct account_figures f;
    char name[WIRE_NAME_BYTES];
    unsigned count = 0, types = 1;
    if (now_ns - k->publish_ns < PUBLISH_NS)
        return;
    k->publish_ns = now_ns;
    desk_devices(k);
    account_figures_type(k->account, 0, 0, &f);
    write_row(k, count++, k->types[0], &f);
    for (unsigned i = 0; i < k->devices->count && count + 2 <= WIRE_FIGURES; i++) {
        if (i && types < ACCOUNT_TYPES && k->types[types] == k->devices->rows[i].kind) {
            account_figures_type(k->account, types, 0, &f);
            write_row(k, count++, k->types[types++], &f);
        }
        account_figures_device(k->account, i, 0, &f);
        name_device(k, i, name);
        write_row(k, count++, name, &f);
    }
    __atomic_store_n(&k->wire->row_count, count, __ATOMIC_RELEASE);
}

static unsigned count_devices(const struct desk *k, const char *type)
{
    unsigned count = 0;
    for (unsigned i = 1; i < k->devices->count; i++)
        count += !strcmp(k->devices->rows[i].kind, type);
    return count;
}

static void write_meta(struct store *store, const char *what, const char *type, uint64_t value)
{
    char key[64];
    snprintf(key, sizeof key, "type_peak_%s:%s", what, type);
    store_meta_int(store, key, (int64_t)value);
}

void desk_write(struct desk *k, struct store *store)
{
    for (unsigned type = 1; type < ACCOUNT_TYPES && k->types[type]; type++) {
        struct account_peaks p = account_type_peaks(k->account, type);
        if (count_devices(k, k->types[type]) < 2)
            continue;
        write_meta(store, "active", k->types[type], p.active_bytes);
        write_meta(store, "active_ns", k->types[type], p.active_ns);
        write_meta(store, "reserved", k->types[type], p.reserved_bytes);
        write_meta(store, "reserved_ns", k->types[type], p.reserved_ns);
    }
}

/* --- naps --- */

int desk_is_asked(struct desk *k, uint64_t now_ns)
{
    uint32_t asked = __atomic_load_n(&k->wire->asked, __ATOMIC_SEQ_CST);
    if (asked != k->asked) {
        k->asked = asked;
        k->asked_ns = now_ns;
    }
    if (k->asked == k->answered)
        return 0;
    if (now_ns - k->asked_ns < ASKED_NS)
        return 1;
    set_answered(k, asked); /* of a program that was killed before it wrote it, or whose words cannot be read */
    return 0;
}

void desk_nap(const struct desk *k, uint64_t nap_ns)
{
    struct timespec timeout = {0, (long)nap_ns};
    syscall(SYS_futex, &k->wire->asked, FUTEX_WAIT, k->asked, &timeout, NULL, 0);
}
