# report --policy: sums and means that follow from the rows, in each form; recordings without a policy, and those of
# versions that had none.
. "$ROOT/tests/report/setup.inc"
"$MEMPROF" report net.db --policy >none.txt
contains 'none' none.txt "There was no policy: 'memprof run --policy FILE' records by one."
equal 'none, in JSON' '[]' "$("$MEMPROF" report net.db --policy --json | tr -d ' \n')"
cp net.db old.db
sqlite3 old.db 'DROP TABLE policy_off; DROP TABLE policy_action; DROP TABLE policy_band'
"$MEMPROF" report old.db --policy >old.txt
cmp none.txt old.txt || fail 'an old file'

# Band 1 twice: 300 - 100, and 80 - 90, which is nothing; then a command that leaves 40 less in use, and fails the
# second and third time. Band 2 never. Band 3, a program's: a callback that measured nothing of a GPU, by what was
# reserved, 1000 - 400; one that nobody took.
sqlite3 net.db "
INSERT INTO policy_band VALUES(1, 'p.txt', NULL, 3, 'host 0-101 idle >= 1 malloc-trim, run x', 0, 900);
INSERT INTO policy_band VALUES(2, 'p.txt', NULL, 4, 'host 99-101 active >= 0 mark', 0, 900);
INSERT INTO policy_band(band_id, process_id, line, text, from_ns) SELECT 3, min(process_id), 1,
    'cuda:0 0-101 active >= 0 callback', 900 FROM process;
INSERT INTO policy_action(action_id, band_id, device_id, mark_id, action, time_ns, begin_ns, end_ns, status,
    before_bytes, after_bytes, reserved_before_bytes, reserved_after_bytes, used_before_bytes, used_after_bytes) VALUES
    (1, 1, 0, 1, 'malloc-trim', 10, 12, 20, 'done', 300, 100, 500, 500, 700, 500),
    (2, 1, 0, 2, 'malloc-trim', 30, 32, 36, 'done', 80, 90, 500, 400, 500, 400),
    (3, 1, 0, 2, 'run x', 31, NULL, NULL, 'status 0', NULL, NULL, 500, 400, 500, 460),
    (6, 1, 0, 5, 'run x', 70, NULL, NULL, 'status 3', NULL, NULL, 500, 400, 500, 500),
    (7, 1, 0, 6, 'run x', 90, NULL, NULL, 'signal 9', NULL, NULL, 500, 400, 500, 500),
    (4, 3, 1, 3, 'callback', 50, 51, 53, 'done', NULL, NULL, 1000, 400, 2000, 1500),
    (5, 3, 1, 4, 'callback', 60, NULL, NULL, 'not taken', NULL, NULL, 400, NULL, 1500, NULL);
INSERT INTO policy_off VALUES(1, 0, 'malloc-trim', 40);"
"$MEMPROF" report net.db --policy --csv | tr -d '\r' | cut -d, -f1-19 | sed 1d >got.csv
cat >want.csv <<'END'
p.txt,3,host,malloc-trim,2,2,0,0,0,200,190,95,500,450,600,450,6,8,40
p.txt,3,host,run x,3,1,2,0,0,40,,,500,400,500,486,,,
p.txt,4,,,0,0,0,0,0,,,,,,,,,,
program,1,cuda:0,callback,2,1,0,0,1,600,,,700,400,1750,1500,2,2,
END
diff want.csv got.csv || fail 'the rows'
"$MEMPROF" report net.db --policy --device cuda:0 --json >gpu.json
equal 'of a GPU' '[("cuda:0", 600), (None, None)]' "$(python3 -c 'import json
print([(r["device"], r["given_back_bytes"]) for r in json.load(open("gpu.json"))][::-1])' | tr "'" '"')"
"$MEMPROF" report net.db --policy >table.txt
contains 'people' table.txt 'never due'
contains 'people' table.txt 'p.txt:3'
bad 2 'goes with' report net.db --policy --by line
bad 2 'covers the whole run' report net.db --policy --at peak
bad 2 'one at a time' report net.db --policy --segments
bad 2 'does not go with' report net.db --policy --during x
