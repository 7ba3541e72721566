#pragma once
#include <span>
#include <string>
#include <string_view>

namespace reckon {

/// The hint under "unknown X": all names where they are few (12), else those that `word` may stand
/// for, nearest first, how many more there are, and the command that lists them. Near are names
/// that begin with the word or have it inside, then what nearest() of diagnostic.h allows; at most
/// five. `all_of`: "machines of gcp in the catalog"; `list`: "reckon catalog list machines".
std::string names_like(std::string_view word, std::span<const std::string> names,
                       std::string_view all_of, std::string_view list);

}  // namespace reckon
