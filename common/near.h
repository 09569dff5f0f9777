/*
 * near.h: which name somebody who mistyped one may have meant.
 */
#ifndef MEMPROF_NEAR_H
#define MEMPROF_NEAR_H

enum { NEAR_NEVER = 32 };

/* Edit distance in which a swap of neighbours is one step; of names longer than NEAR_NEVER it is that. */
int near_steps(const char *a, const char *b);
/* Whether so many steps away from name is near enough to be a slip. */
int near_is_slip(int steps, const char *name);
/* The candidate nearest to name, when it is near enough; NULL otherwise. */
const char *near_name(const char *name, const char *const candidates[], int count);

#endif
