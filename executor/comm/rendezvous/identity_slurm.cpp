#include "executor/comm/rendezvous/identity_slurm.h"

#include <algorithm>
#include <charconv>

namespace reckon {

namespace {
bool is_digit_of_list(char c) { return c >= '0' && c <= '9'; }
bool is_part_of_name(char c) {
  return is_digit_of_list(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '.' || c == '_';
}

/// The first number of "03-05,9"; "": these are no numbers.
std::string_view first_of_ranges(std::string_view ranges) {
  const auto first = ranges.substr(0, ranges.find_first_of("-,"));
  const bool numbers = std::ranges::all_of(
      ranges, [](char c) { return is_digit_of_list(c) || c == '-' || c == ','; });
  return numbers ? first : std::string_view{};
}
}  // namespace

std::optional<std::string> first_slurm_node(std::string_view list) {
  std::string name;
  while (!list.empty() && list.front() != ',') {
    if (list.front() != '[') {
      if (!is_part_of_name(list.front())) return std::nullopt;
      name += list.front();
      list.remove_prefix(1);
      continue;
    }
    const std::size_t end = list.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view first = first_of_ranges(list.substr(1, end - 1));
    if (first.empty()) return std::nullopt;
    name += first;
    list.remove_prefix(end + 1);
  }
  if (name.empty()) return std::nullopt;
  return name;
}

std::optional<int> slurm_tasks_on_node(std::string_view list, int node) {
  const auto take_number = [&list]() -> std::optional<int> {
    int value = 0;
    const auto [end, error] = std::from_chars(list.data(), list.data() + list.size(), value);
    if (error != std::errc() || value < 1) return std::nullopt;
    list.remove_prefix(static_cast<std::size_t>(end - list.data()));
    return value;
  };
  const auto skip = [&list](std::string_view text) {
    if (!list.starts_with(text)) return false;
    list.remove_prefix(text.size());
    return true;
  };
  do {
    const auto tasks = take_number();
    std::optional<int> nodes = 1;
    if (tasks && skip("(x")) {
      nodes = take_number();
      if (!skip(")")) return std::nullopt;
    }
    if (!tasks || !nodes) return std::nullopt;
    if (node < *nodes) return tasks;
    node -= *nodes;
  } while (skip(","));
  return std::nullopt;
}

std::uint16_t slurm_meeting_port(std::int64_t job, std::int64_t step) {
  constexpr std::int64_t kFirst = 10000, kPorts = 20000, kBetweenSteps = 7919;
  return std::uint16_t(kFirst + (job + kBetweenSteps * step) % kPorts);
}

}  // namespace reckon
