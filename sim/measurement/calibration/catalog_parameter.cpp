#include "sim/measurement/calibration/catalog_parameter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "sim/catalog/operations_keys.h"

namespace reckon {
namespace {

template <class T>
double number_of(const T& value) {
  if constexpr (std::is_same_v<T, double>)
    return value;
  else if constexpr (std::is_same_v<T, Seconds>)
    return value.count();
  else
    return value.v;
}

template <class T>
ParameterValue value_of(const Fact<T>& fact) {
  return {number_of(fact.value), number_of(fact.low), number_of(fact.high)};
}

template <class T>
Fact<T> fact_of(const ParameterValue& v, SourceId source) {
  if (!v.uncertain()) return Fact<T>{T{v.value}, source};
  return Fact<T>{T{v.value}, T{v.low}, T{v.high}, source};
}

std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t slash = name.find('/');
    parts.emplace_back(name.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    name.remove_prefix(slash + 1);
  }
}

/// The unit last in an operational number's key: "job_start.image_pull_s".
std::string unit_of_key(std::string_view key) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kUnits{
      {{"_bytes_per_s_per_vcpu", "B/s"},
       {"_flop_per_s_per_vcpu", "FLOP/s"},
       {"_fraction", "fraction"},
       {"_bytes", "B"},
       {"_s", "s"}}};
  for (const auto& [ending, unit] : kUnits)
    if (key.ends_with(ending)) return std::string(unit);
  return "";
}

constexpr std::string_view kAnyStack = "any";
constexpr std::string_view kSpeed = "speed";
constexpr std::array<std::string_view, 6> kEfficiencyNumbers{
    "convolution", "matmul", "attention", "memory", "half_size", "launch"};

/// Of the catalog's row that a plan's efficiencies come from. A stack without a row of its own for
/// this accelerator is known by what it makes of the row for any stack.
std::string_view stack_of_row(const Efficiency& of_plan, const Catalog& catalog) {
  const auto own = [&](const Efficiency& row) {
    return row.accelerator == of_plan.accelerator && row.precision == of_plan.precision &&
           row.stack == of_plan.stack;
  };
  const bool has_own = !of_plan.stack.empty() &&
                       std::any_of(catalog.efficiencies.begin(), catalog.efficiencies.end(), own);
  return has_own ? std::string_view(of_plan.stack) : kAnyStack;
}

}  // namespace

class ParameterFinder {
 public:
  ParameterFinder(Catalog& catalog, std::string_view name)
      : catalog_(catalog), name_(name), parts_(parts_of(name)) {}

  Expected<CatalogParameter> find() {
    found_.name_ = name_;
    found_.most_ = std::numeric_limits<double>::infinity();
    const std::string& kind = parts_.front();
    if (kind == "operations" && parts_.size() == 2) return operation();
    if (kind == "links" && parts_.size() == 3) return link();
    if (kind == "storages" && parts_.size() == 3) return storage();
    if (kind == "datasets" && parts_.size() == 3) return dataset();
    if (kind == "efficiencies" && parts_.size() == 5) return efficiency();
    return unknown("no parameter of the catalog is called so",
                   "operations/KEY, links/NAME/latency, storages/NAME/latency, "
                   "datasets/NAME/decode_cpu_seconds, "
                   "efficiencies/ACCELERATOR/PRECISION/STACK/matmul");
  }

 private:
  Expected<CatalogParameter> unknown(std::string why, std::string hint) const {
    return tl::unexpected(
        Diagnostics{{Severity::error, {}, fmt::format("'{}': {}", name_, why), std::move(hint)}});
  }
  Expected<CatalogParameter> no_such(std::string_view what, std::span<const std::string> known) {
    return unknown(fmt::format("the catalog has no {} '{}'{}", what, parts_[1],
                               did_you_mean(parts_[1], known)),
                   "");
  }
  Expected<CatalogParameter> no_number(std::span<const std::string_view> known) const {
    return unknown(fmt::format("'{}' is not one of its numbers", parts_.back()),
                   fmt::format("they are {}", fmt::join(known, ", ")));
  }

  template <class T>
  Expected<CatalogParameter> fact(Fact<T>& fact, std::string unit) {
    if (unit == "fraction") found_.most_ = 1;
    found_.unit_ = std::move(unit);
    Fact<T>* const at = &fact;
    found_.get_ = [at] { return value_of(*at); };
    found_.set_ = [at](const ParameterValue& v, SourceId s) { *at = fact_of<T>(v, s); };
    return found_;
  }

  Expected<CatalogParameter> operation() {
    const auto at = catalog_.operations.numbers.find(parts_[1]);
    if (at != catalog_.operations.numbers.end()) return fact(at->second, unit_of_key(parts_[1]));
    std::vector<std::string> known;
    for (const auto& [key, number] : catalog_.operations.numbers) known.push_back(key);
    return no_such("operational number", known);
  }

  Expected<CatalogParameter> link() {
    std::vector<std::string> known;
    for (LinkClass& l : catalog_.links) {
      known.push_back(l.name);
      if (l.name != parts_[1]) continue;
      if (parts_[2] == "efficiency") {
        auto found = fact(l.efficiency, "fraction");
        found->most_ = 1.1;  // switches that reduce in the network exceed the printed bandwidth
        return found;
      }
      if (parts_[2] == "latency") return fact(l.latency, "s");
      return no_number(std::array<std::string_view, 2>{"efficiency", "latency"});
    }
    return no_such("link", known);
  }

  Expected<CatalogParameter> storage() {
    std::vector<std::string> known;
    for (Storage& s : catalog_.storages) {
      known.push_back(s.name);
      if (s.name != parts_[1]) continue;
      if (parts_[2] == "read_per_node") return fact(s.read_per_node, "B/s");
      if (parts_[2] == "write_per_node") return fact(s.write_per_node, "B/s");
      if (parts_[2] == "latency") return fact(s.latency, "s");
      return no_number(
          std::array<std::string_view, 3>{"read_per_node", "write_per_node", "latency"});
    }
    return no_such("storage", known);
  }

  Expected<CatalogParameter> dataset() {
    std::vector<std::string> known;
    for (Dataset& d : catalog_.datasets) {
      known.push_back(d.name);
      if (d.name != parts_[1]) continue;
      if (parts_[2] == "decode_cpu_seconds") return fact(d.decode_cpu_seconds, "vCPU s");
      if (parts_[2] == "bytes_per_sample") return fact(d.bytes_per_sample, "B");
      return no_number(std::array<std::string_view, 2>{"decode_cpu_seconds", "bytes_per_sample"});
    }
    return no_such("data set", known);
  }

  Expected<CatalogParameter> efficiency() {
    for (Efficiency& e : catalog_.efficiencies) {
      const std::string_view stack = e.stack.empty() ? kAnyStack : std::string_view(e.stack);
      if (e.accelerator != parts_[1] || to_text(e.precision) != parts_[2] || stack != parts_[3])
        continue;
      const std::string& number = parts_[4];
      if (number == kSpeed) return speed(e);
      // Fitted fractions may exceed 1: the catalog's README says where.
      const auto fraction = [&](Fact<double>& f) {
        auto found = fact(f, "fraction");
        found->most_ = 1.4;
        return found;
      };
      if (number == "convolution") return fraction(e.convolution);
      if (number == "matmul") return fraction(e.matmul);
      if (number == "attention") return fraction(e.attention);
      if (number == "memory") return fraction(e.memory);
      if (number == "half_size") return fact(e.half_size, "FLOP");
      if (number == "launch") return fact(e.launch, "s");
      return no_number(kEfficiencyNumbers);
    }
    std::vector<std::string> known;
    for (const Efficiency& e : catalog_.efficiencies) known.push_back(e.accelerator);
    return no_such("row of efficiencies", known);
  }

  /// What the row's fit left unexplained of the step time, as one number of this cluster's: a
  /// factor on its speed. Known, it is no longer unexplained, so the row's spread shrinks to what
  /// is left.
  Expected<CatalogParameter> speed(Efficiency& row) {
    found_.unit_ = "factor";
    found_.most_ = std::numeric_limits<double>::infinity();
    Efficiency* const at = &row;
    const Efficiency before = row;
    found_.get_ = [at, before] {
      const double now = at->memory.value / before.memory.value;
      const Fact<double>& spread = at->step_spread;
      if (!(spread.low > 0) || !(spread.high > spread.low)) return ParameterValue{now, now, now};
      return ParameterValue{now, now / spread.high, now / spread.low};
    };
    found_.set_ = [at, before](const ParameterValue& v, SourceId source) {
      *at = before;
      for (Fact<double> Efficiency::*f : {&Efficiency::convolution, &Efficiency::matmul,
                                          &Efficiency::attention, &Efficiency::memory}) {
        Fact<double>& fact = at->*f;
        fact.value *= v.value;
        fact.low *= v.value;
        fact.high *= v.value;
        fact.source = source;
      }
      at->launch.value /= v.value;
      at->launch.low /= v.value;
      at->launch.high /= v.value;
      at->launch.source = source;
      if (v.uncertain())
        at->step_spread = Fact<double>{1, v.value / v.high, v.value / v.low, source};
    };
    return found_;
  }

  Catalog& catalog_;
  std::string name_;
  std::vector<std::string> parts_;
  CatalogParameter found_;
};

Expected<CatalogParameter> find_parameter(Catalog& catalog, std::string_view name) {
  return ParameterFinder(catalog, name).find();
}

std::vector<std::string> parameters_of(const Plan& plan, const Catalog& catalog) {
  std::vector<std::string> names;
  const auto add = [&](std::string name) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  };
  for (const PlannedPool& pool : plan.pools) {
    if (pool.accelerator && !pool.efficiency.accelerator.empty()) {
      const Efficiency& e = pool.efficiency;
      const std::string row = fmt::format("efficiencies/{}/{}/{}/", e.accelerator,
                                          to_text(e.precision), stack_of_row(e, catalog));
      add(row + std::string(kSpeed));
      for (const std::string_view number : kEfficiencyNumbers) add(row + std::string(number));
    }
    for (const LinkClass* link : {&pool.network_link, &pool.peer_link}) {
      if (catalog.find_link(link->name) == nullptr) continue;
      add(fmt::format("links/{}/efficiency", link->name));
      add(fmt::format("links/{}/latency", link->name));
    }
  }
  for (const PlannedWorkload& job : plan.jobs) {
    if (catalog.find_dataset(job.dataset.name) != nullptr)
      for (const std::string_view number : {"decode_cpu_seconds", "bytes_per_sample"})
        add(fmt::format("datasets/{}/{}", job.dataset.name, number));
    if (catalog.find_storage(job.checkpoint.storage.name) == nullptr) continue;
    for (const std::string_view number : {"read_per_node", "write_per_node", "latency"})
      add(fmt::format("storages/{}/{}", job.checkpoint.storage.name, number));
  }
  for (const auto& [key, number] : catalog.operations.numbers)
    add(fmt::format("operations/{}", key));
  return names;
}

}  // namespace reckon
