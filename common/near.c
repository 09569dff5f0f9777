#include "near.h"

#include <string.h>

int near_steps(const char *a, const char *b)
{
    enum { LONGEST = NEAR_NEVER };
    int n = (int)strlen(a), m = (int)strlen(b);
    int d[LONGEST + 1][LONGEST + 1];
    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (int i = 0; i <= n; i++)
        d[i][0] = i;
    for (int j = 0; j <= m; j++)
        d[0][j] = j;
    for (int i = 1; i <= n; i++) {
        for (int j = 1; j <= m; j++) {
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[n][m];
}

int near_is_slip(int steps, const char *name)
{
    /* a word of three letters is near to any other one: half of it has to stay */
    return steps < 3 && 2 * steps <= (int)strlen(name);
}

const char *near_name(const char *name, const char *const candidates[], int count)
{
    const char *best = NULL;
    int least = NEAR_NEVER;
    for (int i = 0; i < count; i++) {
        int steps = near_steps(name, candidates[i]);
        if (steps < least && near_is_slip(steps, candidates[i])) {
            least = steps;
            best = candidates[i];
        }
    }
    return best;
}
