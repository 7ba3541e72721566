#pragma once
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>

#include "sim/base/mapped_file.h"
#include "sim/scenario/yaml/scenario_yaml.h"

namespace reckon {

/// Finds and reads the files that a scenario's `trace:` or `arrivals:` names, and collects what is
/// wrong.
class TraceSource {
 public:
  /// `directory`: looked in first; "": nowhere.
  TraceSource(const ScenarioFile& file, std::string block, std::string directory)
      : file_(file), block_(std::move(block)), directory_(std::move(directory)) {}

  Diagnostics problems;

  void error(const std::string& at, std::string what, std::string hint = "") {
    problems.push_back({Severity::error, file_.places.find(at), std::move(what), std::move(hint)});
  }

  /// Reads with `read(name, bytes)`; nullopt: reported.
  template <class Read>
  auto read(const std::string& key, const std::string& name, Read reader)
      -> std::optional<typename decltype(reader("", ""))::value_type> {
    for (const std::filesystem::path& place : candidates(key, name)) {
      std::error_code unreadable;
      if (!std::filesystem::is_regular_file(place, unreadable)) continue;
      const MappedFile bytes(place);
      auto value = reader(place.lexically_normal().string(), bytes.bytes());
      if (value) return std::move(*value);
      problems.insert(problems.end(), value.error().begin(), value.error().end());
      return std::nullopt;
    }
    error(block_ + "." + key, fmt::format("the file '{}' is not found", name),
          directory_.empty() ? "a path is relative to the scenario; trace.directory names "
                               "another place"
                             : "it is neither in trace.directory nor beside the scenario");
    return std::nullopt;
  }

 private:
  /// Where a file may be, the likeliest first.
  std::vector<std::filesystem::path> candidates(const std::string& key,
                                                const std::filesystem::path& name) const {
    std::vector<std::filesystem::path> places;
    if (!directory_.empty()) {
      for (const auto& from :
           {directory_of(file_, block_ + ".directory"), std::filesystem::path()}) {
        places.push_back(from / directory_ / name);
        places.push_back(from / directory_ / name.filename());
      }
    }
    places.push_back(directory_of(file_, block_ + "." + key) / name);
    if (file_.places.find(block_ + "." + key).line == 0) places.push_back(name);
    return places;
  }

  const ScenarioFile& file_;
  std::string block_, directory_;
};

}  // namespace reckon
