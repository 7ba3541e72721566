#pragma once
#include <string>

#include "planner/controls.h"

namespace reckon {

/// `reckon explore --format json`: what a scenario leaves to choose, with the words of --set for
/// each value.
std::string controls_json(const planner::Controls& controls);
/// The same as a table: a line a control.
std::string controls_table(const planner::Controls& controls);

}  // namespace reckon
