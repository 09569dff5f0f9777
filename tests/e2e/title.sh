# What processes call themselves at their end, beside what they were started as; and the script in the heading.
record_ok "$PROGRAMS/title" some arguments
equal "titles" "-,by prctl,server: worker 1" \
    "$(sql "SELECT group_concat(t) FROM (SELECT coalesce(title, '-') AS t FROM process ORDER BY 1)")"
equal "started as" 3 "$(value "SELECT count(*) FROM process WHERE command_line LIKE '%title some arguments'")"
"$MEMPROF" info out.db >info.txt
contains "info" info.txt "[server: worker 1] $PROGRAMS/title some arguments"
contains "info" info.txt "[by prctl] $PROGRAMS/title some arguments"
"$MEMPROF" info --json out.db >info.json
contains "json" info.json '"title": "server: worker 1"'

# a recording of before these columns
sqlite3 out.db 'ALTER TABLE process DROP COLUMN title; ALTER TABLE process DROP COLUMN peak_rss_bytes;
    ALTER TABLE process DROP COLUMN peak_rss_sampled'
"$MEMPROF" info out.db >older.txt
contains "older" older.txt "$PROGRAMS/title some arguments"
"$MEMPROF" info --json out.db >older.json
contains "older json" older.json '"title": null'
"$MEMPROF" report out.db >older.txt
contains "older report" older.txt "peak RSS"

echo 'exec true' >job.sh
record sh job.sh 1
"$MEMPROF" report out.db >report.txt
equal "heading" "job.sh: sh job.sh 1" "$(head -n 1 report.txt)"
"$MEMPROF" info out.db >info.txt
equal "info" "program job.sh" "$(head -n 1 info.txt | tr -s ' ')"
