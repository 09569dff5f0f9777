# Children that begin when their parent, the last process so far, is gone already.
for how in spawn vfork raw; do
    tries=8
    [ $how = raw ] && tries=1
    while [ $tries -gt 0 ]; do
        tries=$((tries - 1))
        record "$PROGRAMS/orphans" $how
        equal "$how: child_work" "7|490|7" "$(by_function child_work | cut -d'|' -f1-3)"
    done
    sound
    equal "$how: the parent" 1 "$(value "SELECT parent_id FROM process WHERE process_id = 2")"
done
