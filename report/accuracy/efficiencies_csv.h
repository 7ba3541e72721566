#pragma once
#include <span>
#include <string>
#include <string_view>

#include "sim/accuracy/scoring/fit/fit.h"

namespace reckon {

/// The catalog's efficiencies.csv with these rows in place of all that are fitted in `existing`;
/// all others stay as they are. A row of general knowledge that a fit replaces stays as the prior
/// from which the next fit starts. `digest`: of the fit's inputs (EfficiencyFit::inputs_digest()),
/// for the first line.
std::string efficiencies_csv(std::string_view existing, std::span<const FittedRow> rows,
                             std::string_view digest);
/// The digest in such a file's first line; "": none.
std::string digest_of_efficiencies(std::string_view csv);

/// The catalog's stacks.csv.
std::string stacks_csv(std::span<const FittedStack> stacks);

}  // namespace reckon
