# memprof yield, restore, state on the simulated driver: what is given back and comes home, who is refused before
# anything is done to him, what becomes of a process where a step fails, hangs or crashes, or somebody ends meanwhile.
export SIM_CUDA_DEVICES=2 SIM_CUDA_BYTES=67108864 SIM_CUDA_CONTEXT_BYTES=16777216 SIM_CUDA_STATE="$PWD/state"
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/cuda/lib.sh"
trap "" PIPE # what is told to a killed one
TARGET=$BUILD/gpu/yield
[ -x "$TARGET" ] || skip "tests/gpu/yield.c is not built"
MIB=1048576

# until TEXT...: the command succeeds
until_ok() {
    for _ in $(seq 1200); do
        ! "$@" || return 0
        sleep 0.05
    done
    fail "never: $* ($(cat said err 2>/dev/null))"
}
pid_of() { sed -n 's/^pid //p' "$1"; }
has_pid() { grep -q '^pid' "$1"; }
# begin: the recorded target; $pid, $runner, and $orders, which it takes
begin() {
    rm -f in said out.db
    mkfifo in
    "$MEMPROF" run -q -o out.db -- "$TARGET" <in >said 2>err &
    runner=$!
    exec 3>in
    until_ok has_pid said
    pid=$(pid_of said) orders=0
}
send() { echo "$@" >&3; orders=$((orders + 1)); }
is_done() { [ "$(grep -c '^done' said)" -ge $orders ]; }
order() { send "$@"; until_ok is_done; }
end() {
    echo "quit 0" >&3 2>/dev/null || true
    exec 3>&-
    wait $runner || fail "the target: $(cat err)"
}
state_is() {
    "$MEMPROF" state "$pid" >state.txt 2>&1 || true
    equal "state" "$pid: $1" "$(head -n 1 state.txt)"
}
gone() { [ ! -e "/proc/$1/exe" ]; }

echo 'given back, used by another one, and home again'
begin
order take $((30 * MIB))
order sum 0
before=$(grep '^sum' said)
state_is running
contains 'what it has' state.txt 'cuda:0: 30.00 MiB of blocks'
"$MEMPROF" yield "$pid" >yield.txt
contains 'what was given back' yield.txt \
    "cuda:0: 46.00 MiB given back (30.00 MiB of blocks, 16.00 MiB of the context) in "
contains 'what to do next' yield.txt "$pid: now in its host memory; 'memprof restore $pid' brings it back"
equal 'lines' 2 "$(wc -l <yield.txt)"
state_is 'given back'
contains 'what it needs' state.txt 'cuda:0: 46.00 MiB to be taken again'
"$MEMPROF" yield "$pid" >again.txt 2>again.err
contains 'twice' again.err 'it was given back already'
send sum 0
mkfifo in2
env SIM_CUDA_CHECKPOINT= "$TARGET" <in2 >said2 &
other=$!
exec 4>in2
until_ok has_pid said2
echo "claim $((40 * MIB))" >&4 # 56 of 64 MiB, with its context
until_ok grep -q done said2
bad 1 "it needs 46.00 MiB of cuda:0, where 8.00 MiB are free: nothing was done" restore "$pid"
state_is 'given back'
equal 'its call waits' 1 "$(grep -c '^sum' said)"
"$MEMPROF" restore --wait "$pid" >restore.txt 2>restore.err &
restorer=$!
until_ok grep -q "where 8.00 MiB are free; waiting for them" restore.err
echo "quit 0" >&4
exec 4>&-
wait $other
wait $restorer || fail "restore --wait: $(cat restore.err)"
contains 'taken again' restore.txt 'cuda:0: 46.00 MiB taken again'
contains 'runs on' restore.txt "$pid: runs on, after "
until_ok is_done
equal 'what lay on the device' "$before $before" "$(grep '^sum' said | paste -sd' ')"
"$MEMPROF" restore "$pid" >again.txt 2>again.err
contains 'restored twice' again.err 'it was not given back'
"$MEMPROF" yield --wait "$pid" >wait.txt 2>wait.err &
waiter=$!
until_ok grep -q 'given back' wait.txt
state_is 'given back'
kill -TERM $waiter
wait $waiter || fail "yield --wait: $(cat wait.err)"
contains 'home again' wait.txt 'runs on, after'
state_is running
end
sound
equal 'ranges' 2 "$(value "SELECT count(*) FROM mark WHERE domain = 'memprof' AND name = 'yielded' AND is_range = 1
    AND end_ns > start_ns AND process_id = 1")"
equal 'active all the time' $((30 * MIB)) "$(column cuda:0 all end_active_bytes)"
"$MEMPROF" report out.db --during 'memprof:yielded' >during.txt
contains 'a window' during.txt 'yielded'
# A look while it was away, as a real driver has its bytes on the process's own pages then. The simulated one always has
# them there, and its highest memory is that of the copies that the program checks: the last look's rows are made it.
sqlite3 out.db "UPDATE resident_scan SET is_peak = scan_id = (SELECT max(scan_id) FROM resident_scan),
    present_bytes = 40000000; INSERT OR REPLACE INTO resident_rest(scan_id, what, resident_bytes, shared_bytes,
    huge_bytes, swapped_bytes) SELECT max(scan_id), 'anonymous', 31457280, 0, 0, 0 FROM resident_scan"
"$MEMPROF" report out.db >away.txt
contains 'before' away.txt "was not tracked, most of it other anonymous memory, such as threads' stacks ("
sqlite3 out.db "UPDATE resident_scan SET time_ns = (SELECT start_ns + 1 FROM mark WHERE name = 'yielded') WHERE is_peak"
"$MEMPROF" report out.db >away.txt
contains 'meanwhile' away.txt "was not tracked, most of it the GPU memory that was given back ("
contains 'until when' away.txt "it lies in the program's own until 'memprof restore'"

echo 'refused before anything is done'
begin
order managed $((2 * MIB))
bad 1 "it has 2.00 MiB of managed memory on cuda:0, which the driver's checkpoint does not carry: nothing" \
    yield "$pid"
state_is running
contains 'managed' state.txt 'cuda:0: 2.00 MiB managed, which cannot be given back'
bad 1 'operation not supported (801); it was unlocked and runs on' yield --force "$pid"
order drop 0
order foreign $((3 * MIB))
bad 1 'it has 3.00 MiB of other processes'"'"' memory open (foreign:0)' yield "$pid"
state_is running
order drop 0
order claim $MIB
order context 0
order claim $MIB
bad 1 'it has 2 CUDA contexts on cuda:0' yield "$pid"
order drop 0
order end 0
order drop 0
SIM_CUDA_DRIVER=610.57.04 bad 1 'driver 610.57.04 is known to crash' yield "$pid"
bad 1 'the memprof that records' yield "$runner"
bad 1 'no such process' yield 4194305
"$TARGET" <in2 >said3 &
stranger=$!
exec 4>in2
until_ok has_pid said3
for command in yield restore state; do
    bad 1 'not recorded; start it with' $command $stranger
done
contains 'what is not known' got.err '--force asks the driver all the same'
"$MEMPROF" yield --force $stranger >forced.txt
contains 'forced' forced.txt 'GPU 0: 16.00 MiB given back in '
equal 'forced state' "$stranger: given back" "$("$MEMPROF" state --force $stranger)"
"$MEMPROF" restore --force $stranger >forced.txt
contains 'forced' forced.txt "$stranger: runs on"
echo "quit 0" >&4
exec 4>&-
wait $stranger
sleep 1000 &
bad 1 'does it use a GPU?' yield --force $!
kill $!
for hostile in '' 0 -1 1x ' 1' 1.0 0x10 99999999999 2147483648 out.db ../1 "1;2" "$(printf '1\n2')"; do
    "$MEMPROF" yield -- "$hostile" >got 2>got.err && fail "'$hostile' was taken" || equal "status of '$hostile'" 2 $?
    contains "'$hostile'" got.err 'expected the PID of a process'
done
bad 2 'expected: memprof yield PID' yield
bad 2 'expected: memprof restore PID' restore 1 2
bad 2 "expected a time from 1ms" yield --timeout 0 "$pid"
bad 2 "expected a time from 1ms" state --timeout soon "$pid"
LD_LIBRARY_PATH=$SIM/12040:$SIM bad 1 'the CUDA driver has no process checkpoints' yield "$pid"
if command -v setpriv >/dev/null && [ "$(id -u)" = 0 ]; then
    cp "$MEMPROF" ./memprof-of-others
    chmod 755 . ./memprof-of-others
    setpriv --reuid 65534 --regid 65534 --clear-groups ./memprof-of-others yield "$pid" >got 2>got.err &&
        fail "another user's" || status=$?
    # where it may not even look into this directory it does not run at all
    [ $status = 126 ] || [ $status = 127 ] || contains "another user's" got.err "another user's process"
fi
state_is running
end

echo 'host memory is short'
SIM_CUDA_BYTES=$((1 << 47)) begin
order claim $((1 << 44))
bad 1 'it has 16.00 TiB on GPUs, which would go to host memory, where ' yield "$pid"
state_is running
end

echo 'what became managed between the look and the lock'
begin
rm -f hold
SIM_CUDA_CHECKPOINT=lock=hold:$PWD/hold "$MEMPROF" yield "$pid" >got 2>got.err &
yielder=$!
until_ok test -e hold
order managed $MIB
rm hold
wait $yielder && fail 'it was given back' || equal 'status' 1 $?
contains 'seen at last' got.err '1.00 MiB of managed memory'
equal 'and unlocked' 1 "$(grep -c '; it was unlocked and runs on$' got.err)"
order drop 0

echo 'two at once'
SIM_CUDA_CHECKPOINT=checkpoint=hold:$PWD/hold "$MEMPROF" yield "$pid" >first.txt 2>first.err &
yielder=$!
until_ok test -e hold
bad 1 "it is locked, by another 'memprof yield' or cuda-checkpoint" yield "$pid"
state_is locked
rm hold
wait $yielder || fail "the first: $(cat first.err)"
contains 'the first one' first.txt '16.00 MiB given back'
"$MEMPROF" restore "$pid" >/dev/null

echo 'who asks is killed'
SIM_CUDA_CHECKPOINT=lock=hold:$PWD/hold "$MEMPROF" yield "$pid" &
yielder=$!
until_ok test -e hold
kill -KILL $yielder
wait $yielder || true
rm hold
is_running() { [ "$("$MEMPROF" state "$pid" | head -n 1)" = "$pid: running" ]; }
until_ok is_running
order sum 0
SIM_CUDA_CHECKPOINT=checkpoint=hold:$PWD/hold "$MEMPROF" yield "$pid" &
yielder=$!
until_ok test -e hold
kill -KILL $yielder
wait $yielder || true
rm hold
is_given() { [ "$("$MEMPROF" state "$pid" | head -n 1)" = "$pid: given back" ]; }
until_ok is_given
"$MEMPROF" restore "$pid" >/dev/null
order sum 0

echo 'its calls do not end'
touch slow
send slow 0
until_ok grep -q slow said
bad 1 'its GPU calls did not end in time, so it runs on' yield --timeout 2s "$pid"
rm slow
until_ok is_done
state_is running

echo 'steps that fail, crash, hang'
fails() { # STEP=HOW TEXT STATE [TIMEOUT]
    SIM_CUDA_CHECKPOINT=$1 bad 1 "$2" yield --timeout "${4:-2s}" "$pid"
    state_is "$3"
}
fails lock=304 'locking it, the driver says: OS call failed or operation not supported on this OS (304);' running
fails lock=crash 'locking it, the driver crashed (signal 11); it runs on' running
fails lock=stuck 'locking it, the driver did not answer in 3.0 s; it runs on' running 1s
fails lock=stuck 'locking it, the driver did not answer in 5.0 s; it runs on' running 3s
fails state=stuck 'asking for its state, the driver did not answer in 2.0 s' running
fails checkpoint=801 'moving its memory to the host, the driver says: operation not supported (801); it was' running
fails checkpoint=crash 'the driver crashed (signal 11); it was unlocked and runs on' running
fails checkpoint=stuck 'the driver did not answer in 2.0 s; it was unlocked and runs on' running
fails checkpoint=800 'operation not permitted (800); root may, or CAP_SYS_PTRACE; it was unlocked' running
fails checkpoint=801,unlock=401 "it is still locked: 'memprof restore $pid' unlocks it" locked
"$MEMPROF" restore "$pid" >/dev/null 2>got.err
contains 'unlocked' got.err 'it was only locked'
order take $MIB
order sum 0
"$MEMPROF" yield "$pid" >yield.txt
contains 'all the same' yield.txt '17.00 MiB given back'
SIM_CUDA_CHECKPOINT=restore=999 bad 1 'its memory is in host memory' restore "$pid"
SIM_CUDA_CHECKPOINT=restore=stuck bad 1 'the driver did not answer in 2.0 s; its memory is in host memory' \
    restore --timeout 2s "$pid"
SIM_CUDA_CHECKPOINT=unlock=stuck bad 1 'unlocking it, the driver did not answer in 2.0 s; it is still locked' \
    restore --timeout 2s "$pid"
state_is locked
"$MEMPROF" restore "$pid" >/dev/null 2>&1
order sum 0
equal 'what lay on the device' 1 "$(grep '^sum' said | tail -n 2 | uniq | wc -l)"
fails checkpoint=failed 'the driver says that it cannot go on: end it' failed
bad 1 'the driver failed at it before' yield "$pid"
bad 1 'the driver failed at it before' restore "$pid"
kill -KILL "$pid"
echo "quit 0" >&3 2>/dev/null || true
exec 3>&-
wait $runner || true

echo 'no room after all'
begin
order take $((30 * MIB))
"$MEMPROF" yield "$pid" >/dev/null
"$TARGET" <in2 >said4 &
other=$!
exec 4>in2
until_ok has_pid said4
echo "claim $((40 * MIB))" >&4
until_ok grep -q done said4
bad 1 'out of memory (2); a driver whose restore once found no room may refuse all later ones' restore --force "$pid"
echo "quit 0" >&4
exec 4>&-
wait $other
bad 1 'OS call failed or operation not supported on this OS (304)' restore "$pid"
kill -KILL "$pid"
echo "quit 0" >&3 2>/dev/null || true
exec 3>&-
wait $runner || true

echo 'the target ends meanwhile'
begin
SIM_CUDA_CHECKPOINT=checkpoint=hold:$PWD/hold "$MEMPROF" yield "$pid" >got 2>got.err &
yielder=$!
until_ok test -e hold
kill -STOP $runner # its parent, which so does not take notice: the driver does not see it end either
kill -KILL "$pid"
until_ok gone "$pid"
rm hold
wait $yielder && fail 'it was given back' || equal 'status' 1 $?
contains 'it says so' got.err '; the process has ended'
kill -CONT $runner
echo "quit 0" >&3 2>/dev/null || true
exec 3>&-
wait $runner || true

echo 'the collector is killed meanwhile'
begin
order take $MIB
SIM_CUDA_CHECKPOINT=checkpoint=hold:$PWD/hold "$MEMPROF" yield "$pid" >got 2>got.err &
yielder=$!
until_ok test -e hold
kill -KILL $runner
wait $runner || true
rm hold
wait $yielder || fail "it was not given back: $(cat got.err)"
contains 'given back' got 'cuda:0: 17.00 MiB given back'
contains 'it says so' got.err 'not noted in the recording'
bad 1 'its recording has ended; what it holds is not known' restore "$pid"
"$MEMPROF" restore --force "$pid" >/dev/null
order sum 0
echo "quit 0" >&3 2>/dev/null || true
exec 3>&-
until_ok gone "$pid"

echo 'a collector that does not answer'
begin
kill -STOP $runner
bad 1 'does not answer' yield "$pid"
kill -CONT $runner
state_is running
end

echo 'by the program itself'
begin
order take $MIB
order sum 0
order yield 0
order restore 0
order sum 0
order managed $MIB
order yield 0
equal 'done, done, refused' 'yield 0 restore 0 yield -5' "$(grep -e '^yield' -e '^restore' said | paste -sd' ')"
contains 'and why' err '1.00 MiB of managed memory'
equal 'what lay on the device' 1 "$(grep '^sum' said | uniq | wc -l)"
end
equal 'a range' 1 "$(value "SELECT count(*) FROM mark WHERE domain = 'memprof' AND end_ns > start_ns")"
equal 'processes that are recorded' 1 "$(value "SELECT count(*) FROM process")"
mkfifo in5
"$TARGET" <in5 >said5 &
plain=$!
exec 4>in5
echo 'yield 0' >&4
echo 'quit 0' >&4
exec 4>&-
wait $plain
contains 'without memprof' said5 'yield -1'

need python3
echo 'by a Python program'
cat >yield.py <<'END'
import ctypes, memprof, subprocess, os
cuda = ctypes.CDLL('libcuda.so.1')
context, address = ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context) and not cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 20))
def state():
    if not memprof.is_recording():
        return 'not recorded'
    environment = dict(os.environ, MEMPROF_SESSION='', LD_PRELOAD='')
    return subprocess.run([os.environ['MEMPROF'], 'state', str(os.getpid())], env=environment, stdout=subprocess.PIPE,
                          encoding='utf-8', close_fds=False).stdout.split('\n')[0].split(': ')[-1]
with memprof.yielded():
    with memprof.yielded(timeout=5):
        print(state())
    print(state())
print(state())
assert not cuda.cuMemAllocManaged(ctypes.byref(address), ctypes.c_size_t(1 << 20), 1)
try:
    with memprof.yielded():
        print('inside')
except memprof.Error as error:
    print('managed memory' in str(error), str(error).startswith(str(os.getpid())))
END
RUN_OPTIONS=--python-module
export PYTHONDONTWRITEBYTECODE=1
record python3 yield.py
[ $status = 0 ] || fail "$(cat run.err)"
equal 'in it, in it, behind it, refused' 'given back|given back|running|True True' "$(paste -sd'|' run.out)"
PYTHONPATH=$("$MEMPROF" python-path) python3 yield.py >plain.out
equal 'without memprof' 'not recorded|not recorded|not recorded|inside' "$(paste -sd'|' plain.out)"
