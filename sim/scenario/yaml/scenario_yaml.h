#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.h"

namespace reckon {

/// Reads one scenario file strictly: unknown and duplicate keys, wrong types and units, impossible
/// values and combinations are all reported at once. `overrides` are `--set` texts "path=value",
/// applied to the document before it is read, so that they meet the same checks (their place is
/// "--set path=value"). The file's `extends` is read below it and `layers` over it, in order
/// (layers.h), before the overrides.
Expected<ScenarioFile> read_scenario(const std::filesystem::path& file,
                                     std::span<const std::string> overrides = {},
                                     std::span<const std::filesystem::path> layers = {});
/// The same from text; `name` stands for the file in messages.
Expected<ScenarioFile> parse_scenario(std::string_view text, std::string name,
                                      std::span<const std::string> overrides = {},
                                      std::span<const std::filesystem::path> layers = {});

/// The scenario as one document, with what it extends, the layers and the overrides in it, and
/// without the keys of `left_out`: a file that says the same without them. Comments are lost.
Expected<std::string> flat_scenario(std::string_view text, const std::string& name,
                                    std::span<const std::string> overrides,
                                    std::span<const std::filesystem::path> layers,
                                    std::span<const std::string_view> left_out);

/// What a relative path that stands at `path` is relative to: the directory of the file in which it
/// stands, which may be one that this file extends.
std::filesystem::path directory_of(const ScenarioFile& file, std::string_view path);

}  // namespace reckon
