#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "sim/base/text/csv.h"
#include "sim/base/unit_text.h"
#include "sim/measurement/profiles/nsys.h"

namespace reckon {
namespace {

constexpr double kLongest = 1e18;  // nanoseconds

/// nsys prints what it does before the table: the header is the first line with both columns.
std::string_view from_header(std::string_view text) {
  constexpr int kMostLines = 50;
  for (int line = 0; line < kMostLines && !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view first = text.substr(0, end);
    const bool trace = first.starts_with("Start (") && first.find("Duration (") != first.npos;
    const bool sum = first.starts_with("Time (%)") && first.find("Total Time (") != first.npos;
    if ((trace || sum) && first.find("Name") != first.npos) return text;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

class Table {
 public:
  Table(std::string_view file, std::string_view text, std::string_view whole)
      : file_(file), csv_(text), lines_before_(int(std::count(whole.data(), text.data(), '\n'))) {
    csv_.next(row_);
    for (std::size_t k = 0; k < row_.size(); ++k) names_.emplace_back(row_[k].text);
  }

  bool has(std::string_view column) const { return at(column).has_value(); }
  /// False at the end. Rows that are no row of the table end it: another report may follow.
  bool next() { return csv_.next(row_) && row_.size() >= names_.size(); }
  int line() const { return lines_before_ + row_.front().line; }
  std::string_view text(std::string_view column) const {
    const auto k = at(column);
    return k && *k < row_.size() ? row_[*k].text : std::string_view{};
  }
  /// In nanoseconds, by the unit in the header; nullopt is told as a problem.
  std::optional<double> nanoseconds(std::string_view column) {
    const auto k = at(column);
    const auto value = parse_number(text(column));
    if (!k || !value || *value < 0 || *value * scale(names_[*k]) > kLongest) {
      problem(fmt::format("{}: '{}' is no time", column, text(column)), "");
      return std::nullopt;
    }
    return *value * scale(names_[*k]);
  }
  void problem(std::string what, std::string hint) {
    constexpr std::size_t kMost = 20;
    if (problems.size() < kMost)
      problems.push_back(
          {Severity::error, {std::string(file_), line(), 0}, std::move(what), std::move(hint)});
  }
  Diagnostics problems;

 private:
  static double scale(std::string_view name) {
    return name.ends_with("(s)")    ? 1e9
           : name.ends_with("(ms)") ? 1e6
           : name.ends_with("(us)") ? 1e3
                                    : 1;
  }
  /// "Start" is the column "Start (ns)".
  std::optional<std::size_t> at(std::string_view column) const {
    for (std::size_t k = 0; k < names_.size(); ++k)
      if (names_[k] == column || names_[k].starts_with(fmt::format("{} (", column))) return k;
    return std::nullopt;
  }

  std::string_view file_;
  CsvReader csv_;
  int lines_before_;
  std::vector<CsvField> row_;
  std::vector<std::string> names_;
};

/// "[CUDA memcpy Host-to-Device]" is a copy.
KernelKind kind_named(std::string_view name) {
  return name.starts_with("[CUDA") ? KernelKind::memory : kernel_kind(name);
}

Profile of_sum(Table& table) {
  Profile profile;
  ProfiledParts& p = profile.parts;
  while (table.next()) {
    const auto time = table.nanoseconds("Total Time");
    if (!time) continue;
    const Seconds t{*time * 1e-9};
    switch (kind_named(table.text("Name"))) {
      case KernelKind::product:
        p.product += t;
        break;
      case KernelKind::attention:
        p.attention += t;
        break;
      case KernelKind::memory:
        p.memory += t;
        break;
      case KernelKind::communication:
        p.communication += t;
        p.exposed_communication += t;
        break;
    }
  }
  return profile;
}

struct Trace {
  std::vector<ProfiledKernel> kernels;
  std::map<std::string, std::vector<std::int64_t>, std::less<>> begins;  // of the first device's
  std::string device;
};

Trace read_trace(Table& table) {
  Trace trace;
  std::map<std::string, int, std::less<>> devices;
  while (table.next()) {
    const auto start = table.nanoseconds("Start"), took = table.nanoseconds("Duration");
    if (!start || !took) continue;
    const std::string_view device = table.text("Device"), name = table.text("Name");
    const auto [known, is_new] =
        devices.try_emplace(std::string(device), static_cast<int>(devices.size()));
    if (trace.device.empty()) trace.device = device.substr(0, device.rfind(" ("));
    const auto begin = std::int64_t(std::llround(*start));
    trace.kernels.push_back(
        {begin, begin + std::int64_t(std::llround(*took)), known->second, kind_named(name)});
    if (known->second == 0) trace.begins[std::string(name)].push_back(begin);
  }
  return trace;
}

}  // namespace

bool is_nsys_csv(std::string_view text) { return !from_header(text).empty(); }

Expected<Profile> parse_nsys_csv(std::string_view file, std::string_view text, std::int64_t steps) {
  const std::string_view rows = from_header(text);
  if (rows.empty())
    return tl::unexpected(Diagnostics{{Severity::error,
                                       {std::string(file), 0, 0},
                                       "no table of nsys stats",
                                       "nsys stats --report cuda_gpu_trace --format csv REPORT"}});
  Table table(file, rows, text);
  const bool is_trace = table.has("Start");
  Profile profile;
  if (is_trace) {
    Trace trace = read_trace(table);
    const auto windows =
        steps > 1 ? windows_between_launches(trace.begins, steps) : std::vector<ProfiledWindow>{};
    if (steps > 1 && windows.empty() && table.problems.empty())
      table.problems.push_back({Severity::error,
                                {std::string(file), 0, 0},
                                fmt::format("no kernel was launched {} times, once a step", steps),
                                "--steps: how many steps the trace holds"});
    profile.device = trace.device;
    set_steps(profile, std::move(trace.kernels), windows);
  } else {
    profile = of_sum(table);
  }
  if (!table.problems.empty()) return tl::unexpected(std::move(table.problems));
  if (profile.parts.total().count() <= 0)
    return tl::unexpected(
        Diagnostics{{Severity::error, {std::string(file), 0, 0}, "the table has no kernel", ""}});
  profile.tool = "Nsight Systems";
  return profile;
}

}  // namespace reckon
