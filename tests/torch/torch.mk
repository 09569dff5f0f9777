# A stand-in for PyTorch's libc10 in each of its signatures, and a caching allocator that reports through it, on the
# simulated driver: tests/e2e/torch_blocks.sh.
C10 := $(BUILD)/torch
C10_PROGRAMS := $(foreach n,1 2 3,$(C10)/$(n)/caching)
C10_CXX = $(CXX) -std=c++17 -O1 -g $(WARN) -DSIGNATURE=$(notdir $*)
$(C10)/%/libc10.so: tests/torch/c10/c10.cpp
	@mkdir -p $(@D)
	$(Q)$(C10_CXX) -fPIC -shared -Wl,-soname,libc10.so -o $@ $<
$(C10)/%/caching: tests/torch/c10/caching.cpp $(C10)/%/libc10.so $(SIM_DRIVERS)
	@mkdir -p $(@D)
	$(Q)$(C10_CXX) -Itests/cuda/include -o $@ $< -L$(@D) -lc10 -L$(SIM)/13000 -lcuda -Wl,-rpath,'$$ORIGIN'
# for the stand-in for torch in tests/torch/fake
$(C10)/%/libblocks.so: tests/torch/c10/blocks.cpp $(C10)/%/libc10.so
	@mkdir -p $(@D)
	$(Q)$(C10_CXX) -fPIC -shared -o $@ $< -L$(@D) -lc10 -Wl,-rpath,'$$ORIGIN'
.SECONDARY: $(C10_PROGRAMS:%/caching=%/libc10.so)
cuda-stand-ins: $(C10_PROGRAMS) $(C10)/3/libblocks.so
