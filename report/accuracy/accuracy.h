#pragma once
#include <string>

#include "sim/accuracy/scoring/accuracy.h"

// What `reckon accuracy` prints.
namespace reckon {

/// For people. `worst`: so many of the runs with the largest errors, one a line (0: none).
std::string accuracy_table(const AccuracyReport& report, int worst);
/// `--format json`: the field names of the interface.
std::string accuracy_json(const AccuracyReport& report, int worst);
/// Predicted against measured on logarithmic axes, one dot a run, coloured by source: an SVG that
/// stands for itself.
std::string accuracy_svg(const AccuracyReport& report);

}  // namespace reckon
