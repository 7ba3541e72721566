#include "exchange/refusals.h"

#include <fmt/format.h>

namespace reckon {

void Refusals::add(std::string_view path, std::string_view what, std::string hint) {
  const bool whole = path.starts_with("cluster");
  const std::string at = whole ? std::string(path) : fmt::format("{}.{}", workload_, path);
  found_.push_back({.at = places_.find(at),
                    .what = fmt::format("{} has no counterpart of {}", by_, what),
                    .hint = std::move(hint)});
}

}  // namespace reckon
