#include "sim/scenario/scenario.h"

namespace reckon {

SourcePlace Places::find(std::string_view path) const {
  while (!path.empty()) {
    if (const auto found = places_.find(path); found != places_.end()) return found->second;
    const std::size_t dot = path.rfind('.');
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
  }
  return SourcePlace{file, 0, 0};
}

}  // namespace reckon
