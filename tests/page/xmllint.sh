# The page of a real program that builds one large tree: xmllint.
. "$ROOT/tests/page/page.inc"
need xmllint
awk 'BEGIN { print "<r>";
    for (i = 0; i < 20000; i++) printf "<item id=\"%d\"><name>n%d</name><v a=\"%d\">text %d</v></item>\n", i, i % 977,
    i * 7, i; print "</r>" }' >in.xml
record_ok xmllint --noout in.xml
check_page xmllint --events
