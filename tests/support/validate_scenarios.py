"""Validates scenarios against the JSON Schema of `reckon schema`, as an editor would.

usage: validate_scenarios.py SCHEMA FILE...   prints "ok FILE" or "bad FILE: why" for each
       validate_scenarios.py SCHEMA --examples  every example in the schema against its own place
"""

import json
import sys

import jsonschema
import yaml


class Loader(yaml.SafeLoader):
    """YAML 1.2's core types: a date is a text, `yes` too; tags are left out of the value."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag.split(":")[-1] in ("int", "float", "null")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", __import__("re").compile(r"^(?:true|false)$"), list("tf")
)
Loader.add_multi_constructor("!", lambda loader, suffix, node: loader.construct_mapping(node, deep=True))


def examples(node, path="$"):
    if isinstance(node, dict):
        for value in node.get("examples", []):
            yield path, node, value
        for key, value in node.items():
            if key != "examples":
                yield from examples(value, f"{path}.{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from examples(value, f"{path}[{index}]")


def main():
    with open(sys.argv[1], encoding="utf-8") as stream:
        schema = json.load(stream)
    jsonschema.Draft7Validator.check_schema(schema)
    if sys.argv[2] == "--examples":
        count = 0
        for path, place, value in examples(schema):
            validator = jsonschema.Draft7Validator({**place, "definitions": schema["definitions"]})
            for error in validator.iter_errors(value):
                print(f"bad {path}: {error.message}")
            count += 1
        print(f"{count} examples")
        return
    validator = jsonschema.Draft7Validator(schema)
    for name in sys.argv[2:]:
        try:
            with open(name, encoding="utf-8") as stream:
                value = yaml.load(stream, Loader)
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            print(f"bad {name}: {error.__class__.__name__}")
            continue
        error = jsonschema.exceptions.best_match(validator.iter_errors(value))
        print(f"ok {name}" if error is None else f"bad {name}: {error.json_path} {error.message[:100]}")


main()
