#include "build.h"

const char build_version[] = MEMPROF_VERSION;
const char build_library_dir[] = MEMPROF_LIBDIR;
const int build_has_cuda = MEMPROF_CUDA;
