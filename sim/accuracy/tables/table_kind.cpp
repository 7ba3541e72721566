#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "sim/accuracy/tables/tables.h"
#include "sim/base/text/csv.h"

namespace reckon {
namespace {

struct Header {
  TableKind kind;
  std::span<const std::string_view> columns;  // that no other kind has all of
};

constexpr std::array<std::string_view, 3> kProfiles{"kind", "ranks_per_node", "peak_GBps"};
constexpr std::array<std::string_view, 3> kCollectives{"system", "collective", "message_bytes"};
constexpr std::array<std::string_view, 2> kTimed{"epochs_or_samples_to_converge", "minutes"};
constexpr std::array<std::string_view, 3> kCosts{"usd_per_hour", "epochs", "hours"};
constexpr std::array<std::string_view, 3> kEnergy{"kind", "epochs_median", "power_limit_watts"};

/// The more particular first.
constexpr std::array<Header, 5> kHeaders{{{TableKind::collective_profiles, kProfiles},
                                          {TableKind::collectives, kCollectives},
                                          {TableKind::time_to_train, kTimed},
                                          {TableKind::run_costs, kCosts},
                                          {TableKind::energy_and_convergence, kEnergy}}};

}  // namespace

TableKind table_kind(std::string_view bytes) {
  if (is_vtrain_table(bytes)) return TableKind::vtrain;
  CsvReader csv(bytes);
  std::vector<CsvField> row;
  if (!csv.next(row)) return TableKind::runs;
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(row, [&](const CsvField& f) { return f.text == name; });
  };
  for (const Header& header : kHeaders)
    if (std::ranges::all_of(header.columns, has)) return header.kind;
  return TableKind::runs;
}

}  // namespace reckon
