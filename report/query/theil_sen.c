#include "theil_sen.h"

#include "../../common/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRED_POINTS = 400 }; /* up to which the slopes of all pairs are listed */

struct points {
    double *place, *value;
    size_t count;
};

double theil_sen_select(double *values, size_t count, size_t place)
{
    size_t low = 0, high = count - 1;
    while (low < high) {
        const double pivot = values[low + (high - low) / 2];
        size_t i = low, k = high + 1; /* k: one behind */
        while (i < k) {
            while (values[i] < pivot)
                i++;
            while (values[k - 1] > pivot)
                k--;
            if (i < k) {
                double other = values[i];
                values[i++] = values[k - 1];
                values[--k] = other;
            }
        }
        if (place < k)
            high = k - 1;
        else if (place >= i)
            low = i;
        else
            break;
    }
    return values[place];
}

static double slope_of_pairs(const struct points *p)
{
    size_t count = 0;
    double *slopes = xcalloc(p->count * p->count / 2, sizeof *slopes);
    for (size_t i = 0; i < p->count; i++)
        for (size_t k = i + 1; k < p->count; k++)
            slopes[count++] = (p->value[k] - p->value[i]) / (p->place[k] - p->place[i]);
    double high = theil_sen_select(slopes, count, count / 2);
    double slope = count % 2 ? high : (theil_sen_select(slopes, count, count / 2 - 1) + high) / 2;
    free(slopes);
    return slope;
}

/* --- many points ------------------------------------------------------------------------------------------------- */

/* The pairs i < k of heights with height[k] <= height[i], while they are sorted; other: room for as many. */
static uint64_t count_falling(long double *heights, long double *other, size_t count)
{
    if (count < 2)
        return 0;
    const size_t half = count / 2;
    uint64_t falling = count_falling(heights, other, half) + count_falling(heights + half, other, count - half);
    size_t left = 0, right = half, out = 0;
    while (left < half || right < count) {
        if (right == count || (left < half && heights[left] < heights[right])) {
            other[out++] = heights[left++];
        } else {
            falling += half - left; /* all that are left on the left are not below it */
            other[out++] = heights[right++];
        }
    }
    memcpy(heights, other, count * sizeof *heights);
    return falling;
}

/* How many of the slopes are at most so much: seen along such a line those pairs do not rise. */
static uint64_t count_at_most(const struct points *p, double slope, long double *room)
{
    for (size_t i = 0; i < p->count; i++)
        room[i] = p->value[i] - (long double)slope * p->place[i];
    return count_falling(room, room + p->count, p->count);
}

/* The least slope that so many are at most: every pair's is between those of neighbours. */
static double find_slope(const struct points *p, uint64_t wanted, double low, double high, long double *room)
{
    if (count_at_most(p, low, room) >= wanted)
        return low;
    for (;;) {
        double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high)
            return high;
        if (count_at_most(p, middle, room) >= wanted)
            high = middle;
        else
            low = middle;
    }
}

static double slope_by_counting(const struct points *p)
{
    const uint64_t pairs = (uint64_t)p->count * (p->count - 1) / 2;
    long double *room = xcalloc(2 * p->count, sizeof *room);
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 1; i < p->count; i++) {
        double slope = (p->value[i] - p->value[i - 1]) / (p->place[i] - p->place[i - 1]);
        low = slope < low ? slope : low;
        high = slope > high ? slope : high;
    }
    double lower = find_slope(p, (pairs + 1) / 2, low, high, room), upper = lower;
    if (pairs % 2 == 0 && count_at_most(p, lower, room) < pairs / 2 + 1)
        upper = find_slope(p, pairs / 2 + 1, lower, high, room);
    free(room);
    return (lower + upper) / 2;
}

double theil_sen_slope(const int64_t *places, const int64_t *values, size_t count)
{
    struct points p = {.count = count < THEIL_SEN_POINTS ? count : THEIL_SEN_POINTS};
    if (count < 2)
        return 0;
    p.place = xcalloc(p.count, sizeof *p.place);
    p.value = xcalloc(p.count, sizeof *p.value);
    for (size_t i = 0; i < p.count; i++) {
        size_t at = p.count == count ? i : (size_t)((uint64_t)(count - 1) * i / (p.count - 1));
        p.place[i] = places ? (double)places[at] : (double)at;
        p.value[i] = (double)values[at];
    }
    double slope = p.count <= PAIRED_POINTS ? slope_of_pairs(&p) : slope_by_counting(&p);
    free(p.place);
    free(p.value);
    return slope;
}
