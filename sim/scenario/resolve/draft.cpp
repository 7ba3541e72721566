#include "sim/scenario/resolve/draft.h"

#include <algorithm>

#include <fmt/format.h>

namespace reckon::planning {

std::string Draft::path(const PlannedPool& pool, std::string_view below) const {
  // One that an autoscaler may choose has the id of the pool that is written.
  const PlannedPool& written =
      index(pool.id) < plan.pools.size() ? plan.pools[index(pool.id)] : pool;
  std::string text = fmt::format("cluster.pools.{}", written.name);
  if (!below.empty()) text += fmt::format(".{}", below);
  return text;
}

bool Draft::all_resolved() const {
  return !resolved.empty() &&
         std::all_of(resolved.begin(), resolved.end(), [](bool r) { return r; });
}

std::string join(const std::vector<std::string>& words, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? last : ", ";
    text += words[i];
  }
  return text;
}

std::string join(const std::vector<int>& counts, std::string_view last) {
  std::vector<std::string> words;
  for (const int count : counts) words.push_back(std::to_string(count));
  return join(words, last);
}

}  // namespace reckon::planning
