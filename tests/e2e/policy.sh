# Policies (run --policy, memprof_policy) on the host: a heap with holes is trimmed, by /proc's figures: by memprof's
# thread, where the program polls, in a forked child; callbacks, signals, commands, key frames; what a program may not
# say; and that the thread of ours is in nobody's way.
. "$ROOT/tests/lib.sh"
P=$PROGRAMS/policy
# under FILE MODE: records it under that policy
under() {
    RUN_OPTIONS="--policy $1"
    record "$P" "$2"
    [ $status = 0 ] || { cat run.out run.err; fail "status $status from $2"; }
    sound >sound.txt || { cat sound.txt run.err; fail "$2"; }
}
said() { paste -s -d '|' run.out; }
cat >holes.txt <<'END'
# device used %   when              do
host     0-101    idle >= 56MiB     malloc-trim, callback after
END

echo 'a heap with holes'
RUN_OPTIONS=
"$P" text >alone.out
equal 'without memprof' -1 "$(sort -u alone.out | head -n 1)"
printf 'host 0-101 idle >= 1PiB malloc-trim\n' >never.txt
under never.txt stay
equal 'nothing is due' 'before full, after full' "$(said)"
equal 'bands without an action' 1 "$(value "SELECT count(*) FROM policy_band WHERE band_id NOT IN
    (SELECT band_id FROM policy_action)")"
for mode in holes poll; do
    under holes.txt $mode
    case $mode in
    poll) equal 'polled' 'before full, after trimmed, polled' "$(said)" ;;
    *) equal 'by the thread' 'before full, after trimmed' "$(said)" ;;
    esac
    # 48 MiB are on pages without a block; a trim comes when at most 4 MiB of the 60 are to be freed yet
    at_least 'given back' $((40 << 20)) \
        "$(value "SELECT sum(before_bytes - after_bytes) FROM policy_action WHERE action = 'malloc-trim'")"
    equal 'marks' "$(value 'SELECT count(DISTINCT mark_id) FROM policy_action')" \
        "$(value "SELECT count(*) FROM mark WHERE domain = 'policy' AND is_range = 1 AND end_ns >= start_ns")"
done
"$MEMPROF" report --policy out.db --json >report.json
"$MEMPROF" report --policy out.db >report.txt
equal 'the report' "$(value "SELECT sum(before_bytes - after_bytes) FROM policy_action WHERE action = 'malloc-trim'")" \
    "$(python3 -c 'import json
print(sum(r["given_back_bytes"] for r in json.load(open("report.json")) if r["action"] == "malloc-trim"))')"
contains 'its table' report.txt 'malloc-trim'

echo 'from inside'
RUN_OPTIONS=
record "$P" inside
equal 'a thread that comes later' 'policy 0|before full, after trimmed' "$(said)"
equal 'whose it is' 1 "$(value 'SELECT count(*) FROM policy_band WHERE source IS NULL AND process_id = 1')"

echo 'a forked child'
under holes.txt fork
equal 'its own thread' 'child trimmed|status 0' "$(said)"
at_least 'the child' 1 "$(value "SELECT count(*) FROM policy_action WHERE process_id = 2 AND status = 'done'")"

echo 'callbacks'
printf 'host 0-101 active >= 32MiB callback drop, callback after, mark, keyframe\n' >callback.txt
for mode in callback callback_poll; do
    under callback.txt $mode
    equal $mode 'on 0 0|drop host arg|called yes' "$(said)"
    # of at least the 32 MiB that were live when it was due
    at_least 'given back' $((24 << 20)) \
        "$(value "SELECT max(before_bytes - after_bytes) FROM policy_action WHERE action = 'callback drop'")"
    at_least 'key frames' 1 "$(value "SELECT count(*) FROM keyframe WHERE reason = 'policy'")"
done

echo 'signals and commands'
printf 'host 0-101 active >= 1MiB signal USR1, run echo %%p, %%%%p >>ran\n' >signal.txt
under signal.txt signal
equal 'the program' 'signal yes' "$(said)"
equal 'a command with its PID' "$(value 'SELECT pid FROM process'), %p" "$(head -n 1 ran)"

echo 'a command that fails'
cat >fails.txt <<'END'
host 0-101 active >= 0 run echo >>times; [ $(wc -l <times) -lt 3 ] || echo >enough; exit 3
END
"$MEMPROF" run -q --policy fails.txt -o out.db -- sh -c 'i=0
    until [ -e enough ] || [ $i = 1200 ]; do sleep 0.05; i=$((i + 1)); done' || fail 'a command that fails'
"$MEMPROF" report --policy out.db --csv >report.csv
at_least 'it is said to have failed' 1 "$(python3 -c 'import csv
print(sum(int(r["failed_count"]) for r in csv.DictReader(open("report.csv")) if r["action"].startswith("run")))')"
equal 'and is not done, but for the last ones' 1 "$(python3 -c 'import csv
print(all(int(r["done_count"]) < int(r["times"]) for r in csv.DictReader(open("report.csv"))) + 0)')"

echo 'what a program may not say'
RUN_OPTIONS=
record "$P" text
equal 'refused but for the first and the last' '0|-5|-5|-5|-5|-5|-5|-5 -5 -5|0' "$(said)"
equal 'lines of it' 8 "$(grep -c '^memprof: policy of policy (' run.err)"
[ ! -e owned ] || fail 'it ran a command'
equal 'policies' 2 "$(value 'SELECT count(*) FROM policy_band')"

echo 'a thread in nobody s way'
printf 'host 0-101 active >= 0 callback after\n' >always.txt
under always.txt handlers
equal 'not begun in a signal handler' 'threads 1 2|status 0' "$(said)"
under holes.txt first
equal 'whose first thread ends first' worker "$(said)"
under holes.txt rights
equal 'setuid, which each thread has to answer' 'setuid 0' "$(said)"
"$P" namespace >run.out 2>run.err || :
if [ "$(cat run.out)" = 'namespace 0' ]; then # where users may
    "$MEMPROF" run -q --policy holes.txt -o child.db -- sh -c '"$0" namespace; :' "$P" >run.out
    equal 'a child that enters a user namespace' 'namespace 0' "$(cat run.out)"
    under holes.txt namespaces
    equal 'one that enters it itself, and is trimmed in there' 'namespace 0|before full, after trimmed' "$(said)"
fi

echo 'what is switched off'
cat >off.txt <<'END'
host 0-101 active >= 0 malloc-trim
END
rm -f in
mkfifo in
"$MEMPROF" run --policy off.txt -o out.db -- sh -c 'read x || :' <in >run.out 2>run.err &
runner=$!
exec 3>in
for _ in $(seq 1200); do
    ! grep -q 'switched off' run.err || break
    sleep 0.05
done
exec 3>&-
wait $runner || fail 'sh'
contains 'a line' run.err 'off.txt:1: malloc-trim gave nothing back, 3 times in a row (host); it is switched off'
"$MEMPROF" report --policy out.db --csv >report.csv
at_least 'and in the report' 1 "$(python3 -c 'import csv
print(sum(r["off_ns"] != "" and int(r["times"]) >= 3 for r in csv.DictReader(open("report.csv"))))')"

echo 'files that are none'
cat >bad.txt <<'END'
host 0-101 active >= 0 mark
host 0-101 alive >= 0 mark
gpu 0-101 active >= 0 mark
END
status=0
"$MEMPROF" run --policy bad.txt -o bad.db -- "$P" holes >run.out 2>run.err || status=$?
equal 'status' 2 $status
equal 'a line each' "memprof: bad.txt:2: metric 'alive': expected active, freed, max, idle or reserved
memprof: bad.txt:3: device 'gpu': expected host, cuda:0 or cuda:*" "$(cat run.err)"
[ ! -e bad.db ] && [ ! -s run.out ] || fail 'the program was run'
bad 2 'No such file' run --policy none.txt -- true
: >empty.txt
bad 2 'empty.txt:1: no band' run --policy empty.txt -- true
