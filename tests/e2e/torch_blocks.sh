# PyTorch's caching allocator reports its blocks through libc10, in each of the function's signatures: active bytes are
# the allocator's own count, reserved bytes the driver's, and libc10 is still called. A stand-in on the simulated
# driver.
LD_LIBRARY_PATH=$BUILD/cuda/13000
SIM_CUDA_DEVICES=2
export LD_LIBRARY_PATH SIM_CUDA_DEVICES
for signature in 1 2 3; do
    for how in plain expandable; do
        program=$BUILD/torch/$signature/caching
        "$program" $how >alone || fail "alone"
        record_ok "$program" $how
        equal "output, signature $signature, $how" "$(cat alone)" "$(cat run.out)"
        # device, blocks, peak, live at the end, peak of the segments: what the program counted
        equal "blocks, signature $signature, $how" "$(grep ^cuda alone)" \
            "$(sql "SELECT device, alloc_count, peak_active_bytes, end_active_bytes, peak_reserved_bytes FROM v_total
            WHERE kind = 'all' AND device LIKE 'cuda:%' ORDER BY device")"
        equal "by the line that asked" "main" \
            "$(sql "SELECT group_concat(DISTINCT function) FROM v_line_total
            WHERE device = 'cuda:0' AND function = 'main' AND alloc_count = 60")"
    done
done
