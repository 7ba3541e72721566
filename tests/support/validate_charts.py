"""Validates Vega-Lite specifications against the JSON Schema that Vega-Lite ships.

usage: validate_charts.py SCHEMA FILE   FILE: {"name": specification, ...}; prints "ok NAME" or "bad NAME: why"
"""

import json
import sys

import jsonschema

with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
with open(sys.argv[2], encoding="utf-8") as file:
    charts = json.load(file)
validator = jsonschema.Draft7Validator(schema)
for name, chart in charts.items():
    error = jsonschema.exceptions.best_match(validator.iter_errors(chart))
    print(f"ok {name}" if error is None else f"bad {name}: {error.json_path}: {error.message[:300]}")
