# What the CUDA tests run on, without a GPU and without a toolkit: simulated drivers of several CUDA versions, a stand-in
# runtime library and a stand-in for NVML. Programs find them by LD_LIBRARY_PATH; nothing of this is installed.
SIM := $(BUILD)/cuda
SIM_VERSIONS := 10020 11020 11080 12040 13000
SIM_FLAGS := -D_GNU_SOURCE -std=gnu17 -O1 -g $(WARN) -fPIC -fvisibility=hidden
SIM_OBJ := $(patsubst tests/cuda/driver/%.c,$(SIM)/obj/%.o,$(wildcard tests/cuda/driver/*.c))
SIM_DRIVERS := $(SIM_VERSIONS:%=$(SIM)/%/libcuda.so.1)
# the major version whose name nvcc gives to the runtime library
CUDART := $(SIM)/libcudart.so.13
CUDA_STAND_INS := $(SIM_DRIVERS) $(CUDART) $(SIM)/libnvidia-ml.so.1

$(SIM)/obj/%.o: tests/cuda/driver/%.c tests/cuda/driver/sim.h tests/cuda/driver/state.h tests/cuda/driver/symbols.def tests/cuda/include/cuda_abi.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(SIM_FLAGS) -c $< -o $@
# -Bsymbolic: its own pointers stay its own, whoever preloads functions of the same names
$(SIM_DRIVERS): $(SIM)/%/libcuda.so.1: $(SIM_OBJ) tests/cuda/symbols.awk tests/cuda/driver/symbols.def
	@mkdir -p $(@D)
	@awk -v V=$* -f tests/cuda/symbols.awk tests/cuda/driver/symbols.def >$(@D)/exports.map
	@echo 'extern const int sim_built_version; const int sim_built_version = $*;' >$(@D)/version.c
	$(Q)$(CC) $(SIM_FLAGS) -shared -Wl,-Bsymbolic -Wl,--no-undefined -Wl,-soname,libcuda.so.1 \
	    -Wl,--version-script=$(@D)/exports.map -o $@ $(SIM_OBJ) $(@D)/version.c -pthread
	@ln -sf libcuda.so.1 $(@D)/libcuda.so
$(CUDART): tests/cuda/runtime/cudart.c tests/cuda/include/cuda_runtime.h tests/cuda/include/cuda_abi.h tests/cuda/driver/symbols.def $(BUILD)/flags
	@mkdir -p $(@D)
	@echo '$(@F) { global: cuda*; __cuda*; local: *; };' >$(SIM)/cudart.map
	$(Q)$(CC) $(SIM_FLAGS) -shared -Wl,--no-undefined -Wl,-soname,$(@F) -Wl,--version-script=$(SIM)/cudart.map -o $@ $< -ldl -pthread
	@ln -sf $(@F) $(SIM)/libcudart.so
$(SIM)/libnvidia-ml.so.1: tests/cuda/nvml/nvml.c tests/cuda/driver/state.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(SIM_FLAGS) -shared -Wl,--no-undefined -Wl,-soname,$(@F) -o $@ $<

cuda-stand-ins: $(CUDA_STAND_INS)

# programs that call the driver in every way: tests/e2e/cuda_*.sh
HOOKS := $(BUILD)/cuda/hooks
HOOK_PROGRAMS := $(addprefix $(HOOKS)/,every every_dlsym every_proc lookups host plugin_default.so plugin_runpath.so plugin_linked.so shim.so watch.so life newer/libcuda.so.1)
HOOK_CC = $(CC) -D_GNU_SOURCE -std=gnu17 -O1 -g $(WARN)
$(HOOK_PROGRAMS): $(SIM_DRIVERS) tests/cuda/include/cuda_abi.h tests/cuda/hooks/every.def | $(HOOKS)
$(HOOKS):
	@mkdir -p $@
$(HOOKS)/every: tests/cuda/hooks/every.c
	$(Q)$(HOOK_CC) -o $@ $< -L$(SIM)/13000 -lcuda
$(HOOKS)/every_dlsym: tests/cuda/hooks/every.c
	$(Q)$(HOOK_CC) -DLOOK_UP -o $@ $< -ldl
$(HOOKS)/every_proc: tests/cuda/hooks/every.c
	$(Q)$(HOOK_CC) -DPROC -o $@ $< -ldl
# the same as plugins that a program loads with RTLD_LOCAL: one linked with the driver that looks in RTLD_DEFAULT, one that
# finds the driver by its own RUNPATH only
$(HOOKS)/plugin_default.so: tests/cuda/hooks/every.c
	$(Q)$(HOOK_CC) -DLOOK_UP -DDEFAULT -Dmain=plugin_main -fPIC -shared -Wl,--no-as-needed -o $@ $< -L$(SIM)/13000 -lcuda -ldl
$(HOOKS)/plugin_linked.so: tests/cuda/hooks/every.c
	$(Q)$(HOOK_CC) -Dmain=plugin_main -fPIC -shared -o $@ $< -L$(SIM)/13000 -lcuda
$(HOOKS)/plugin_runpath.so: tests/cuda/hooks/every.c
	$(Q)$(HOOK_CC) -DLOOK_UP -Dmain=plugin_main -fPIC -shared -Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN/../13000' -o $@ $< -ldl
$(HOOKS)/shim.so $(HOOKS)/watch.so: $(HOOKS)/%.so: tests/cuda/hooks/%.c
	$(Q)$(HOOK_CC) -fPIC -shared -o $@ $< -ldl
$(HOOKS)/lookups $(HOOKS)/host $(HOOKS)/life: $(HOOKS)/%: tests/cuda/hooks/%.c
	$(Q)$(HOOK_CC) -o $@ $< -ldl -pthread
$(HOOKS)/newer/libcuda.so.1: tests/cuda/hooks/newer.c
	@mkdir -p $(@D)
	$(Q)$(HOOK_CC) -fPIC -shared -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 -o $@ $<
cuda-stand-ins: $(HOOK_PROGRAMS)

# The CUDA samples: `plain` by the C and C++ compilers with the headers of tests/cuda/include, against the stand-in runtime;
# and, where nvcc is, `shared` and `static` as it links the runtime library. The first two run on the simulated driver;
# all run on a GPU but `plain`, whose kernels are host functions.
NVCC ?= $(or $(shell command -v nvcc 2>/dev/null),$(wildcard /usr/local/cuda/bin/nvcc))
# Where its headers are is asked of nvcc itself: the one on PATH may be a script or a link that stands elsewhere. Without a cuda.h there,
# the toolkit is not used.
CUDA_TOP := $(if $(NVCC),$(shell $(NVCC) --dryrun -c -x cu /dev/null -o /dev/null 2>&1 | sed -n 's/^#\$$ TOP=//p'))
CUDA_INCLUDE := $(patsubst %/cuda.h,%,$(firstword $(if $(CUDA_TOP),$(wildcard $(CUDA_TOP)/include/cuda.h $(CUDA_TOP)/targets/*/include/cuda.h))))
ifneq ($(NVCC),)
ifeq ($(CUDA_INCLUDE),)
$(info cuda samples: $(NVCC) has no cuda.h: not built with nvcc)
override NVCC :=
endif
endif
CUDA_HOST_FLAGS := -g -O1 -Iinclude
CU := $(patsubst samples/%.cu,%,$(wildcard samples/*.cu))
CUDA_PLAIN := $(CU:%=$(SIM)/plain/%) $(SIM)/plain/vmm
CUDA_NVCC := $(if $(NVCC),$(CU:%=$(SIM)/shared/%) $(CU:%=$(SIM)/static/%) $(SIM)/shared/vmm)

$(CU:%=$(SIM)/plain/%): $(SIM)/plain/%: samples/%.cu samples/ledger.h include/memprof.h tests/cuda/include/cuda_runtime.h $(CUDART)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 $(CUDA_HOST_FLAGS) $(WARN) -Itests/cuda/include -o $@ -x c++ $< -x none -L$(SIM) -lcudart -lm
$(SIM)/plain/vmm: samples/vmm.c samples/ledger.h tests/cuda/include/cuda.h $(SIM)/13000/libcuda.so.1
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 $(CUDA_HOST_FLAGS) $(WARN) -Itests/cuda/include -o $@ $< -L$(SIM)/13000 -lcuda
$(CU:%=$(SIM)/shared/%): $(SIM)/shared/%: samples/%.cu samples/ledger.h include/memprof.h
	@mkdir -p $(@D)
	$(Q)$(NVCC) -std=c++17 $(CUDA_HOST_FLAGS) -cudart shared -o $@ $<
$(CU:%=$(SIM)/static/%): $(SIM)/static/%: samples/%.cu samples/ledger.h include/memprof.h
	@mkdir -p $(@D)
	$(Q)$(NVCC) -std=c++17 $(CUDA_HOST_FLAGS) -cudart static -o $@ $<
$(SIM)/shared/vmm: samples/vmm.c samples/ledger.h $(SIM)/13000/libcuda.so.1
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 $(CUDA_HOST_FLAGS) $(WARN) -isystem $(CUDA_INCLUDE) -o $@ $< -L$(SIM)/13000 -lcuda

cuda-samples: $(CUDA_PLAIN) $(CUDA_NVCC)
.PHONY: cuda-stand-ins cuda-samples

# programs of the runtime interface for tests/e2e/cuda_*.sh
CUDA_PROGRAMS := $(SIM)/programs/faults $(SIM)/programs/advise
$(CUDA_PROGRAMS): $(SIM)/programs/%: tests/cuda/%.cpp samples/ledger.h include/memprof.h tests/cuda/include/cuda_runtime.h $(CUDART)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 $(CUDA_HOST_FLAGS) $(WARN) -Iinclude -Itests/cuda/include -o $@ $< -L$(SIM) -lcudart
$(SIM)/programs/random: tests/cuda/random.c samples/ledger.h include/memprof.h tests/cuda/include/cuda_abi.h $(SIM)/13000/libcuda.so.1
	@mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -std=gnu17 $(CUDA_HOST_FLAGS) $(WARN) -o $@ $< -L$(SIM)/13000 -lcuda
cuda-stand-ins: $(CUDA_PROGRAMS) $(SIM)/programs/random

# check-gpu: programs of tests/gpu for a real driver. Those that need a toolkit are built where nvcc is.
GPU := $(BUILD)/gpu
GPU_PROGRAMS := $(GPU)/probe $(GPU)/procaddr $(GPU)/yield $(GPU)/used
GPU_CUDA := $(foreach p,deltas cost,$(GPU)/$(p)-shared $(GPU)/$(p)-static)
CUPTI_INCLUDE ?= $(patsubst %/cupti.h,%,$(firstword $(wildcard $(CUDA_INCLUDE)/cupti.h $(CUDA_INCLUDE)/../extras/CUPTI/include/cupti.h)))
CUPTI_LIB ?= $(patsubst %/,%,$(dir $(firstword $(wildcard $(addprefix $(CUDA_INCLUDE)/../,lib64/libcupti.so extras/CUPTI/lib64/libcupti.so)))))
$(GPU_PROGRAMS): $(GPU)/%: tests/gpu/%.c tests/cuda/driver/symbols.def include/memprof.h
	@mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -std=gnu17 -O1 -g $(WARN) -o $@ $< -ldl
$(GPU)/deltas-shared $(GPU)/cost-shared: $(GPU)/%-shared: tests/gpu/%.cu
	@mkdir -p $(@D)
	$(Q)$(NVCC) -std=c++17 $(CUDA_HOST_FLAGS) -cudart shared -o $@ $<
$(GPU)/deltas-static $(GPU)/cost-static: $(GPU)/%-static: tests/gpu/%.cu
	@mkdir -p $(@D)
	$(Q)$(NVCC) -std=c++17 $(CUDA_HOST_FLAGS) -cudart static -o $@ $<
$(GPU)/cupti: tests/gpu/cupti.cu
	@mkdir -p $(@D)
	$(Q)$(NVCC) -std=c++17 $(CUDA_HOST_FLAGS) -I$(CUPTI_INCLUDE) -o $@ $< -L$(CUPTI_LIB) -lcupti -Xlinker -rpath,$(realpath $(CUPTI_LIB))
# vmm is linked with the driver itself: the same binary for both kinds
$(SIM)/static/vmm: $(SIM)/shared/vmm
	@mkdir -p $(@D)
	@cp $< $@
programs: $(GPU_PROGRAMS)
gpu-programs: $(GPU_PROGRAMS) $(if $(NVCC),$(CUDA_NVCC) $(SIM)/static/vmm $(GPU_CUDA) $(if $(CUPTI_INCLUDE),$(if $(CUPTI_LIB),$(GPU)/cupti)))
# for a machine with a GPU and without memprof's libraries: copy $(BUILD) there and run tests/gpu/run.sh
gpu-libs: all gpu-programs
	@mkdir -p $(GPU)/lib
	ldd $(BUILD)/memprof | awk '/=> \// && $$1 !~ /^lib(c|m|dl|rt|pthread)\.so/ { print $$3 }' | xargs -I{} cp -L {} $(GPU)/lib
check-gpu: all gpu-programs ## what only a GPU can show; skips where there is none
	@BUILD='$(BUILD)' NVCC='$(NVCC)' sh tests/gpu/run.sh
check-cuda: all samples programs ## the tests of CUDA on the simulated driver, a part of check
	BUILD='$(BUILD)' CC='$(CC)' CXX='$(CXX)' sh tests/run.sh $(wildcard tests/e2e/cuda_*.sh tests/e2e/nvtx.sh)
.PHONY: gpu-programs gpu-libs check-gpu check-cuda
