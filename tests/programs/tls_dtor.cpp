// Allocations in destructors of thread-local objects and of pthread keys, and after them in atexit handlers:
// 20 threads, each 1 block of 80 bytes in key_destructor and 1 of 90 in Local's destructor, freed there.
#include <cstdlib>
#include <pthread.h>
#include <thread>

static pthread_key_t key;
struct Local {
    int used = 0;
    ~Local();
};
[[gnu::noinline]] static void in_local()
{
    std::free(std::malloc(90));
}
Local::~Local()
{
    in_local();
}
static thread_local Local local;
extern "C" void key_destructor(void *value)
{
    std::free(std::malloc(80));
    long round = (long)value;
    if (round < 3)
        pthread_setspecific(key, (void *)(round + 1)); // runs again: three rounds
}
static void at_exit()
{
    std::free(std::malloc(100));
}

int main()
{
    std::atexit(at_exit);
    pthread_key_create(&key, key_destructor);
    for (int i = 0; i < 20; i++)
        std::thread([] {
            local.used = 1;
            pthread_setspecific(key, (void *)1);
        }).join();
}
