/* A program with cudart, which is linked statically: its start asks the driver for everything it knows of. */
#include <stdio.h>

int cudaGetDeviceCount(int *count);
int cudaMalloc(void **p, size_t size);

int main(void)
{
    int count = -1;
    void *p;
    printf("%d\n", cudaGetDeviceCount(&count));
    return cudaMalloc(&p, 1000) != 0;
}
