#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/diagnostic.h"

namespace reckon {

/// The scenario of the training alone, as one document: flat_scenario (scenario_yaml.h) without the
/// serving block, the pools with role inference, and the keys of `left_out`.
Expected<std::string> training_text(std::string_view text, const std::string& name,
                                    std::span<const std::string> overrides,
                                    std::span<const std::filesystem::path> layers,
                                    std::span<const std::string_view> left_out = {});

}  // namespace reckon
