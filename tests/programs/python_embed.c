/*
 * An application that loads libpython (argv[1]) as a plugin would, without its headers. Each allocation has a size that
 * says who made it: bytes(n) is malloc(n + 33).
 *   100000  a function of code run by the main thread
 *   200000  the same in a sub-interpreter, 210000 in the main one again
 *   300000  by a native thread that has taken the GIL
 *   4321    by a native thread that never runs Python, while Python runs in the main thread
 *   500000  malloc after the interpreter has ended; 510000 in one that was started anew, 520000 after dlclose
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static void (*initialize)(int), (*end_interpreter)(void *), (*release)(int);
static int (*finalize)(void), (*run)(const char *, void *), (*ensure)(void);
static void *(*new_interpreter)(void), *(*swap)(void *), *(*save)(void);
static void (*restore)(void *);
static atomic_int stop, made;
static void *volatile keep;

static void *find(void *library, const char *name)
{
    void *p = dlsym(library, name);
    if (!p) {
        fprintf(stderr, "%s is not in the library\n", name);
        exit(1);
    }
    return p;
}

static void find_all(void *library)
{
    *(void **)&initialize = find(library, "Py_InitializeEx");
    *(void **)&finalize = find(library, "Py_FinalizeEx");
    *(void **)&run = find(library, "PyRun_SimpleStringFlags");
    *(void **)&new_interpreter = find(library, "Py_NewInterpreter");
    *(void **)&end_interpreter = find(library, "Py_EndInterpreter");
    *(void **)&swap = find(library, "PyThreadState_Swap");
    *(void **)&save = find(library, "PyEval_SaveThread");
    *(void **)&restore = find(library, "PyEval_RestoreThread");
    *(void **)&ensure = find(library, "PyGILState_Ensure");
    *(void **)&release = find(library, "PyGILState_Release");
}

static void *native(void *unused)
{
    (void)unused;
    while (!stop) {
        keep = malloc(4321);
        free(keep);
        made++;
    }
    return NULL;
}

static void *visitor(void *unused)
{
    (void)unused;
    int state = ensure();
    run("def visitor():\n    return bytes(300000)\nfor i in range(7): visitor()\n", NULL);
    release(state);
    return NULL;
}

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    pthread_t thread, other;
    if (!library)
        return 77;
    find_all(library);
    initialize(0);
    pthread_create(&thread, NULL, native, NULL);
    run("def plain():\n    return bytes(100000)\nfor i in range(5): plain()\n", NULL);
    while (made < 1000)
        run("sum(range(1000))", NULL);
    void *first = swap(NULL);
    swap(first);
    void *sub = new_interpreter();
    run("def inside():\n    return bytes(200000)\nfor i in range(3): inside()\n", NULL);
    end_interpreter(sub);
    swap(first);
    run("def again():\n    return bytes(210000)\nfor i in range(4): again()\n", NULL);
    void *saved = save();
    pthread_create(&other, NULL, visitor, NULL);
    pthread_join(other, NULL);
    restore(saved);
    finalize();
    keep = malloc(500000);
    free(keep);
    initialize(0);
    run("def anew():\n    return bytes(510000)\nfor i in range(2): anew()\n", NULL);
    finalize();
    stop = 1;
    pthread_join(thread, NULL);
    dlclose(library);
    keep = malloc(520000);
    free(keep);
    return 0;
}
