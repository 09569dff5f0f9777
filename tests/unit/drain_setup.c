#include "drain_setup.h"

#include "../../common/db.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void take(void *arg, const struct event *events, size_t count)
{
    struct setup *s = arg;
    if (s->count + count > s->room) {
        s->room = (s->count + count) * 2;
        s->events = realloc(s->events, s->room * sizeof *s->events);
    }
    memcpy(s->events + s->count, events, count * sizeof *events);
    for (size_t i = s->count ? s->count : 1; i < s->count + count; i++)
        s->disorder += s->events[i].time_ns < s->events[i - 1].time_ns;
    s->count += count;
}

struct setup *setup_begin(int tsc)
{
    struct setup *s = calloc(1, sizeof *s);
    struct error err = {""};
    clock_open(&s->clock, tsc);
    clock_calibrate(&s->clock);
    struct session_options options = {.library = "/lib.so", .depth = 512, .follow = 1, .use_tsc = s->clock.use_tsc};
    assert_int_equal(session_open(&s->session, &options, &err), 0);
    assert_int_equal(store_create(scratch_path("drain.db"), &s->store, &err), 0);
    db_meta_set_text(store_db(s->store), "format", "memprof");
    s->stacks = stacks_open(s->store);
    assert_int_equal(watch_start(&s->watch, &s->session, &s->clock, -1, -1, -1, &err), 0);
    processes_open(&s->processes, &s->session, s->store, &s->clock, s->watch, s->stacks, -1);
    s->drain =
        drain_open(&s->session, s->store, &s->clock, &s->processes, (struct drain_sink){.events = take, .arg = s});
    return s;
}

void setup_end(struct setup *s)
{
    watch_stop(s->watch);
    drain_close(s->drain);
    processes_close(&s->processes);
    stacks_close(s->stacks);
    session_close(&s->session);
    assert_int_equal(store_close(s->store, NULL), 0);
    free(s->events);
    free(s);
    remove(scratch_path("drain.db"));
}

void setup_rounds(struct setup *s, int count)
{
    while (count-- > 0) {
        usleep(100); /* a round gives out what is older than the time that a store needs to arrive */
        drain_round(s->drain);
    }
}

void setup_wait_until(struct setup *s, const char *sql, int64_t value)
{
    for (int i = 0; i < 2000 && db_int(store_db(s->store), sql, -1) != value; i++) {
        drain_round(s->drain);
        usleep(500);
    }
    assert_int_equal(db_int(store_db(s->store), sql, -1), value);
}

const struct event *setup_find_event(const struct setup *s, enum event_op op, uint16_t process_id, size_t *at)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->events[i].op == op && s->events[i].process_id == process_id) {
            if (at)
                *at = i;
            return &s->events[i];
        }
    return NULL;
}
