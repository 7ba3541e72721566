#include "report/accuracy/efficiencies_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "sim/base/text/csv.h"

namespace reckon {
namespace {

constexpr std::array<std::string_view, 16> kColumns{
    "accelerator", "precision",       "stack",           "convolution", "winograd", "matmul",
    "attention",   "memory",          "half_size_gflop", "launch_us",   "host_us",  "step_spread",
    "runs",        "standard_errors", "source",          "notes"};
constexpr std::string_view kHeading =
    "# Rows of source fitted are written by: make fit; its inputs: ";

/// The numbers of a fit go together: what one of them slows down, another has sped up. Their
/// common uncertainty is step_spread. Only what no run told has a range of its own.
std::string cell_of(double value, double standard_error) {
  constexpr double kUntold = 0.37;  // nearly all of a prior's 40 %
  constexpr double kNineOfTen = 1.645;
  if (standard_error < kUntold) return fmt::format("{:.4g}", value);
  const double factor = std::exp(kNineOfTen * standard_error);
  return fmt::format("{:.4g} [{:.4g} {:.4g}]", value, value / factor,
                     std::max(value, std::min(1.5, value * factor)));
}

std::string line_of(const FittedRow& row) {
  const Efficiency& e = row.efficiency;
  const bool any = row.middle;
  std::string errors;
  for (std::size_t i = 0; i < kFittedNumbers; ++i)
    if (any || i == 0 || i == kAttentionNumber || i == kHostNumber)
      errors += fmt::format("{}{:.2f}", i ? " " : "", row.standard_errors[i]);
  const auto fraction = [&](const Fact<double>& f, std::size_t i) {
    return cell_of(f.value, any && i < 3 ? row.standard_errors[i] : 0);
  };
  const std::array<std::string, kColumns.size()> cells{
      e.accelerator,
      std::string(to_text(e.precision)),
      e.stack,
      fraction(e.convolution, 0),
      e.winograd.value > 1 ? fmt::format("{:.4g}", e.winograd.value) : "",
      fraction(e.matmul, 1),
      fraction(e.attention, 2),
      fraction(e.memory, 3),
      fmt::format("{:.4g}", e.half_size.value.v / 1e9),
      fmt::format("{:.4g}", e.launch.value.count() * 1e6),
      fmt::format("{:.4g}", e.host.value.count() * 1e6),
      fmt::format("1 [{:.4g} {:.4g}]", e.step_spread.low, e.step_spread.high),
      fmt::format("{}", row.runs),
      errors,
      std::string(kFittedSource),
      fmt::format("{}", fmt::join(row.sources, " "))};
  return csv_line(cells);
}

using Key = std::pair<std::string, std::string>;  // accelerator, precision

struct Existing {
  std::vector<std::array<std::string, kColumns.size()>> rows;
};

Existing read(std::string_view bytes) {
  CsvReader csv(bytes, CsvReader::Comments::hash);
  std::vector<CsvField> fields;
  std::vector<std::string> header;
  Existing result;
  while (csv.next(fields)) {
    if (header.empty()) {
      for (const CsvField& f : fields) header.emplace_back(f.text);
      continue;
    }
    auto& row = result.rows.emplace_back();
    for (std::size_t i = 0; i < std::min(fields.size(), header.size()); ++i) {
      const auto at = std::find(kColumns.begin(), kColumns.end(), header[i]);
      if (at != kColumns.end()) row[std::size_t(at - kColumns.begin())] = fields[i].text;
    }
  }
  return result;
}

}  // namespace

std::string stacks_csv(std::span<const FittedStack> stacks) {
  std::string out = "# Written by: make fit\n";
  out += "stack,speed,host_us,runs,standard_errors,source,notes\n";
  for (const FittedStack& s : stacks) {
    const std::array<std::string, 7> cells{
        s.stack.name,
        fmt::format("{:.4g}", s.stack.speed.value),
        fmt::format("{:.4g}", s.stack.host.value.count() * 1e6),
        fmt::format("{}", s.runs),
        fmt::format("{:.2f} {:.2f}", s.speed_error, s.host_error),
        std::string(kFittedSource),
        fmt::format("{}", fmt::join(s.sources, " "))};
    out += csv_line(cells);
  }
  return out;
}

std::string digest_of_efficiencies(std::string_view csv) {
  const std::string_view first = csv.substr(0, csv.find('\n'));
  return first.starts_with(kHeading) ? std::string(first.substr(kHeading.size())) : "";
}

std::string efficiencies_csv(std::string_view existing, std::span<const FittedRow> rows,
                             std::string_view digest) {
  constexpr std::size_t kStack = 2, kSourceColumn = 14;
  const auto key_of = [](const FittedRow& row) {
    return Key(row.efficiency.accelerator, std::string(to_text(row.efficiency.precision)));
  };
  std::set<Key> fitted, written, with_prior;
  for (const FittedRow& row : rows) fitted.insert(key_of(row));
  Existing old = read(existing);
  for (const auto& row : old.rows)
    if (row[kStack] == kPriorStack) with_prior.emplace(row[0], row[1]);

  std::string out = fmt::format("{}{}\n", kHeading, digest);
  const std::array<std::string, kColumns.size()> header = [] {
    std::array<std::string, kColumns.size()> names;
    std::copy(kColumns.begin(), kColumns.end(), names.begin());
    return names;
  }();
  out += csv_line(header);
  const auto write_fitted = [&](const Key& key) {
    if (!fitted.contains(key) || !written.insert(key).second) return;
    for (const FittedRow& row : rows)
      if (key_of(row) == key) out += line_of(row);
  };
  for (auto row : old.rows) {
    const Key key(row[0], row[1]);
    write_fitted(key);
    if (row[kSourceColumn] == kFittedSource) continue;
    if (row[kStack].empty() && fitted.contains(key)) {
      if (with_prior.contains(key)) continue;
      row[kStack] = kPriorStack;
    }
    out += csv_line(row);
  }
  for (const Key& key : fitted) write_fitted(key);
  return out;
}

}  // namespace reckon
