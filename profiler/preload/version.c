/* What a memprof reads that finds this library in a process which runs already (profiler/attach). */
#include "../wire.h"
#include "compiler.h"

extern const struct wire_library memprof_hook_version;
EXPORT_DATA const struct wire_library memprof_hook_version = {WIRE_VERSION, MEMPROF_VERSION};
