# memprof. `make help` lists the targets; docs/build.md has the details.
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

VERSION := 0.2.0

ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := $(if $(findstring clang,$(CC)),clang++,g++)
endif
# SANITIZE=address,undefined: tools and unit tests in a build directory of their own. The library inside the program is
# never sanitized: it reads other people's stacks and runs below the sanitizers' own malloc.
SANITIZE ?=
# CUDA=0 leaves out the hooks of the CUDA driver. They need no CUDA toolkit.
CUDA ?= 1
BUILD ?= build$(if $(SANITIZE),/sanitize)
# One spelling for one folder, relative below the root, else absolute: kept .d files name the objects by it.
override BUILD := $(or $(shell realpath -m --relative-base=. -- '$(BUILD)'),$(error BUILD='$(BUILD)' names no folder))
OPT ?= -O2
WERROR ?=
PREFIX ?= /usr/local
DESTDIR ?=
bindir = $(PREFIX)/bin
libdir = $(PREFIX)/lib/memprof
incdir = $(PREFIX)/include
mandir = $(PREFIX)/share/man
docdir = $(PREFIX)/share/doc/memprof
# of a header alone: the same for each processor
pkgconfigdir = $(PREFIX)/share/pkgconfig
# Where the Python that belongs to PREFIX, or the system's, looks for modules below PREFIX: Debian's dist-packages. Empty:
# nowhere, and only `memprof run --python-module` and `memprof python-path` lead to the module.
PYTHON ?= $(firstword $(wildcard $(PREFIX)/bin/python3 /usr/bin/python3))
PYTHONDIR ?= $(if $(PYTHON),$(shell '$(PYTHON)' -I -c 'import site, sys; print(next((each for each in site.getsitepackages() if each.startswith(sys.argv[1])), ""))' '$(PREFIX)/lib'))

WARN := -Wall -Wextra $(if $(WERROR),-Werror)
CPPFLAGS += -D_GNU_SOURCE
SAN := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
CFLAGS_ALL = -std=gnu17 $(OPT) -g $(WARN) $(CFLAGS)
TOOL_FLAGS = $(CPPFLAGS) $(CFLAGS_ALL) $(SAN)
# Code inside somebody else's process: nothing exported but hooks, thread-local state reachable without a call, no
# pattern that gcc would turn into a call of the very function being written, no checked copies of libc's (which
# distributions ask for by CPPFLAGS).
PRELOAD_FLAGS = $(CPPFLAGS) $(CFLAGS_ALL) -U_FORTIFY_SOURCE -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-stack-protector \
                -fasynchronous-unwind-tables -fno-builtin-malloc -fno-builtin-calloc \
                $(if $(findstring clang,$(CC)),,-fno-tree-loop-distribute-patterns) -DMEMPROF_CUDA=$(CUDA)
# Callers may have a misaligned stack, which aligned SSE stores do not survive; nothing in there needs such registers.
PRELOAD_ONLY_FLAGS := -mgeneral-regs-only
# symbols_debuginfod.c stands in front of libc's dlopen: from an archive it comes only when asked for
LIBS := -Wl,--undefined=dlopen -ldw -lelf -lsqlite3 -lzstd -lz -liberty -lm -lpthread

# what is made; V=1 shows how
Q = $(if $(V),,@printf '  build %s\n' '$@' && )

# The rooms of docs/design.md: libmemprof.so is made of the first, memprof of the second.
PRELOAD_ROOMS := profiler/preload $(addprefix profiler/preload/,unwind python gpu)
TOOL_ROOMS := common $(addprefix formats/,heaptrack pickle pprof torch_snapshot) $(addprefix profiler/,symbols store account devices attach collect finish import merge outside) \
              $(addprefix report/,print query findings text page export check live) cli
PRELOAD_SRC := $(wildcard $(PRELOAD_ROOMS:%=%/*.c))
ifeq ($(CUDA),0)
PRELOAD_SRC := $(filter-out $(addprefix profiler/preload/gpu/,cuda_%.c hooks_cuda.c dlsym.c),$(PRELOAD_SRC))
endif
# vtab_event.c is also the loadable extension, with what it needs of common/
EVENTS_SRC := report/query/vtab_event.c
EVENTS_DEPS := $(wildcard common/chunk*.c common/packed*.c) common/buf.c common/kind.c common/error.c
TOOL_SRC := $(wildcard $(TOOL_ROOMS:%=%/*.c))
TOOL_OBJ := $(TOOL_SRC:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/embed.o $(BUILD)/obj/schema_image.o
# all of memprof but main(): for memprof itself and for the tests of its parts
LIBTOOL := $(BUILD)/libtool.a
PRELOAD_OBJ := $(PRELOAD_SRC:%.c=$(BUILD)/pic/%.o)
EVENTS_OBJ := $(EVENTS_SRC:%.c=$(BUILD)/ext/%.o) $(EVENTS_DEPS:%.c=$(BUILD)/ext/%.o)
EMBED := common/schema.sql $(wildcard templates/*) $(wildcard profiler/collect/*.py)

AUDIT := $(BUILD)/libmemprof_audit.so
PYTHON_MODULE := $(patsubst python/%,$(BUILD)/python/%,$(wildcard python/memprof/*.py))
PRODUCTS := $(BUILD)/memprof $(BUILD)/libmemprof.so $(AUDIT) $(BUILD)/memprof_events.so $(PYTHON_MODULE)

all: $(PRODUCTS) ## build memprof, libmemprof.so and memprof_events.so (the default)

# --- what is built -------------------------------------------------------------------------------------------------

# Rewritten only when a flag changes, or the folder's name, which the kept .d files have: everything depends on it, so `make CC=clang`
# after `make` rebuilds.
$(BUILD)/flags: FORCE
	@mkdir -p $(BUILD)
	@echo '$(BUILD) $(CC) $(TOOL_FLAGS) $(PRELOAD_FLAGS) $(PRELOAD_ONLY_FLAGS)' | cmp -s - $@ || \
	    echo '$(BUILD) $(CC) $(TOOL_FLAGS) $(PRELOAD_FLAGS) $(PRELOAD_ONLY_FLAGS)' >$@
$(BUILD)/flags.build: FORCE
	@mkdir -p $(BUILD)
	@echo '$(VERSION) $(libdir) $(CUDA)' | cmp -s - $@ || echo '$(VERSION) $(libdir) $(CUDA)' >$@

$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_FLAGS) -MMD -MP -c $< -o $@

# the facts that only the build knows
CONFIG := -DMEMPROF_VERSION='"$(VERSION)"' -DMEMPROF_LIBDIR='"$(libdir)"' -DMEMPROF_CUDA=$(CUDA)
$(BUILD)/obj/common/build.o: common/build.c $(BUILD)/flags $(BUILD)/flags.build
	@mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_FLAGS) $(CONFIG) -MMD -MP -c $< -o $@

$(BUILD)/pic/profiler/preload/version.o: profiler/preload/version.c $(BUILD)/flags $(BUILD)/flags.build
	@mkdir -p $(@D)
	$(Q)$(CC) $(PRELOAD_FLAGS) $(PRELOAD_ONLY_FLAGS) $(CONFIG) -MMD -MP -c $< -o $@

$(BUILD)/pic/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(PRELOAD_FLAGS) $(PRELOAD_ONLY_FLAGS) -MMD -MP -c $< -o $@

$(BUILD)/ext/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -fPIC -DMEMPROF_LOADABLE -MMD -MP -c $< -o $@

$(BUILD)/libmemprof.so: $(PRELOAD_OBJ)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-z,now -Wl,-z,relro -Wl,-z,text -Wl,-z,separate-code -Wl,--no-undefined -o $@ $^

# alone in a namespace of its own: with no library at all, so always optimized: at -O0 compilers call memcpy
$(BUILD)/libmemprof_audit.so: profiler/preload/audit/audit.c profiler/preload/elf_find.h profiler/wire_hooks.def $(BUILD)/flags
	$(Q)$(CC) $(PRELOAD_FLAGS) $(PRELOAD_ONLY_FLAGS) -O2 -shared -nostdlib -Wl,-z,now -Wl,-z,relro -Wl,--no-undefined -o $@ $<

$(BUILD)/memprof_events.so: $(EVENTS_OBJ)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-Bsymbolic -Wl,-z,relro -Wl,--no-undefined -o $@ $^ -lzstd

# beside the library, where `make install` has it, too
$(BUILD)/python/%.py: python/%.py
	@mkdir -p $(@D)
	$(Q)cp $< $@

$(BUILD)/embed.c: tools/embed.sh $(EMBED)
	@mkdir -p $(@D)
	$(Q)sh tools/embed.sh $(EMBED) >$@.tmp && mv $@.tmp $@

$(BUILD)/obj/embed.o: $(BUILD)/embed.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -c $< -o $@

# the empty database of common/schema.sql, made once here
$(BUILD)/schema_image.c: tools/schema_image.c common/schema.sql common/db.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_FLAGS) -o $(BUILD)/make_schema $< -lsqlite3 && $(BUILD)/make_schema common/schema.sql $(BUILD)/schema.db >$@.tmp && mv $@.tmp $@

$(BUILD)/obj/schema_image.o: $(BUILD)/schema_image.c common/schema.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -I. -c $< -o $@

# a thin one, of which the linker says what it takes
$(LIBTOOL): $(filter-out %/cli/main.o,$(TOOL_OBJ)) Makefile
	@rm -f $@
	$(Q)$(AR) rcsDT $@ $(filter %.o,$^)

$(BUILD)/memprof: $(BUILD)/obj/cli/main.o $(LIBTOOL)
	$(Q)$(CC) $(SAN) $(LDFLAGS) -o $@ $^ $(LIBS)

# --- samples, test and bench programs ------------------------------------------------------------------------------

CUDA_SAMPLES := $(wildcard samples/*.cu) samples/vmm.c
SAMPLES := $(patsubst samples/%.c,$(BUILD)/samples/%,$(filter-out $(CUDA_SAMPLES),$(wildcard samples/*.c))) \
           $(patsubst samples/%.cpp,$(BUILD)/samples/%,$(wildcard samples/*.cpp))
# not optimized away: the compiler may remove a malloc whose block it sees freed
SAMPLE_FLAGS := -g $(WARN) -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free
samples: $(SAMPLES) ## build the sample programs

$(BUILD)/samples/%: samples/%.c include/memprof.h include/memprof_view.h
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O1 $(SAMPLE_FLAGS) -Iinclude -o $@ $< -pthread -lm
$(BUILD)/samples/%: samples/%.cpp
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 -O2 $(SAMPLE_FLAGS) -o $@ $<

# -O1 keeps the test programs' calls where their lines are; builtins off keeps gcc from removing malloc/free pairs
TEST_FLAGS := -D_GNU_SOURCE -std=gnu17 -O1 -g -fno-builtin $(WARN) -Iinclude
PROGRAMS := $(patsubst tests/programs/%.c,$(BUILD)/programs/%,$(filter-out tests/programs/lib_%,$(wildcard tests/programs/*.c))) \
            $(patsubst tests/programs/%.cpp,$(BUILD)/programs/%,$(wildcard tests/programs/*.cpp)) \
            $(patsubst tests/programs/%.c,$(BUILD)/programs/%.so,$(wildcard tests/programs/lib_*.c))
programs: $(PROGRAMS) $(BUILD)/accuracy/libcount.so $(BUILD)/programs/lookup $(BUILD)/programs/calls \
          $(BUILD)/programs/make_recording $(BUILD)/programs/many

$(BUILD)/programs/%: tests/programs/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_FLAGS) -o $@ $< -pthread -ldl
$(BUILD)/programs/disowned $(BUILD)/programs/slow_threads: tests/unit/ring_writer.h $(wildcard profiler/wire*)
$(BUILD)/programs/%: tests/programs/%.cpp
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 -O1 -g -fno-builtin -fsized-deallocation $(WARN) -o $@ $< -pthread
$(BUILD)/programs/%.so: tests/programs/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_FLAGS) -fPIC -shared -o $@ $< -pthread -ldl

$(BUILD)/accuracy/libcount.so: tests/accuracy/count.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_FLAGS) -O2 -fPIC -shared -o $@ $< -pthread

$(BUILD)/programs/lookup: tests/symbols/lookup.c $(LIBTOOL)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_FLAGS) -o $@ $^ $(LIBS)

# what several tests of the page record
$(BUILD)/programs/make_recording: tests/page/make_recording.c tests/rows.h $(LIBTOOL)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_FLAGS) -o $@ $(filter-out %.h,$^) $(LIBS)
$(BUILD)/programs/many: tests/page/many.c
	@mkdir -p $(@D)
	$(Q)$(CC) -O1 -g -pthread -o $@ $<

include tests/cuda/cuda.mk
include tests/torch/torch.mk
programs: cuda-stand-ins
samples: cuda-samples
$(BUILD)/programs/calls: tests/cuda/calls.c $(LIBTOOL)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_FLAGS) -o $@ $^ $(LIBS)

BENCH_PROGRAMS := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(filter-out %/hwm.c,$(wildcard tests/bench/*.c))) $(BUILD)/bench/libhwm.so
bench-programs: $(BENCH_PROGRAMS)
# the unwinder alone: with the recorder's idea of modules no rule would be kept, as nothing records
UNWINDER_OBJ := $(filter $(BUILD)/pic/profiler/preload/unwind/% $(BUILD)/pic/profiler/preload/python/%,$(PRELOAD_OBJ))
$(BUILD)/bench/bench_unwind: tests/bench/bench_unwind.c $(UNWINDER_OBJ)
	@mkdir -p $(@D)
	$(Q)$(CC) $(PRELOAD_FLAGS) -o $@ $^ -lunwind -lpthread
$(BUILD)/bench/bench_account: tests/bench/bench_account.c $(LIBTOOL)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_FLAGS) -o $@ $^ $(LIBS)
$(BUILD)/bench/libhwm.so: tests/bench/hwm.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_FLAGS) -fPIC -shared -o $@ $<
$(BUILD)/bench/%: tests/bench/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -std=gnu17 -O2 -g -fno-builtin $(WARN) -o $@ $< -pthread -lm

# A program of tests that has a part of the library is linked again when an object changed that it has, not whenever one
# did: the linker says which these are.
SAY_LINKED := -Wl,-t
KEEP_LINKED = mkdir -p $(BUILD)/linked && sed -n 's|^\($(BUILD)/obj/.*\.o\)$$|$@: \1\n\1:|p' $@.linked >$(BUILD)/linked/$(@F).d && rm $@.linked

# clang only: tests/fuzz/run.sh calls this with sanitizers
FUZZ := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
fuzz-programs: $(FUZZ)
$(BUILD)/fuzz/%: tests/fuzz/%.c $(wildcard tests/fuzz/*.h) $(LIBTOOL)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_FLAGS) -fsanitize=fuzzer -o $@ $(filter-out %.h,$^) $(LIBS)
# the same targets on the kept inputs alone: any compiler, a part of `make check`
REPLAY := $(FUZZ:$(BUILD)/fuzz/%=$(BUILD)/replay/%)
replay: $(REPLAY)
$(BUILD)/replay/%: tests/fuzz/%.c tests/fuzz/replay.c $(wildcard tests/fuzz/*.h) | $(LIBTOOL)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_FLAGS) $(SAY_LINKED) -o $@ $(filter tests/%.c,$^) $(LIBTOOL) $(LIBS) >$@.linked
	@$(KEEP_LINKED)

# Unit tests: cmocka. Those of the library inside the program link its objects, all others the tools' and what tests share:
# the files of tests/unit that are no test_NAME.c; unwind_NAME.c is what those of the unwinder share.
UNIT_PRELOAD := $(wildcard tests/unit/test_unwind*.c tests/unit/test_hook*.c tests/unit/test_preload*.c)
UNIT_TOOL := $(filter-out $(UNIT_PRELOAD),$(wildcard tests/unit/test_*.c))
UNIT_SHARED := $(filter-out tests/unit/test_% tests/unit/unwind_%,$(wildcard tests/unit/*.c))
LIBUNIT := $(BUILD)/libunit.a
UNIT := $(UNIT_TOOL:tests/unit/%.c=$(BUILD)/unit/%) $(if $(SANITIZE),,$(UNIT_PRELOAD:tests/unit/%.c=$(BUILD)/unit/%))
unit: $(UNIT) ## build the unit tests
$(LIBUNIT): $(UNIT_SHARED:%.c=$(BUILD)/obj/%.o)
	@rm -f $@
	$(Q)$(AR) rcsDT $@ $^
$(UNIT_TOOL:tests/unit/%.c=$(BUILD)/unit/%): $(BUILD)/unit/%: $(BUILD)/obj/tests/unit/%.o | $(LIBUNIT) $(LIBTOOL)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SAN) $(SAY_LINKED) -o $@ $< $(LIBUNIT) $(LIBTOOL) -lcmocka -ldl $(LIBS) >$@.linked
	@$(KEEP_LINKED)
$(UNIT_PRELOAD:tests/unit/%.c=$(BUILD)/unit/%): $(BUILD)/unit/%: tests/unit/%.c $(wildcard tests/unit/unwind_*) tests/unwind/libunwind_stack.h $(PRELOAD_OBJ)
	@mkdir -p $(@D)
	$(Q)$(CC) $(PRELOAD_FLAGS) -o $@ $(filter-out %.h,$^) -lcmocka -lunwind -ldl -lpthread

# --- for people ----------------------------------------------------------------------------------------------------

deps: ## install the Debian packages that the build needs (sudo when not root)
	sh tools/deps build
deps-test: ## ... and those that the tests need
	sh tools/deps build test
deps-bench: ## ... and those that the benchmark needs
	sh tools/deps build bench

demo: all $(BUILD)/samples/net ## profile a sample and show what memprof says about it
	sh tools/demo $(BUILD)

check: all samples programs unit unit-sanitized bench-programs ## run all tests
	BUILD='$(BUILD)' CC='$(CC)' CXX='$(CXX)' sh tests/run.sh
check-fast: all samples programs unit unit-sanitized ## the loop: static, unit, report
	BUILD='$(BUILD)' CC='$(CC)' CXX='$(CXX)' CHANGED_ONLY=1 sh tests/run.sh static unit report
check-unit: unit unit-sanitized ## unit tests only, with and without sanitizers
	BUILD='$(BUILD)' sh tests/run.sh unit
check-random: unit unit-sanitized ## unit tests with all of what they do by chance; the others do a part (minutes)
	BUILD='$(BUILD)' RANDOM_ALL=1 sh tests/run.sh unit
check-e2e check-report check-page check-faults check-accuracy check-stress check-static: check-%: all samples programs bench-programs
	BUILD='$(BUILD)' CC='$(CC)' CXX='$(CXX)' sh tests/run.sh $*
check-e2e: ## end-to-end tests: samples, process trees, threads, allocators
check-report: ## reports: exact texts, values, hostile files
check-page: ## the HTML page in headless Chromium
check-faults: ## bad input and faults
check-accuracy: ## counts and bytes against independent counters
check-stress: ## threads, reallocs and forks under load
check-large: all ## the page of 10^8 events (1.5 GB of disk for a while)
	BUILD='$(BUILD)' CC='$(CC)' CXX='$(CXX)' PAGE_ALLOCATIONS=50000000 sh tests/run.sh tests/page/large.sh
check-attach: all programs ## attach and detach under load: redis, nginx, python, 32 threads, memprof killed (minutes)
	BUILD='$(BUILD)' CC='$(CC)' CXX='$(CXX)' sh tests/run.sh tests/attach/*.sh
check-static: ## layers, exported and undefined symbols, warnings of both compilers, layout
unit-sanitized:
	$(if $(SANITIZE),,$(MAKE) SANITIZE=address,undefined BUILD='$(BUILD)/sanitize' unit replay)

fuzz: ## fuzz the readers for FUZZ_SECONDS (600), sanitizers on
	BUILD='$(BUILD)' CC='$(CC)' MAKE='$(MAKE)' sh tests/fuzz/run.sh $(or $(FUZZ_SECONDS),600)
fuzz-keep: ## keep the inputs of the last fuzzing that reach code which no kept one reaches
	BUILD='$(BUILD)' sh tests/fuzz/keep.sh

bench: all bench-programs ## compare with heaptrack on the programs of docs/performance.md
	BUILD='$(BUILD)' CC='$(CC)' sh tests/bench/run.sh
bench-quick: all bench-programs ## the same with one run each
	BUILD='$(BUILD)' CC='$(CC)' RUNS=1 sh tests/bench/run.sh
soak: all bench-programs ## a rotated recording for SECONDS_MOST (3600) or EVENTS (10^9): does anything grow?
	sh tests/bench/soak.sh '$(abspath $(BUILD))/memprof' '$(abspath $(BUILD))'
bench-gate: all bench-programs ## is this tree slower than BASE (HEAD)?
	BUILD='$(BUILD)' CC='$(CC)' sh tests/bench/gate.sh
bench-same: all bench-programs ## do recordings of nine programs say the same as those by BASE (HEAD)?
	BUILD='$(BUILD)' CC='$(CC)' sh tests/bench/same.sh

check-diff-pairs: all ## do the rows of diff add up, over twenty pairs of real programs? (minutes)
	BUILD='$(BUILD)' sh tests/bench/diff_pairs.sh
check-diff-leak: all ## a leak put into redis from Debian's source is the top row of diff, and breaks check
	BUILD='$(BUILD)' CC='$(CC)' sh tests/bench/diff_leak.sh
check-fleet: all ## docs/fleet.md with 1,000 recordings of 5,000 lines in three databases (6 GB of disk for a while; minutes)
	BUILD='$(BUILD)' sh tests/run.sh tests/bench/fleet.sh
check-sample: all $(BUILD)/programs/thinned ## are true values within the errors of a sample, over 1,000 seeds? (10 minutes)
	BUILD='$(BUILD)' sh tests/bench/sample.sh

MAN := $(wildcard docs/man/*.1)
compdir = $(PREFIX)/share/bash-completion/completions
zshdir = $(PREFIX)/share/zsh/site-functions
fishdir = $(PREFIX)/share/fish/vendor_completions.d
man: ## make docs/man anew from the descriptions of the options
	@mkdir -p $(BUILD)
	$(Q)$(CC) -D_GNU_SOURCE $(WARN) -o $(BUILD)/make_man tools/man.c && $(BUILD)/make_man docs/man
install: all ## install under PREFIX (/usr/local), staged in DESTDIR
	install -d '$(DESTDIR)$(bindir)' '$(DESTDIR)$(libdir)' '$(DESTDIR)$(incdir)' '$(DESTDIR)$(docdir)'
	install -m 755 $(BUILD)/memprof '$(DESTDIR)$(bindir)/memprof'
	install -m 644 $(filter %.so,$(PRODUCTS)) '$(DESTDIR)$(libdir)'
	install -d '$(DESTDIR)$(libdir)/python/memprof'
	install -m 644 $(PYTHON_MODULE) '$(DESTDIR)$(libdir)/python/memprof'
	@where='$(PYTHONDIR)'; to="$(DESTDIR)$$where/memprof"; if [ -z "$$where" ]; then :; \
	elif [ -e "$$to" ] && [ ! -e "$$to/_hook.py" ]; then echo "$$to: another package named memprof; left alone"; \
	else echo "install $$to" && install -d "$$to" && install -m 644 $(PYTHON_MODULE) "$$to"; fi
	install -m 644 $(wildcard include/*.h) '$(DESTDIR)$(incdir)'
	install -d '$(DESTDIR)$(pkgconfigdir)'
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' tools/memprof.pc.in >'$(DESTDIR)$(pkgconfigdir)/memprof.pc'
	install -m 644 README.md LICENSE CHANGELOG.md $(wildcard docs/*.md) '$(DESTDIR)$(docdir)'
	install -d '$(DESTDIR)$(mandir)/man1' '$(DESTDIR)$(compdir)' '$(DESTDIR)$(zshdir)' '$(DESTDIR)$(fishdir)'
	install -m 644 $(MAN) '$(DESTDIR)$(mandir)/man1'
	install -m 644 docs/man/memprof.bash '$(DESTDIR)$(compdir)/memprof'
	install -m 644 docs/man/_memprof '$(DESTDIR)$(zshdir)'
	install -m 644 docs/man/memprof.fish '$(DESTDIR)$(fishdir)'
uninstall: ## remove what install put there
	rm -f '$(DESTDIR)$(bindir)/memprof' '$(DESTDIR)$(compdir)/memprof' '$(DESTDIR)$(pkgconfigdir)/memprof.pc'
	rm -f $(foreach h,$(notdir $(wildcard include/*.h)),'$(DESTDIR)$(incdir)/$(h)')
	rm -f '$(DESTDIR)$(zshdir)/_memprof' '$(DESTDIR)$(fishdir)/memprof.fish'
	rm -f $(foreach m,$(notdir $(MAN)),'$(DESTDIR)$(mandir)/man1/$(m)')
	rm -rf '$(DESTDIR)$(libdir)' '$(DESTDIR)$(docdir)'
	@where='$(PYTHONDIR)'; from="$(DESTDIR)$$where/memprof"; \
	if [ -n "$$where" ] && [ -e "$$from/_hook.py" ]; then echo "rm $$from" && rm -rf "$$from"; fi

DIST := $(BUILD)/memprof-$(VERSION).tar.xz
dist: ## the last commit as BUILD/memprof-VERSION.tar.xz
	@mkdir -p $(BUILD)
	sh tools/dist '$(VERSION)' '$(DIST)'
deb: dist ## a Debian package of it in BUILD/deb (debhelper, dh-python)
	sh tools/deb '$(DIST)' '$(BUILD)/deb'
check-deb: deb ## lintian, contents, a fresh Debian: installed, used, purged (lintian, debootstrap, root; minutes)
	BUILD='$(BUILD)' CC='$(CC)' sh tests/run.sh tests/deb/package.sh

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/\1\t\2/p' $(filter-out %.d,$(MAKEFILE_LIST)) | awk -F'\t' '{ printf "  make %-16s %s\n", $$1, $$2 }'
	@echo '  variables: CC=clang WERROR=1 CUDA=0 SANITIZE=address,undefined BUILD=dir PREFIX=dir DESTDIR=dir'

clean: ## remove what was built
	rm -rf $(BUILD)

FORCE:
PHONY_CHECKS := check-e2e check-report check-page check-faults check-accuracy check-stress check-static
.PHONY: all samples programs bench-programs fuzz-programs replay unit unit-sanitized deps deps-test deps-bench demo check check-fast check-unit check-random man \
        $(PHONY_CHECKS) fuzz fuzz-keep bench bench-quick bench-gate bench-same soak check-diff-pairs check-diff-leak check-fleet check-sample install uninstall dist deb check-deb help clean FORCE
-include $(TOOL_OBJ:.o=.d) $(UNIT_SHARED:%.c=$(BUILD)/obj/%.d) $(wildcard $(BUILD)/linked/*.d) $(UNIT_TOOL:%.c=$(BUILD)/obj/%.d) $(PRELOAD_OBJ:.o=.d) $(EVENTS_OBJ:.o=.d)
