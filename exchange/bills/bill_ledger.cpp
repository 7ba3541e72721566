#include "exchange/bills/bill_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "sim/catalog/files/text.h"

namespace reckon {
namespace {

/// Pools of one machine and capacity, as a bill has them.
struct RentedNodes {
  const PlannedPool* pool = nullptr;  // the first of them
  CapacityType capacity = CapacityType::on_demand;
  LedgerRow row;
};

CapacityType capacity_of(const PlannedPool& pool) {
  const bool reserved = pool.reservation && pool.reservation->nodes >= pool.nodes_max;
  return reserved ? CapacityType::reserved : pool.pricing;
}

double hourly_usd(const PlannedPool& pool) {
  constexpr double kNano = 1e-9;
  if (capacity_of(pool) == CapacityType::reserved)
    return double(pool.reservation->price.nano_usd_per_hour) * kNano;
  return double(pool.price.machine.nano_usd_per_hour + pool.price.accelerators.nano_usd_per_hour) *
         kNano;
}

std::string named(const PlannedPool& pool) {
  std::string text = pool.slice ? pool.slice->name : pool.machine.name;
  if (pool.accelerator && pool.machine.accelerator.empty() && !pool.slice)
    text += fmt::format(" + {} x {}", pool.accelerators_per_node, pool.accelerator->name);
  return fmt::format("{}, {}", text, to_text(capacity_of(pool)));
}

double part_usd(const Forecast& forecast, CostPart part) {
  return forecast.cost_breakdown_usd[static_cast<std::size_t>(part)];
}

/// The ledger's compute is dealt out to the pools by their hours and prices: a forecast has means
/// of hours by pool, and of money by part.
std::vector<RentedNodes> rented_nodes(const Plan& plan, const Forecast& forecast) {
  std::vector<RentedNodes> out;
  double weight = 0;
  for (const auto& [name, hours] : forecast.node_hours) {
    const auto pool = std::ranges::find(plan.pools, name, &PlannedPool::name);
    if (pool == plan.pools.end()) continue;
    const std::string item = named(*pool);
    auto at = std::ranges::find_if(out, [&](const RentedNodes& r) { return r.row.item == item; });
    if (at == out.end()) {
      out.push_back({&*pool, capacity_of(*pool), {BillPart::compute, item, 0.0, {}, 0.0, {}}});
      at = out.end() - 1;
    }
    *at->row.ledger_hours += hours;
    *at->row.ledger_usd += hours * hourly_usd(*pool);
    weight += hours * hourly_usd(*pool);
  }
  const double compute = part_usd(forecast, CostPart::accelerators) +
                         part_usd(forecast, CostPart::machines) +
                         part_usd(forecast, CostPart::idle) + part_usd(forecast, CostPart::spares);
  for (RentedNodes& nodes : out) {
    if (!forecast.cost_usd)
      nodes.row.ledger_usd.reset();
    else if (weight > 0)
      *nodes.row.ledger_usd *= compute / weight;
  }
  return out;
}

std::string_view prefix_of(std::string_view machine) {
  return machine.substr(0, machine.find('-'));
}

bool is_of(const BillLine& line, const PlannedPool& pool) {
  if (!line.covers) return false;
  switch (*line.covers) {
    case Offering::Covers::machine:
    case Offering::Covers::machine_with_accelerators:
      return catalog_text::same_name(line.item, pool.machine.name);
    case Offering::Covers::accelerator:
      return pool.accelerator && line.item == pool.accelerator->name;
    case Offering::Covers::vcpu:
    case Offering::Covers::memory_gib: {
      const std::string_view prefix = prefix_of(pool.machine.name);
      return prefix == line.family || (prefix == "custom" && line.family == "n1");
    }
    default:
      return false;
  }
}

void add_to(std::optional<double>& sum, double value) { sum = sum.value_or(0) + value; }

void add_line(RentedNodes& nodes, const BillLine& line) {
  add_to(nodes.row.bill_usd, line.usd);
  if (line.unit != "h" || !line.covers) return;
  const bool whole = *line.covers == Offering::Covers::machine ||
                     *line.covers == Offering::Covers::machine_with_accelerators;
  if (whole)
    add_to(nodes.row.bill_hours, line.quantity);
  else if (*line.covers == Offering::Covers::vcpu && nodes.pool->machine.vcpus > 0)
    add_to(nodes.row.bill_hours, line.quantity / nodes.pool->machine.vcpus);
}

/// The row of a line of compute: of its capacity, else what a commitment covers of the same
/// machine. nullptr: none.
RentedNodes* row_of(const BillLine& line, std::vector<RentedNodes>& rented) {
  for (const bool exact : {true, false})
    for (RentedNodes& nodes : rented) {
      const bool same = nodes.capacity == line.capacity;
      const bool neither_spot =
          nodes.capacity != CapacityType::spot && line.capacity != CapacityType::spot;
      if (is_of(line, *nodes.pool) && (exact ? same : neither_spot)) return &nodes;
    }
  return nullptr;
}

/// Bills that name no machine (OpenCost) have one row for all of them.
void merge(std::vector<RentedNodes>& rented) {
  for (std::size_t k = 1; k < rented.size(); ++k) {
    *rented[0].row.ledger_hours += *rented[k].row.ledger_hours;
    if (rented[0].row.ledger_usd) *rented[0].row.ledger_usd += *rented[k].row.ledger_usd;
  }
  rented.resize(1);
  rented[0].row.item = "all nodes";
}

}  // namespace

double BillComparison::forgotten_usd() const {
  return std::accumulate(forgotten.begin(), forgotten.end(), 0.0,
                         [](double sum, const BillLine& line) { return sum + line.usd; });
}

BillComparison compare_bill(Bill bill, const Plan& plan, const Forecast& forecast) {
  BillComparison out;
  out.scenario = plan.name;
  out.forecast_usd = forecast.cost_usd;
  out.ledger_idle_usd = part_usd(forecast, CostPart::idle) + part_usd(forecast, CostPart::spares);
  std::vector<RentedNodes> rented = rented_nodes(plan, forecast);
  const bool names_machines = std::ranges::any_of(bill.lines, [](const BillLine& line) {
    return line.part == BillPart::compute && (line.covers || line.unit == "h");
  });
  if (!names_machines && rented.size() > 1) merge(rented);
  std::map<BillPart, LedgerRow> parts;
  const auto ledger = [&](BillPart part, double usd) {
    if (forecast.cost_usd && usd > 0) parts[part].ledger_usd = usd;
  };
  ledger(BillPart::storage, part_usd(forecast, CostPart::storage));
  ledger(BillPart::management, part_usd(forecast, CostPart::management));
  ledger(BillPart::egress, part_usd(forecast, CostPart::network));
  std::map<std::string, LedgerRow> other_machines;
  for (const BillLine& line : bill.lines) {
    if (line.part == BillPart::compute) {
      RentedNodes* nodes = names_machines   ? row_of(line, rented)
                           : rented.empty() ? nullptr
                                            : &rented.front();
      if (nodes != nullptr) {
        add_line(*nodes, line);
        continue;
      }
      LedgerRow& row = other_machines[fmt::format("{}, {}", line.item, to_text(line.capacity))];
      add_to(row.bill_usd, line.usd);
      if (line.unit == "h") add_to(row.bill_hours, line.quantity);
    } else {
      LedgerRow& row = parts[line.part];
      add_to(row.bill_usd, line.usd);
      if (row.ledger_usd) continue;
    }
    out.forgotten.push_back(line);
  }
  for (RentedNodes& nodes : rented) out.rows.push_back(std::move(nodes.row));
  for (auto& [item, row] : other_machines) {
    row.part = BillPart::compute;
    row.item = item;
    out.rows.push_back(std::move(row));
  }
  for (auto& [part, row] : parts) {
    row.part = part;
    out.rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(out.forgotten, [](const BillLine& a, const BillLine& b) {
    return std::abs(a.usd) > std::abs(b.usd);
  });
  out.bill = std::move(bill);
  return out;
}

}  // namespace reckon
