#pragma once
#include <string>

#include "planner/fewest.h"

// What `reckon plan --fewest` prints.
namespace reckon {

std::string fewest_table(const planner::Fewest& answer, int width = 100);
std::string fewest_json(const planner::Fewest& answer);

}  // namespace reckon
