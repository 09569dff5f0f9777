/* Files of heaptrack from an enemy: packed in each way, with what they tell replayed into accounts. */
#include "import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    return fuzz_import(&import_heaptrack, data, length);
}
