# What Python's workers held when they were killed is not what was left by interpreters that took themselves down:
# leaks says so as the report does, and counts it, as it does what one program had when it was killed.
cat >job.py <<'E'
import multiprocessing, time
kept = []
def work(pipe):
    kept.append(bytearray(3_000_000))
    pipe.send(1)
    time.sleep(100)
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    for _ in range(2):
        here, there = context.Pipe()
        worker = context.Process(target=work, args=(there,))
        worker.start()
        here.recv()
        worker.terminate()
        worker.join()
    freed = bytearray(2_000_000)
E
record_ok python3 job.py
equal "killed" 2 "$(value "SELECT count(*) FROM process WHERE end_kind = 'signal'")"
"$MEMPROF" report >report.txt
how=$(grep -o 'live when 2 of [0-9]* processes were killed' report.txt)
[ -n "$how" ] || fail "the report: $(cat report.txt)"
code=0
"$MEMPROF" leaks --error-exitcode 9 >leaks.txt || code=$?
equal "--error-exitcode" 9 $code
grep -q "^L${how#l}.*: 5\.[0-9]* MiB in .*; below, what Python freed as it ended: 1\.[0-9]* MiB in " leaks.txt ||
    fail "as the report has it: $(cat leaks.txt)"
tr '\n' ' ' <leaks.txt >line.txt
grep -q "of this; 5\.[0-9]* MiB in [0-9,]* blocks were $how.*, which --error-exitcode and 'check --max-leak' count" \
    line.txt || fail "the sums: $(cat leaks.txt)"
# two of 3,000,001 B
contains "of workers" leaks.txt "5.72 MiB in 2 blocks, largest 2.86 MiB (host heap), live when processes were killed,"
lacks "no interpreter's end" leaks.txt "Left when Python had taken itself down"
"$MEMPROF" check --max-leak 5M out.db >check.txt && fail "--max-leak: kept"

# a process alone
pid=$(sql "SELECT pid FROM process WHERE end_kind = 'signal' LIMIT 1")
"$MEMPROF" leaks --process "$pid" >leaks.txt
lacks "a worker alone" leaks.txt "taken itself down"
