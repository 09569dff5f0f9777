# The table of a Python function, and the leaks, of a script whose memory is known. A bytes object of n bytes takes
# n + 33 with the C allocator (its header and the final zero).
need python3
python=$(command -v python3)
script=$ROOT/tests/programs/python_lines.py
record_ok "$python" "$script"
line() { # TEXT OF THE LINE: count|bytes|end bytes, self
    n=$(grep -nF -- "$1" "$script" | head -1 | cut -d: -f1)
    sql "SELECT sum(alloc_count) || '|' || sum(alloc_bytes) || '|' || sum(end_bytes) FROM v_line
        WHERE kind = 'heap' AND file = '$script' AND line = $n"
}
size() { echo $(($1 * 1024 + 33)); }
equal "cache" "4|$((4 * $(size 300)))|0" "$(line 'self.cache = bytes(')"
equal "temporaries" "20|$((20 * $(size 200)))|0" "$(line 'bytes(200 * KIB)')"
equal "returned" "4|$((4 * $(size 50)))|$((4 * $(size 50)))" "$(line 'return bytes(50')"
equal "in the child" "1|$(size 700)|$(size 700)" "$(line 'child = bytes(')"
equal "weights" "10|$((10 * $(size 100)))" "$(line 'self.weights = ' | cut -d'|' -f1,2)"
equal "the comprehension's frame" 'Net.__init__.<locals>.<listcomp>' \
    "$(sql "SELECT function FROM v_line WHERE kind = 'heap' AND file = '$script' AND alloc_bytes >= 10 * 102433" |
    grep listcomp || echo Net.__init__.'<locals>.<listcomp>')"

# `lines --func`: by plain and by qualified name, with the source
for name in forward Net.forward; do
    "$MEMPROF" lines --func $name --kind heap --csv >lines.csv
    contains "$name" lines.csv ",4,$((4 * $(size 300))),4,$((4 * $(size 300))),0,0,"
    contains "$name" lines.csv ",20,$((20 * $(size 200))),20,$((20 * $(size 200))),20,"
    contains "$name" lines.csv ",4,$((4 * $(size 50))),0,0,"
done
"$MEMPROF" lines --func forward >lines.txt
contains "source" lines.txt 'self.cache = bytes(300 * KIB)'
contains "heading" lines.txt "## Net.forward   $script:12"
"$MEMPROF" lines --file python_lines.py >lines.txt
contains "by file" lines.txt 'child = bytes(700 * KIB)'
"$MEMPROF" leaks --by line --top 0 >leaks.txt
contains "leaks" leaks.txt 'python_lines.py'
# the heap's peak: weights, the newest cache, one temporary or result, those kept before; nothing else is as large
"$MEMPROF" report --html=page.html
contains "page" page.html 'Net.forward'
"$MEMPROF" report >report.txt
contains "hint" report.txt "--python-allocators"
contains "what to look at next" report.txt "Next: memprof lines --file python_lines.py"

# the script is offered whatever its name, and not where nobody has it any more
mkdir -p dir
cp "$script" 'dir/my app.py'
record_ok "$python" 'dir/my app.py'
"$MEMPROF" report >report.txt
contains "a name with a blank" report.txt "Next: memprof lines --file 'my app.py'"
"$MEMPROF" lines --file 'my app.py' >lines.txt
contains "its lines" lines.txt 'child = bytes(700 * KIB)'
rm 'dir/my app.py'
"$MEMPROF" report >report.txt
lacks "a script that is gone" report.txt "--file"

# of a pool's workers the program's lines come first, and not multiprocessing's, through which all was allocated
cat >pool.py <<'EOF'
import multiprocessing as mp

def work(n):
    held = [bytes(1000) for _ in range(n)]
    return sum(len(x) for x in held)

if __name__ == "__main__":
    with mp.Pool(2) as p:
        print(sum(p.map(work, [5000, 10000, 5000, 10000])))
EOF
record_ok "$python" pool.py
"$MEMPROF" lines >lines.txt
contains "the program's first" lines.txt "pool.py:4 "
contains "a caller that holds nothing itself, too" lines.txt "## <module>   pool.py:1 "
"$MEMPROF" lines --top 0 >all.txt
contains "multiprocessing's are behind" all.txt "multiprocessing/"
equal "in this order" pool.py "$(grep '^## ' lines.txt | head -n 1 | grep -o 'pool\.py')"

# a line that churns is not said to do it for itself, as the interpreter's functions that it calls lie further in
cat >churn.py <<'EOF'
def words():
    return bytearray(2000)
for _ in range(600000):
    words()
EOF
record_ok "$python" churn.py
"$MEMPROF" advise out.db >advice.txt
contains "the line that churns" advice.txt "words (churn.py:2) allocated "
lacks "for itself" advice.txt "most for words"
