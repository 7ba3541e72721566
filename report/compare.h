#pragma once
#include <span>
#include <string>

#include "sim/forecast/compare.h"

// `reckon compare`. `names`: of the candidates, in their order.
namespace reckon {

/// A, B, ... Z, then 27, 28, ...
std::string candidate_letter(std::size_t k);

std::string compare_table(const CandidateComparison& comparison, std::span<const std::string> names,
                          int width = 100);
std::string compare_json(const CandidateComparison& comparison, std::span<const std::string> names);

}  // namespace reckon
