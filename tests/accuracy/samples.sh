# Every sample and single-process test program against libcount.so in the same process.
for sample in net leak cache churn templates; do
    echo "$sample"
    same_counts "$SAMPLES/$sample"
done
# between threads the order of an allocation and a free at the same instant is not defined, so the peak may differ
ANY_PEAK=1
echo threads
same_counts "$SAMPLES/threads"
for program in hooks jumps stacks early oom tls_dtor threads_many; do
    echo "$program"
    same_counts "$PROGRAMS/$program"
done
