/*
 * Two producers and two consumers over a queue of 64 places: each block is freed by another thread than allocated it.
 *
 * What memprof must show:
 *
 * - produce: 50,000 allocations of 256 bytes by each of the threads named producer-0 and producer-1, 25,600,000
 *   bytes in all; every one freed; the consumers allocate none.
 * - At most 68 messages live at any instant: the queue's places, and one in each thread's hand.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLACES = 64, PAIRS = 2, EACH = 50000, MESSAGE_BYTES = 256 };

static struct queue {
    pthread_mutex_t lock;
    pthread_cond_t not_full, not_empty;
    char *messages[PLACES];
    int first, count;
} queue = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .not_full = PTHREAD_COND_INITIALIZER, .not_empty = PTHREAD_COND_INITIALIZER};

static void put(char *message)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.count == PLACES)
        pthread_cond_wait(&queue.not_full, &queue.lock);
    queue.messages[(queue.first + queue.count++) % PLACES] = message;
    pthread_cond_signal(&queue.not_empty);
    pthread_mutex_unlock(&queue.lock);
}

static char *take(void)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.count == 0)
        pthread_cond_wait(&queue.not_empty, &queue.lock);
    char *message = queue.messages[queue.first];
    queue.first = (queue.first + 1) % PLACES;
    queue.count--;
    pthread_cond_signal(&queue.not_full);
    pthread_mutex_unlock(&queue.lock);
    return message;
}

static void *produce(void *number)
{
    char name[16];
    snprintf(name, sizeof name, "producer-%ld", (long)number);
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < EACH; i++) {
        char *message = malloc(MESSAGE_BYTES);
        message[0] = (char)i;
        put(message);
    }
    return NULL;
}

static void *consume(void *number)
{
    char name[16];
    snprintf(name, sizeof name, "consumer-%ld", (long)number);
    pthread_setname_np(pthread_self(), name);
    long sum = 0;
    for (int i = 0; i < EACH; i++) {
        char *message = take();
        sum += message[0];
        free(message);
    }
    return (void *)sum;
}

int main(void)
{
    pthread_t threads[2 * PAIRS];
    for (long i = 0; i < PAIRS; i++) {
        pthread_create(&threads[i], NULL, produce, (void *)i);
        pthread_create(&threads[PAIRS + i], NULL, consume, (void *)i);
    }
    for (int i = 0; i < 2 * PAIRS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
