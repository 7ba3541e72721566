"""A file as readers that are not ours see it, as JSON on standard output: to_json.py KIND FILE."""
import json
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree


def of_yaml(text):
    import yaml

    return list(yaml.safe_load_all(text))


def of_xml(text):
    root = ElementTree.fromstring(text.encode("utf-8"))
    return [
        {"tag": e.tag.rpartition("}")[2], "attributes": e.attrib, "text": e.text or ""}
        for e in root.iter()
    ]


class Elements(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append({"tag": tag, "attributes": dict(attrs), "text": ""})

    def handle_data(self, data):
        if self.found:
            self.found[-1]["text"] += data


def of_html(text):
    parser = Elements()
    parser.feed(text)
    parser.close()
    return parser.found


kind, file = sys.argv[1:]
with open(file, encoding="utf-8", newline="") as opened:
    text = opened.read()
json.dump({"yaml": of_yaml, "xml": of_xml, "html": of_html}[kind](text), sys.stdout)
