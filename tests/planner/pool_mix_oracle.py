"""Solves mixed-integer programs with SciPy's HiGHS: one JSON list in, objectives out (null: none)."""
import json
import sys

import numpy
from scipy.optimize import Bounds, LinearConstraint, milp


def solve(program):
    columns, rows = program["columns"], program["rows"]
    matrix = numpy.zeros((len(rows), len(columns)))
    for r, row in enumerate(rows):
        for column, value in row["entries"]:
            matrix[r, column] += value

    def limit(value, sign):
        return sign * numpy.inf if value is None else value

    constraints = LinearConstraint(
        matrix, [limit(r["low"], -1) for r in rows], [limit(r["high"], 1) for r in rows]
    )
    bounds = Bounds([limit(c["low"], -1) for c in columns], [limit(c["high"], 1) for c in columns])
    result = milp(
        c=[c["cost"] for c in columns],
        integrality=[1 if c["whole"] else 0 for c in columns],
        bounds=bounds,
        constraints=constraints if rows else None,
        options={"mip_rel_gap": 0},
    )
    return result.fun if result.status == 0 else None


with open(sys.argv[1], encoding="utf-8") as file:
    print(json.dumps([solve(program) for program in json.load(file)]))
