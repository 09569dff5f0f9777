/* The two forms of cuGetProcAddress, and the table of undocumented interfaces, which has none here. */
#include "sim.h"

const void *sim_lookup(const char *name, int version, int wants_per_thread, int *exists);

static CUresult lookup(const char *name, void **out, int version, cuuint64_t flags,
                       CUdriverProcAddressQueryResult *status)
{
    BEGIN_ANY;
    NEED(name && out && version > 0, INVALID_VALUE);
    NEED(flags <= 2, INVALID_VALUE);
    int exists;
    int limit = version < sim_config.version ? version : sim_config.version;
    *out = (void *)sim_lookup(name, limit, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &exists);
    if (status)
        *status = *out     ? CU_GET_PROC_ADDRESS_SUCCESS
                  : exists ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                           : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    /* the second form reports what it did not find through the status alone */
    return *out || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

API cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags)
{
    return lookup(name, out, version, flags, NULL);
}

API cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status)
{
    return lookup(name, out, version, flags, status);
}

API cuGetExportTable(const void **table, const CUuuid *id)
{
    BEGIN_ANY;
    NEED(table && id, INVALID_VALUE);
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
