# page_text.py PAGE: the data in a page's scripts, as text: what is packed is unpacked.
import base64, re, sys, zlib

for data in re.findall(r"<script[^>]* id=\"data-[^>]*>(.*?)</script>", open(sys.argv[1], encoding="utf-8").read(), re.S):
    data = data.strip()
    print(data if data.startswith("{") else zlib.decompress(base64.b64decode(data), -15).decode())
