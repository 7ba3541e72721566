#include "sim/catalog/model_names.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/catalog/model_zoo.h"

namespace reckon {

std::string models_like(const std::string& name) {
  constexpr std::size_t kFew = 5;
  std::vector<std::string> names = zoo_names(), like;
  while (like.size() < kFew) {
    std::string next = nearest(name, names);
    if (next.empty()) break;
    std::erase(names, next);
    like.push_back(std::move(next));
  }
  const std::string rest = "`reckon model list` lists all";
  return like.empty() ? rest : fmt::format("like it: {}; {}", fmt::join(like, ", "), rest);
}

}  // namespace reckon
