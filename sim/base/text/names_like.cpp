#include "sim/base/text/names_like.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/text/lower_case.h"

namespace reckon {
namespace {

constexpr std::size_t kAll = 12;  // so many are read at a glance
constexpr std::size_t kFew = 5;

void move_those(std::vector<std::string>& from, std::vector<std::string>& to, const auto& belongs) {
  const auto end = std::stable_partition(from.begin(), from.end(),
                                         [&](const auto& name) { return !belongs(name); });
  to.insert(to.end(), end, from.end());
  from.erase(end, from.end());
}

}  // namespace

std::string names_like(std::string_view word, std::span<const std::string> names,
                       std::string_view all_of, std::string_view list) {
  if (names.size() <= kAll) return fmt::format("{}: {}", all_of, fmt::join(names, ", "));
  std::vector<std::string> rest(names.begin(), names.end()), like;
  const std::string wanted = lower_case(word);
  if (wanted.size() > 1) {
    move_those(rest, like, [&](const auto& name) { return lower_case(name).starts_with(wanted); });
    move_those(rest, like, [&](const auto& name) {
      return lower_case(name).find(wanted) != std::string::npos;
    });
  }
  if (like.size() > kFew) like.resize(kFew);
  while (like.size() < kFew) {
    std::string next = nearest(word, rest);
    if (next.empty()) break;
    std::erase(rest, next);
    like.push_back(std::move(next));
  }
  if (like.empty()) return fmt::format("{}: {}, listed by `{}`", all_of, names.size(), list);
  return fmt::format("like it: {}; {}: {} more, listed by `{}`", fmt::join(like, ", "), all_of,
                     names.size() - like.size(), list);
}

}  // namespace reckon
