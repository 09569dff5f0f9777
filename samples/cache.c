/*
 * A server that answers 20,000 requests from 5,000 distinct clients and remembers every answer: a cache without a
 * limit. Its memory grows for as long as there are new clients, then stays.
 *
 * What memprof must show:
 *   growth   5,000 answers of 200 bytes in `remember`, 1,000,000 bytes, all live until the very end.
 *   table    grows by realloc to 64, 128, ... 8,192 slots of 16 bytes: 8 allocations, 261,120 bytes in all, of which
 *            131,072 stay.
 *   requests 20,000 allocations of 64 bytes in `answer`, 15,000 of them temporaries: answered from the cache.
 *   The peak is 1,131,136 bytes: answers, table and one request. Active bytes rise over the first 5,000 requests.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS = 5000, REQUESTS = 20000, ANSWER_BYTES = 200, REQUEST_BYTES = 64 };

struct slot {
    long client;
    char *answer;
};

static struct cache {
    struct slot *slots;
    size_t count, capacity;
} cache;

static char *look_up(long client)
{
    for (size_t i = client; i < cache.count; i++) /* clients are numbered in the order in which they appear */
        if (cache.slots[i].client == client)
            return cache.slots[i].answer;
    return NULL;
}

static char *remember(long client, const char *request)
{
    if (cache.count == cache.capacity) {
        cache.capacity = cache.capacity ? cache.capacity * 2 : 64;
        cache.slots = realloc(cache.slots, cache.capacity * sizeof *cache.slots);
    }
    char *answer = malloc(ANSWER_BYTES);
    snprintf(answer, ANSWER_BYTES, "answer to %s", request);
    cache.slots[cache.count++] = (struct slot){client, answer};
    return answer;
}

static size_t answer(long client)
{
    char *request = malloc(REQUEST_BYTES);
    snprintf(request, REQUEST_BYTES, "client %ld", client);
    char *text = look_up(client);
    if (!text)
        text = remember(client, request);
    size_t length = strlen(text);
    free(request);
    return length;
}

int main(void)
{
    size_t bytes = 0;
    for (long i = 0; i < REQUESTS; i++)
        bytes += answer(i % CLIENTS);
    fprintf(stderr, "%zu bytes answered, %zu answers cached\n", bytes, cache.count);
    for (size_t i = 0; i < cache.count; i++)
        free(cache.slots[i].answer);
    free(cache.slots);
    return 0;
}
