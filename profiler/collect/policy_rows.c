#include "policy_private.h"

#include <stdio.h>
#include <string.h>

static int64_t now_of_run(const struct policies *k)
{
    return clock_ns(k->clock, clock_stamp(k->clock));
}

static void bind_text(sqlite3_stmt *q, int index, const char *text)
{
    if (text)
        sqlite3_bind_text(q, index, text, -1, SQLITE_TRANSIENT);
    else
        sqlite3_bind_null(q, index);
}

void policy_write_bands(struct policies *k, unsigned process_id)
{
    k->first_band_id = k->band_rows + 1;
    for (unsigned i = 0; i < k->policy.count; i++) {
        sqlite3_stmt *q = store_statement(k->store, "INSERT INTO policy_band(band_id, source, process_id, line, text, "
                                                    "from_ns) VALUES(?1, ?2, nullif(?3, 0), ?4, ?5, ?6)");
        k->band_rows++;
        if (!q)
            continue;
        sqlite3_bind_int64(q, 1, k->band_rows);
        bind_text(q, 2, k->source);
        sqlite3_bind_int64(q, 3, process_id);
        sqlite3_bind_int64(q, 4, k->policy.bands[i].line);
        bind_text(q, 5, k->policy.bands[i].text);
        sqlite3_bind_int64(q, 6, now_of_run(k));
        store_step(k->store, q);
    }
}

void policy_end_bands(struct policies *k)
{
    sqlite3_stmt *q = store_statement(k->store, "UPDATE policy_band SET until_ns = ?1 WHERE until_ns IS NULL");
    if (!q)
        return;
    sqlite3_bind_int64(q, 1, now_of_run(k));
    store_step(k->store, q);
}

/* As the policy has it; "callback" is a name of its own. */
static void label(const struct policy_action *a, char name[POLICY_SHOWN_MAX])
{
    const int is_named = a->what == POLICY_CALLBACK && strcmp(a->name, policy_what_names[POLICY_CALLBACK]) != 0;
    const char *more = a->command ? a->command : is_named ? a->name : "";
    snprintf(name, POLICY_SHOWN_MAX, "%s%s%s", policy_what_names[a->what], *more ? " " : "", more);
}

int64_t policy_write_action(struct policies *k, const struct policy_time *t, unsigned action, unsigned process_id,
                            const struct policy_figures *f, const char *status)
{
    char name[POLICY_SHOWN_MAX];
    label(&k->policy.bands[t->band].actions[action], name);
    sqlite3_stmt *q =
        k->action_rows < POLICY_ACTIONS_MAX
            ? store_statement(k->store, "INSERT INTO policy_action(action_id, band_id, device_id, process_id, "
                                        "mark_id, action, time_ns, status, reserved_before_bytes, "
                                        "used_before_bytes) VALUES(?1, ?2, ?3, nullif(?4, 0), ?5, ?6, ?7, ?8, ?9, "
                                        "?10)")
            : NULL;
    if (!q)
        return 0;
    sqlite3_bind_int64(q, 1, ++k->action_rows);
    sqlite3_bind_int64(q, 2, k->first_band_id + t->band);
    sqlite3_bind_int64(q, 3, t->device);
    sqlite3_bind_int64(q, 4, process_id);
    sqlite3_bind_int64(q, 5, t->mark_id);
    bind_text(q, 6, name);
    sqlite3_bind_int64(q, 7, now_of_run(k));
    bind_text(q, 8, status);
    sqlite3_bind_int64(q, 9, (int64_t)f->reserved);
    sqlite3_bind_int64(q, 10, (int64_t)(t->device ? f->used : f->resident));
    store_step(k->store, q);
    return k->action_rows;
}

void policy_write_answer(struct policies *k, int64_t action_id, const struct wire_order *o)
{
    sqlite3_stmt *q = store_statement(k->store, "UPDATE policy_action SET begin_ns = ?2, end_ns = ?3, status = ?4, "
                                                "before_bytes = ?5, after_bytes = ?6 WHERE action_id = ?1");
    const int is_measured = o->before_bytes || o->after_bytes;
    if (!q)
        return;
    sqlite3_bind_int64(q, 1, action_id);
    sqlite3_bind_int64(q, 2, clock_ns(k->clock, o->begin_stamp));
    sqlite3_bind_int64(q, 3, clock_ns(k->clock, o->end_stamp));
    bind_text(q, 4, o->result == WIRE_ORDER_DONE ? "done" : "not possible");
    if (is_measured) {
        sqlite3_bind_int64(q, 5, (int64_t)o->before_bytes);
        sqlite3_bind_int64(q, 6, (int64_t)o->after_bytes);
    } else {
        sqlite3_bind_null(q, 5);
        sqlite3_bind_null(q, 6);
    }
    store_step(k->store, q);
}

void policy_write_status(struct policies *k, int64_t action_id, const char *status)
{
    sqlite3_stmt *q = store_statement(k->store, "UPDATE policy_action SET status = ?2 WHERE action_id = ?1");
    if (!q)
        return;
    sqlite3_bind_int64(q, 1, action_id);
    bind_text(q, 2, status);
    store_step(k->store, q);
}

void policy_write_after(struct policies *k, int64_t action_id, const struct policy_figures *f)
{
    sqlite3_stmt *q = store_statement(k->store, "UPDATE policy_action SET reserved_after_bytes = ?2, used_after_bytes "
                                                "= CASE device_id WHEN 0 THEN ?4 ELSE ?3 END WHERE action_id = ?1");
    if (!q)
        return;
    sqlite3_bind_int64(q, 1, action_id);
    sqlite3_bind_int64(q, 2, (int64_t)f->reserved);
    sqlite3_bind_int64(q, 3, (int64_t)f->used);
    sqlite3_bind_int64(q, 4, (int64_t)f->resident);
    store_step(k->store, q);
}

void policy_write_off(struct policies *k, const struct policy_time *t, unsigned action)
{
    char name[POLICY_SHOWN_MAX];
    label(&k->policy.bands[t->band].actions[action], name);
    sqlite3_stmt *q =
        store_statement(k->store, "INSERT INTO policy_off(band_id, device_id, action, time_ns) VALUES(?1, "
                                  "?2, ?3, ?4)");
    if (!q)
        return;
    sqlite3_bind_int64(q, 1, k->first_band_id + t->band);
    sqlite3_bind_int64(q, 2, t->device);
    bind_text(q, 3, name);
    sqlite3_bind_int64(q, 4, now_of_run(k));
    store_step(k->store, q);
}
