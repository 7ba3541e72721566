#include "executor/train/data/classes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "executor/train/data/source.h"

namespace reckon::data {

bool is_hidden(std::string_view name) {
  while (!name.empty()) {
    const std::size_t slash = std::min(name.find('/'), name.size());
    const std::string_view part = name.substr(0, slash);
    if (part.starts_with('.') && part != "." && part != "..") return true;
    name.remove_prefix(std::min(slash + 1, name.size()));
  }
  return false;
}

std::vector<std::string> folders_in(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  try {
    for (const auto& entry : fs::directory_iterator(folder))
      if (std::string name = entry.path().filename().string();
          entry.is_directory() && !is_hidden(name))
        names.push_back(std::move(name));
  } catch (const fs::filesystem_error& e) {
    throw DataError(fmt::format("{}: {}", e.path1().string(), e.code().message()));
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::int64_t> class_numbers(const std::string& where,
                                        const std::vector<std::string>& names,
                                        const std::vector<std::string>& training) {
  const std::vector<std::string>& all = training.empty() ? names : training;
  std::vector<std::int64_t> numbers;
  std::vector<std::string> unknown;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(all, name);
    if (found == all.end()) unknown.push_back(name);
    numbers.push_back(found - all.begin());
  }
  if (unknown.empty()) return numbers;
  constexpr std::size_t kNamed = 10;
  const bool more = unknown.size() > kNamed;
  if (more) unknown.resize(kNamed);
  throw DataError(
      fmt::format("{}: holds classes that the training set does not have: {}{}\n  a validation set "
                  "has folders of the same names as the training set",
                  where, fmt::join(unknown, ", "), more ? ", ..." : ""));
}

std::string why_fewer_classes(const std::string& where, std::int64_t classes,
                              std::int64_t outputs) {
  if (classes >= outputs) return "";
  return fmt::format(
      "{} holds {} class{}, the model has {} outputs: {} will never be right", where, classes,
      classes == 1 ? "" : "es", outputs,
      outputs - classes == 1 ? std::string("one") : fmt::format("{} of them", outputs - classes));
}

}  // namespace reckon::data
