/* Profiles of pprof from an enemy: packed in each way, with their samples added up by stack. */
#include "import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    return fuzz_import(&import_pprof, data, length);
}
