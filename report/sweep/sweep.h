#pragma once
#include <optional>
#include <string>

#include "report/sweep/rows.h"
#include "sim/forecast/forecast.h"

// `reckon simulate --sweep`: one row a point.
namespace reckon {

using SweepPoint = SweepPointOf<Forecast>;
using Sweep = SweepOf<Forecast>;

/// Index of the point with the lowest median, the first of equals; nullopt: none has one.
std::optional<std::size_t> fastest(const Sweep& sweep);
std::optional<std::size_t> cheapest(const Sweep& sweep);

std::string sweep_table(const Sweep& sweep, int width = 100);
std::string sweep_json(const Sweep& sweep);
/// RFC 4180; unknown and infinite are empty.
std::string sweep_csv(const Sweep& sweep);

}  // namespace reckon
