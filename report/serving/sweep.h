#pragma once
#include <optional>
#include <string>

#include "report/sweep/rows.h"
#include "sim/serving/serving.h"

// `reckon simulate --sweep` of a service: one row a point.
namespace reckon {

struct ServingSweep : SweepOf<ServingForecast> {
  std::optional<Expectation> goal;  // of the block, where it has one
};

/// Index of the cheapest point, the first of equals: with a goal of those that hold it and refuse
/// nothing. nullopt: there is none.
std::optional<std::size_t> cheapest(const ServingSweep& sweep);

std::string serving_sweep_table(const ServingSweep& sweep, int width = 100);
std::string serving_sweep_json(const ServingSweep& sweep);
/// RFC 4180; unknown is empty.
std::string serving_sweep_csv(const ServingSweep& sweep);

}  // namespace reckon
