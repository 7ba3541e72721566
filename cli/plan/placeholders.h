#pragma once
#include <string>
#include <vector>

#include "planner/question.h"
#include "sim/catalog/catalog.h"

namespace reckon::cli {

/// What a file leaves out because `plan.vary` says it, as words of --set that take its place and
/// restrict nothing. Empty where the text cannot be read: the reader tells why.
std::vector<std::string> placeholders_for(const planner::Base& base, const Catalog& catalog);

}  // namespace reckon::cli
