#include "sim/scenario/yaml/scenario_yaml.h"

namespace reckon {

SourcePlace Places::find(std::string_view path) const {
  while (!path.empty()) {
    if (const auto found = places_.find(path); found != places_.end()) return found->second;
    const std::size_t dot = path.rfind('.');
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
  }
  return SourcePlace{file, 0, 0};
}

Places Places::with_alias(const std::string& from, const std::string& to) const {
  Places out = *this;
  for (const auto& [path, place] : places_)
    if (path == from || path.starts_with(from + ".")) out.set(to + path.substr(from.size()), place);
  return out;
}

std::filesystem::path directory_of(const ScenarioFile& file, std::string_view path) {
  const SourcePlace at = file.places.find(path);
  const bool in_a_file = at.line > 0;  // else it came with --set
  return in_a_file ? std::filesystem::path(at.file).parent_path() : file.directory;
}

}  // namespace reckon
