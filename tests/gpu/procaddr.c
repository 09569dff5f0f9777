/*
 * For every row of the driver's table: does cuGetProcAddress give what dlsym gives? Prints "rows N absent N differ N"
 * and each row that differs. A row that the driver has under neither name is absent.
 */
#include "../cuda/include/cuda_abi.h"

#include <dlfcn.h>
#include <stdio.h>

static const struct {
    const char *base;
    int form, version;
    const char *symbol;
} rows[] = {
#define plain                          0
#define per_thread                     2
#define X(base, form, version, symbol) {#base, form, version, #symbol},
#include "../cuda/driver/symbols.def"
};

int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    CUresult (*lookup)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
    CUresult (*init)(unsigned);
    if (!driver)
        return 1;
    *(void **)&lookup = dlsym(driver, "cuGetProcAddress_v2");
    *(void **)&init = dlsym(driver, "cuInit");
    if (!lookup || !init || init(0))
        return 1;
    int count = 0, absent = 0, differ = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++, count++) {
        CUdriverProcAddressQueryResult status;
        void *by_name = dlsym(driver, rows[i].symbol), *by_version = NULL;
        if (lookup(rows[i].base, &by_version, rows[i].version, (cuuint64_t)rows[i].form, &status))
            by_version = NULL;
        if (!by_name && !by_version) {
            absent++;
        } else if (by_name != by_version) {
            differ++;
            printf("differs: %s %d %d: %s\n", rows[i].base, rows[i].version, rows[i].form, rows[i].symbol);
        }
    }
    printf("rows %d absent %d differ %d\n", count, absent, differ);
    return 0;
}
