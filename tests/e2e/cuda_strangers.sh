# What the program passes or links with is none of our business: pointers that the driver refuses, functions of the
# driver's names that are another library's, and a child that is not recorded but whose NVTX tool is the user's own.
cat >null.c <<'END'
#include <stdio.h>
int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuArrayCreate_v2(void **, const void *), cuArray3DCreate_v2(void **, const void *),
    cuMipmappedArrayCreate(void **, const void *, unsigned);
int cuGraphAddMemAllocNode(void **, void *, const void *, unsigned long, void *), cuMemPoolDestroy(void *),
    cuMemPoolCreate(void **, const void *);
int main(void)
{
    void *context, *made;
    int device;
    printf("%d%d%d%d\n", cuInit(0), cuDeviceGet(&device, 0), cuDevicePrimaryCtxRetain(&context, device),
           cuCtxSetCurrent(context));
    printf("%d ", cuArrayCreate_v2(&made, 0));
    printf("%d ", cuArray3DCreate_v2(&made, 0));
    printf("%d ", cuMipmappedArrayCreate(&made, 0, 1));
    printf("%d ", cuGraphAddMemAllocNode(&made, 0, 0, 0, 0));
    printf("%d\n", cuMemPoolDestroy(0));
    return 0;
}
END
cat >mock.c <<'END'
int cuInit(unsigned flags) { return (int)flags; }
int cuMemAlloc_v2(unsigned long *p, unsigned long n) { *p = 4096 + n; return 0; }
int cuGetProcAddress_v2(const char *name, void **out, int version, unsigned long flags, int *status)
{
    (void)name, (void)version, (void)flags, (void)status;
    *out = (void *)cuInit;
    return 7;
}
END
cat >mocked.c <<'END'
#include <stdio.h>
int cuMemAlloc_v2(unsigned long *, unsigned long),
    cuGetProcAddress_v2(const char *, void **, int, unsigned long, int *);
int main(void)
{
    unsigned long p = 0;
    void *f = 0;
    int status, code = cuMemAlloc_v2(&p, 16);
    printf("%d %lu ", code, p);
    printf("%d\n", cuGetProcAddress_v2("cuInit", &f, 12000, 0, &status));
    return 0;
}
END
$CC -o null null.c -L"$BUILD/cuda/13000" -lcuda
$CC -shared -fPIC -o libmock.so mock.c
$CC -o mocked mocked.c -L. -lmock -Wl,-rpath,"$PWD"
LD_LIBRARY_PATH=$BUILD/cuda/13000 ./null >plain || fail "refused pointers, alone"
LD_LIBRARY_PATH=$BUILD/cuda/13000 "$MEMPROF" run -q -o null.db -- ./null >profiled || fail "refused pointers"
equal "refused pointers" "$(cat plain)" "$(cat profiled)"
equal "a stranger's functions" "0 4112 7" "$(./mocked)"
equal "a stranger's functions, profiled" "0 4112 7" "$("$MEMPROF" run -q -o mocked.db -- ./mocked)"
NVTX_INJECTION64_PATH=$PROGRAMS/lib_nvtx_tool.so "$MEMPROF" run -q --no-follow -o parent.db -- sh -c '"$1"; :' sh \
    "$PROGRAMS/nvtx" >out 2>err || fail "not followed"
equal "the user's tool in a child that is not recorded" "tool: 1 marks, 1 pushes, 1 pops, 1 heaps, 1 registrations" \
    "$(cat err)"
