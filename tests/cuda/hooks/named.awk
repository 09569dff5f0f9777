# Records as calls prints them, with the names that the program told in lines "= NAME VALUE". An address that comes back has the
# next name from the record that gives it out again. What pools hold after a wait is recorded in an order that hangs on their
# addresses: by name here, the last one first.
BEGIN {
    given["ALLOC"] = given["POOL_ALLOC"] = given["VMM_CREATE"] = given["VMM_RESERVE"] = given["POOL"] = 6
    given["GRAPH_ALLOC_NODE"] = given["GRAPH_INSTANTIATE"] = 7
}
$1 == "=" {
    name = $2
    for (i = 3; i < NF; i++)
        name = name $i
    told[$NF, ++count[$NF]] = name
    next
}
{ lines[++n] = $0 }
END {
    for (i = 1; i <= n; i++) {
        $0 = lines[i]
        if ($3 in given && $(given[$3]) in count && now[$(given[$3])] < count[$(given[$3])])
            now[$(given[$3])]++
        for (k = 4; k <= NF; k++)
            if (length($k) > 4 && $k in count)
                $k = told[$k, now[$k] ? now[$k] : 1]
        is_pool = $2 ~ /Synchronize$/ && $3 == "POOL_STATE"
        if (is_pool && held != "" && $6 < held_name) {
            print held
            held = ""
        }
        if (is_pool && held != "") {
            print
            continue
        }
        if (held != "")
            print held
        held = is_pool ? $0 : ""
        held_name = $6
        if (!is_pool)
            print
    }
    if (held != "")
        print held
}
