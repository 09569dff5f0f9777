# memprof. `make help` lists the targets.
MAKEFLAGS += --no-builtin-rules
CC ?= gcc
ifeq ($(origin CC),default)
CC = gcc
endif
BUILD ?= build
OPT ?= -O2
WARN = -Wall -Wextra
CPPFLAGS += -D_GNU_SOURCE
CFLAGS_ALL = -std=gnu17 $(OPT) -g $(WARN) $(CFLAGS)
LIBS = -ldw -lelf -lsqlite3 -lzstd -liberty -lm -lpthread

PRELOAD_SRC = $(wildcard profiler/preload/*.c)
TOOL_SRC = $(wildcard common/*.c profiler/collect/*.c report/*.c cli/*.c)
TOOL_OBJ = $(TOOL_SRC:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/embed.o
PRELOAD_OBJ = $(PRELOAD_SRC:%.c=$(BUILD)/pic/%.o)

all: $(BUILD)/memprof $(BUILD)/libmemprof.so

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

$(BUILD)/pic/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-stack-protector -fasynchronous-unwind-tables -fno-builtin-malloc -fno-builtin-calloc -fno-tree-loop-distribute-patterns -MMD -MP -c $< -o $@

$(BUILD)/libmemprof.so: $(PRELOAD_OBJ)
	$(CC) -shared -Wl,-z,now -Wl,-z,relro -Wl,--no-undefined -o $@ $^

$(BUILD)/embed.c: tools/embed.sh common/schema.sql $(wildcard templates/*)
	@mkdir -p $(@D)
	sh tools/embed.sh common/schema.sql $(wildcard templates/*) > $@.tmp && mv $@.tmp $@

$(BUILD)/obj/embed.o: $(BUILD)/embed.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -c $< -o $@

$(BUILD)/memprof: $(TOOL_OBJ)
	$(CC) -o $@ $^ $(LIBS)

clean:
	rm -rf $(BUILD)

.PHONY: all clean
-include $(TOOL_OBJ:.o=.d) $(PRELOAD_OBJ:.o=.d)
