/* damaged: writes into a block that it has freed, so that glibc's list of free chunks leads nowhere, and leaves the
 * heap alone from then on but for sizes that do not come from that list. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    void *blocks[8];
    for (int i = 0; i < 8; i++)
        blocks[i] = malloc(40);
    for (int i = 0; i < 8; i++) /* seven stay with the thread, the eighth goes to the arena's list */
        free(blocks[i]);
    void *volatile *last = (void *volatile *)blocks[7];
    *last = (void *)0x1234567;
    usleep(300000); /* long after the last look at the heap: another is due */
    for (int i = 0; i < 10; i++)
        free(malloc(200));
    return 4;
}
