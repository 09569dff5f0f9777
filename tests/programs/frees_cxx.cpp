/* Blocks of C++ that end by delete, by delete[] and with their container, in functions of their own. */
#include <cstddef>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))

struct item {
    char text[5000];
};
static item *volatile one;
static char *volatile many;
static std::vector<char> *volatile container;

NOINLINE static void make()
{
    one = new item;
    many = new char[70000];
    container = new std::vector<char>(300000);
}

NOINLINE static void drop_one()
{
    delete one;
}

NOINLINE static void drop_many()
{
    delete[] many;
}

NOINLINE static void drop_container()
{
    delete container;
}

int main()
{
    for (int i = 0; i < 10; i++) {
        make();
        drop_one();
        drop_many();
        drop_container();
    }
    return 0;
}
