# What processes call themselves at their end, beside what they were started as; and the script in the heading.
record_ok "$PROGRAMS/title" some arguments
equal "titles" "-,by prctl,server: worker 1" \
    "$(sql "SELECT group_concat(t) FROM (SELECT coalesce(title, '-') AS t FROM process WHERE coalesce(title, '') NOT
    LIKE 'odd%' ORDER BY 1)")"
equal "started as, whoever renamed itself before it forked" 5 \
    "$(value "SELECT count(*) FROM process WHERE command_line LIKE '%title some arguments'")"
"$MEMPROF" info out.db >info.txt
contains "info" info.txt "[server: worker 1] $PROGRAMS/title some arguments"
contains "info" info.txt "[by prctl] $PROGRAMS/title some arguments"
# what setproctitle leaves of the arguments' memory is not the empty arguments of those that fork later
odd="$(printf "odd \033[7m\a\rx")"
equal "of a child of one that was renamed" "$odd $odd" \
    "$(sql "SELECT group_concat(title, ' ') FROM process WHERE title LIKE 'odd%'")"
"$MEMPROF" report out.db >report.txt
"$MEMPROF" report --by process out.db >by.txt
"$MEMPROF" report out.db --html=page.html >/dev/null
contains "by process" by.txt "[server: worker 1] $PROGRAMS/title"
contains "by process" by.txt "[by prctl] $PROGRAMS/title"
equal "by process, its parent has none" 1 "$(grep -c "[0-9]  $PROGRAMS/title" by.txt)"
equal "by process, csv" 1 "$("$MEMPROF" report --by process --csv out.db | grep -c ",server: worker 1,")"
worker=$(value "SELECT pid FROM process WHERE title = 'server: worker 1'")
"$MEMPROF" report --process "$worker" out.db >worker.txt
equal "head" "[server: worker 1] $PROGRAMS/title some arguments" "$(head -n 1 worker.txt)"
"$MEMPROF" report --process "$worker" --json out.db >worker.json
contains "head, json" worker.json '"process_title": "server: worker 1"'
"$MEMPROF" report --by process --json out.db >by.json
contains "by process, json" by.json '"title": "server: worker 1"'
contains "the page" page.html '"title":"server: worker 1"'
contains "a title for terminals" info.txt "[odd \\x1b[7m\\x07\\x0dx] $PROGRAMS/title some arguments"
equal "its child's too" 2 "$(grep -cF '[odd \x1b[7m\x07\x0dx] ' info.txt)"
for file in info.txt report.txt by.txt; do
    equal "$file: control characters" 0 "$(LC_ALL=C tr -d '\n\040-\377' <$file | wc -c)"
done
equal "the page: control characters" 0 "$(LC_ALL=C tr -d '\n\040-\377' <page.html | wc -c)"
"$MEMPROF" info --json out.db >info.json
contains "json" info.json '"title": "server: worker 1"'

# of one that is killed the last that was seen
record_ok "$PROGRAMS/title" killed
equal "killed" "server: worker 2|signal" "$(sql "SELECT title, end_kind FROM process WHERE start_kind = 'fork'")"
record_ok "$PROGRAMS/title" some arguments
worker=$(value "SELECT pid FROM process WHERE title = 'server: worker 1'")

# a recording of before these columns
sqlite3 out.db 'ALTER TABLE process DROP COLUMN title; ALTER TABLE process DROP COLUMN peak_rss_bytes;
    ALTER TABLE process DROP COLUMN peak_rss_sampled'
"$MEMPROF" info out.db >older.txt
contains "older" older.txt "$PROGRAMS/title some arguments"
"$MEMPROF" info --json out.db >older.json
contains "older json" older.json '"title": null'
"$MEMPROF" report out.db >older.txt
contains "older report" older.txt "peak RSS"
"$MEMPROF" report --by process out.db >older.txt
contains "older rows" older.txt "  $PROGRAMS/title some arguments"
"$MEMPROF" report --process "$worker" out.db >older.txt
contains "older head" older.txt "$PROGRAMS/title some arguments"
"$MEMPROF" report out.db --html=older.html >/dev/null
contains "older page" older.html "$PROGRAMS/title some arguments"

echo 'exec true' >job.sh
record sh job.sh 1
"$MEMPROF" report out.db >report.txt
equal "heading" "job.sh: sh job.sh 1" "$(head -n 1 report.txt)"
"$MEMPROF" info out.db >info.txt
equal "info" "program job.sh" "$(head -n 1 info.txt | tr -s ' ')"

# The page's title is what a launcher or a shell ran, where that is one program (of a shell, one that has nearly all);
# and what a loader runs.
cat >hold.py <<'END'
import sys
kept = [bytes(1000 + i) for i in range(int(sys.argv[1]))]
END
title() { # WHAT NAME COMMAND...
    what=$1 name=$2
    shift 2
    record_ok "$@"
    "$MEMPROF" report out.db --html=page.html >page.out
    equal "$what" "$name - memprof" "$(sed -n 's/.*<title>\([^<]*\)<.*/\1/p' page.html)"
}
title "one child" hold.py sh -c 'python3 -u hold.py 3000; true'
title "a launcher" hold.py timeout 60 python3 -u hold.py 1
title "a launcher of a shell" hold.py timeout 60 sh -c 'python3 -u hold.py 3000; true'
title "two children" sh sh -c 'python3 -u hold.py 3000; ls'
"$MEMPROF" report out.db >report.txt
contains "what is live at the end of both" report.txt \
    "Live at the end, of Python where it began to take itself down, by line"
contains "a name that every file has is no next step" report.txt "Next: memprof lines --file hold.py"
echo 'exec python3 -u hold.py 3000' >job.sh
title "a script of the shell's own, whatever it becomes" job.sh sh job.sh
printf '#!/bin/sh\nexec python3 -u hold.py 3000\n' >called
chmod +x called
title "a script that was called" called ./called
title "a program" hold.py python3 -u hold.py 1
loader=/lib64/ld-linux-x86-64.so.2
if [ -x $loader ]; then
    title "a loader" title $loader "$PROGRAMS/title"
    "$MEMPROF" report out.db >report.txt
    equal "a loader: heading" "title: $loader $PROGRAMS/title" "$(head -n 1 report.txt)"
fi
