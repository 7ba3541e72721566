#include "executor/data/shards/shard_sets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace reckon::data {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kSeparators = "-_./";
constexpr std::size_t kMostDigits = 9;

/// The parts of "data/train-00003-of-01024.tfrecord".
struct ShardName {
  std::string prefix;       // "data/train-"
  std::string_view number;  // "00003"
  std::string_view count;   // "01024"; "": the name does not say it
  std::string_view ending;  // ".tfrecord"
};

/// Where the digits at the text's end begin.
std::size_t number_at(std::string_view text) {
  const std::size_t last = text.find_last_not_of(kDigits);
  return last == std::string_view::npos ? 0 : last + 1;
}

/// nullopt: it has no number at its end.
std::optional<ShardName> shard_name(std::string_view name) {
  ShardName parts;
  std::string_view rest = name;
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos &&
      name.find_first_of("-_/0123456789", dot) == std::string_view::npos) {
    rest = name.substr(0, dot);
    parts.ending = name.substr(dot);
  }
  std::size_t begin = number_at(rest);
  parts.number = rest.substr(begin);
  constexpr std::string_view kOf = "-of-";
  if (rest.substr(0, begin).ends_with(kOf)) {
    const std::string_view before = rest.substr(0, begin - kOf.size());
    if (number_at(before) < before.size()) {
      parts.count = parts.number;
      begin = number_at(before);
      parts.number = before.substr(begin);
    }
  }
  if (parts.number.empty() || parts.number.size() > kMostDigits || parts.count.size() > kMostDigits)
    return std::nullopt;
  parts.prefix = rest.substr(0, begin);
  return parts;
}

std::int64_t value_of(std::string_view digits) {
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

/// Folders whose names differ in digits alone ("part-0/train-", "part-1/train-") share out one set.
std::string set_of(const ShardName& name) {
  const std::size_t slash = name.prefix.rfind('/') + 1;
  std::string set = name.prefix.substr(0, slash);
  std::erase_if(set, [](char c) { return kDigits.find(c) != std::string_view::npos; });
  return set + name.prefix.substr(slash);
}

struct ShardSet {
  ShardName first;
  std::map<std::int64_t, std::set<std::int64_t>> numbers;  // by the count that the names say
  /// "train" of "train-": without what stands before the number.
  std::string text() const {
    const std::size_t last = first.prefix.find_last_not_of(kSeparators);
    return last == std::string::npos ? first.prefix : first.prefix.substr(0, last + 1);
  }
};

/// The path of the shards that begin so.
std::string path_of(const Store& store, const std::string& where, const std::string& prefix) {
  if (store.is_folder()) return where + (where.ends_with('/') ? "" : "/") + prefix;
  return where.substr(0, where.rfind('/') + 1) + prefix;
}

void check_complete(const ShardSet& set, const Store& store, const std::string& where) {
  const auto& [prefix, number, count_text, ending] = set.first;
  if (set.numbers.size() > 1)
    throw DataError(fmt::format("{}: the shards of {} are {} and {} by their names: keep one kind",
                                where, set.text(), set.numbers.begin()->first,
                                set.numbers.rbegin()->first));
  const auto& [count, numbers] = *set.numbers.begin();
  const std::int64_t missing =
      count - std::ranges::count_if(numbers, [&, most = count](auto n) { return n < most; });
  if (missing <= 0) return;
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> names;
  for (std::int64_t k = 0; k < count && names.size() < kNamed; ++k)
    if (!numbers.contains(k))
      names.push_back(
          fmt::format("{}{:0{}}-of-{}{}", prefix, k, number.size(), count_text, ending));
  throw DataError(fmt::format(
      "{}: {} of the {} shards of {} {} missing: {}{}\n  get them, or train on what is there by "
      "naming it as far as its number, path: {}",
      where, missing, count, set.text(), missing == 1 ? "is" : "are", fmt::join(names, ", "),
      missing > std::ssize(names) ? ", ..." : "",
      path_of(store, where, prefix + std::string(number.substr(0, 1)))));
}

/// Where numbers are missing between others: which. Numbers with more gaps than shards count
/// something else.
std::string why_gap(const ShardSet& set, const std::string& where) {
  const std::set<std::int64_t>& numbers = set.numbers.at(0);
  const std::int64_t span = *numbers.rbegin() - *numbers.begin() + 1;
  const std::int64_t missing = span - std::ssize(numbers);
  if (missing == 0 || missing > std::ssize(numbers)) return "";
  std::int64_t first = *numbers.begin();
  while (numbers.contains(first)) ++first;
  return fmt::format("{}: {} shard{} missing between the first and the last: {}{:0{}}{}{}", where,
                     missing, missing == 1 ? " is" : "s are", set.first.prefix, first,
                     set.first.number.size(), set.first.ending, missing == 1 ? "" : ", ...");
}

}  // namespace

bool is_one_of_many(const std::string& name) {
  const auto parts = shard_name(name);
  return parts && !parts->count.empty() && parts->ending.empty();
}

std::vector<std::string> check_shard_sets(const Store& store,
                                          std::span<const StoredObject* const> shards,
                                          const std::string& where) {
  std::map<std::string, ShardSet> sets, uncounted;
  for (const StoredObject* shard : shards) {
    const auto name = shard_name(shard->name);
    if (!name) continue;
    const std::string of = set_of(*name);
    if (name->count.empty())
      uncounted.try_emplace(of, ShardSet{.first = *name, .numbers = {}})
          .first->second.numbers[0]
          .insert(value_of(name->number));
    if (of.find_first_not_of(kSeparators) == std::string::npos && name->count.empty()) continue;
    ShardSet& set = sets.try_emplace(of, ShardSet{.first = *name, .numbers = {}}).first->second;
    if (!name->count.empty()) set.numbers[value_of(name->count)].insert(value_of(name->number));
  }
  if (sets.size() > 1) {
    std::vector<std::string> names;
    for (const auto& [name, set] : sets) names.push_back(set.text());
    throw DataError(fmt::format("{}: holds shards of {}: name one set, path: {}", where,
                                fmt::join(names, " and of "),
                                path_of(store, where, sets.begin()->second.first.prefix)));
  }
  for (const auto& [name, set] : sets) {
    const std::size_t named = where.size() - (where.rfind('/') + 1);
    if (!store.is_folder() && named > set.first.prefix.size()) continue;
    if (!set.numbers.empty()) check_complete(set, store, where);
  }
  std::vector<std::string> warnings;
  for (const auto& [name, set] : uncounted)
    if (std::string gap = why_gap(set, where); !gap.empty()) warnings.push_back(std::move(gap));
  return warnings;
}

}  // namespace reckon::data
