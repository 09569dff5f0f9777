/* Marks and ranges of memprof.h: 3 instants, 4 ranges of which 2 nest and 1 stays open, and a pop too many. */
#include <memprof.h>
#include <stdlib.h>

int main(void)
{
    memprof_mark("begin");
    memprof_range_push("outer");
    free(malloc(10));
    memprof_range_push("inner");
    free(malloc(20));
    memprof_range_pop();
    memprof_range_push("second \"inner\" <&>");
    memprof_mark("middle");
    memprof_range_pop();
    memprof_range_pop();
    memprof_range_pop();
    memprof_range_push("open");
    memprof_mark("end");
    return 0;
}
