#!/bin/sh
# Writes a C file that holds each named file as a NUL-terminated array and its length: a/b-c.css is a_b_c_css[].
set -eu
for file; do
    name=$(printf '%s' "$file" | tr -c 'A-Za-z0-9' '_')
    printf 'extern const char %s[];\nextern const unsigned long %s_length;\n' "$name" "$name"
    printf 'const char %s[] = {' "$name"
    od -An -v -tu1 "$file" |
        awk '{ for (i = 1; i <= NF; i++) printf "%s%d,", ($i > 127 ? "(char)" : ""), $i; printf "\n" }'
    printf '0};\nconst unsigned long %s_length = sizeof %s - 1;\n' "$name" "$name"
done
