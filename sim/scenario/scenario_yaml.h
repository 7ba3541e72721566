#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.h"

namespace reckon {

/// Reads one scenario file strictly: unknown and duplicate keys, wrong types and units, impossible
/// values and combinations are all reported at once. `overrides` are `--set` texts "path=value",
/// applied to the document before it is read, so that they meet the same checks (their place is
/// "--set path=value").
Expected<ScenarioFile> read_scenario(const std::filesystem::path& file,
                                     std::span<const std::string> overrides = {});
/// The same from text; `name` stands for the file in messages.
Expected<ScenarioFile> parse_scenario(std::string_view text, std::string name,
                                      std::span<const std::string> overrides = {});

}  // namespace reckon
