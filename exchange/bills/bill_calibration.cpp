#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "exchange/bills/bill_ledger.h"
#include "exchange/prices/price_rows.h"
#include "sim/catalog/files/entry.h"
#include "sim/catalog/operations_keys.h"

namespace reckon {
namespace {

using CoversKind = Offering::Covers;

/// What was paid for so many hours or GB-months of one thing.
struct Paid {
  double usd = 0, quantity = 0;
  double rate() const { return usd / quantity; }
};
/// By kind, item (the family of vCPUs and memory), region and capacity.
using PaidKey = std::tuple<CoversKind, std::string, std::string, CapacityType, bool>;

class BillPrices {
 public:
  BillPrices(const BillComparison& comparison, const Plan& plan, const Catalog& catalog)
      : bill_(comparison.bill),
        plan_(plan),
        catalog_(catalog),
        provider_(bill_.provider.value_or(plan.provider)) {
    for (const BillLine& line : bill_.lines) add(line);
  }

  BillCalibration learn(const std::string& file) {
    if (bill_.end.empty()) {
      out_.notes.emplace_back("the rows have no dates: no price was learnt");
      return std::move(out_);
    }
    learn_machines();
    learn_split_machines();
    learn_storage();
    const double fee = learn_fee();
    if (reserved_usd_ > 0)
      out_.notes.push_back(fmt::format(
          "{:.2f} USD of compute are covered by reservations or savings plans: the scenario says "
          "what they cost (prices.reserved)",
          reserved_usd_));
    if (offerings_.empty() && fee == 0) return std::move(out_);
    const Source source{fmt::format("bill-{}", bill_.end),
                        fmt::format("{}, {}, {} to {}", bill_.format, file, bill_.begin, bill_.end),
                        bill_.end};
    const std::array sourced{SourcedPrices{source, offerings_}};
    out_.files = price_overlay(sourced);
    if (fee > 0) {
      const std::string key = keys::management_fee(plan_.service.id);
      const std::size_t dot = key.find('.');
      out_.files["operations.yaml"] =
          fmt::format("{}:\n  {}: {{value: {:.9g}, source: {}}}\n", key.substr(0, dot),
                      key.substr(dot + 1), fee, source.id);
    }
    return std::move(out_);
  }

 private:
  void add(const BillLine& line) {
    if (line.part == BillPart::compute && line.capacity == CapacityType::reserved) {
      reserved_usd_ += line.usd;
      return;
    }
    const bool priced = line.part == BillPart::compute || line.part == BillPart::storage;
    if (!priced || !line.covers || line.quantity <= 0 || line.usd <= 0) return;
    const bool split = *line.covers == CoversKind::vcpu || *line.covers == CoversKind::memory_gib;
    const bool custom = split && line.item.find(" custom ") != std::string::npos;
    Paid& paid = paid_[{*line.covers, split ? line.family : line.item,
                        line.region.empty() ? plan_.region : line.region, line.capacity, custom}];
    paid.usd += line.usd;
    paid.quantity += line.quantity;
  }

  void learn_machines() {
    for (const auto& [key, paid] : paid_) {
      const auto& [covers, item, region, capacity, custom] = key;
      if (covers == CoversKind::machine || covers == CoversKind::machine_with_accelerators ||
          covers == CoversKind::accelerator)
        offer(covers, item, region, capacity, paid.rate(), paid.quantity);
    }
  }

  /// Machines of the plan, where a bill has their vCPUs and memory.
  void learn_split_machines() {
    for (const auto& [key, cores] : paid_) {
      const auto& [covers, family, region, capacity, custom] = key;
      if (covers != CoversKind::vcpu) continue;
      const auto memory = paid_.find({CoversKind::memory_gib, family, region, capacity, custom});
      if (memory == paid_.end()) {
        out_.notes.push_back(
            fmt::format("the bill has vCPUs of {} in {}, but no memory of them", family, region));
        continue;
      }
      if (custom)
        learn_custom(family, region, capacity, cores, memory->second);
      else
        learn_family(family, region, capacity, cores, memory->second);
    }
  }
  void learn_family(const std::string& family, const std::string& region, CapacityType capacity,
                    const Paid& cores, const Paid& memory) {
    constexpr double kGibibytes = 1073741824.0;
    std::vector<std::string> done;
    for (const PlannedPool& pool : plan_.pools) {
      const Machine* machine = catalog_.find_machine(provider_, pool.machine.name);
      if (machine == nullptr || machine->name.substr(0, machine->name.find('-')) != family ||
          std::ranges::find(done, machine->name) != done.end())
        continue;
      done.push_back(machine->name);
      offer(CoversKind::machine, machine->name, region, capacity,
            machine->vcpus * cores.rate() + machine->memory.value.v / kGibibytes * memory.rate(),
            cores.quantity / machine->vcpus);
    }
  }
  void learn_custom(const std::string& family, const std::string& region, CapacityType capacity,
                    const Paid& cores, const Paid& memory) {
    for (const CustomFamily& known : catalog_.custom_families) {
      if (known.provider != provider_ || known.name.substr(0, known.name.find('-')) != family)
        continue;
      offer(CoversKind::vcpu, known.name, region, capacity, cores.rate(), cores.quantity);
      offer(CoversKind::memory_gib, known.name, region, capacity, memory.rate(), memory.quantity);
    }
  }

  void learn_storage() {
    constexpr double kHoursOfMonth = 730;  // as clouds bill, and the catalog reads
    for (const auto& [key, paid] : paid_) {
      const auto& [covers, item, region, capacity, custom] = key;
      if (covers != CoversKind::storage || !believed(item, paid.rate(), kDearestGigabyte)) continue;
      Offering made = blank(covers, item, region);
      made.on_demand = price_lists::hourly(paid.rate() / kHoursOfMonth);
      out_.learnt.push_back(
          {fmt::format("{} {}", item, region), "USD/GB-month", paid.rate(), paid.quantity});
      warn_of_later(made, CapacityType::on_demand);
      offerings_.push_back(std::move(made));
    }
  }

  /// The hourly fee of a cluster; 0: nothing was learnt of it.
  double learn_fee() {
    Paid fee;
    double balancers = 0;
    for (const BillLine& line : bill_.lines) {
      if (line.part == BillPart::management && line.unit == "h") {
        fee.usd += line.usd;
        fee.quantity += line.quantity;
      }
      if (line.part == BillPart::load_balancers) balancers += line.usd;
    }
    if (fee.quantity <= 0) {
      if (balancers > 0)
        out_.notes.emplace_back(
            "the bill has load balancers, but no hours of a cluster to spread them over");
      return 0;
    }
    fee.usd += balancers;
    if (!believed("a cluster", fee.rate(), catalog_text::kDearestHour)) return 0;
    out_.learnt.push_back({fmt::format("{} cluster{}", plan_.service.called,
                                       balancers > 0 ? " with its load balancers" : ""),
                           "USD/h", fee.rate(), fee.quantity});
    return fee.rate();
  }

  Offering blank(CoversKind covers, const std::string& item, const std::string& region) const {
    Offering made;
    made.provider = provider_;
    made.covers = covers;
    made.item = item;
    made.region = region;
    made.date = bill_.end;
    return made;
  }

  void offer(CoversKind covers, const std::string& item, const std::string& region,
             CapacityType capacity, double usd_per_hour, double hours) {
    if (!believed(item, usd_per_hour, catalog_text::kDearestHour)) return;
    Offering made = blank(covers, item, region);
    (capacity == CapacityType::spot ? made.spot : made.on_demand) =
        price_lists::hourly(usd_per_hour);
    made.notes = fmt::format("{:.6g} h of the bill", hours);
    out_.learnt.push_back(
        {fmt::format("{} {} {}", item, to_text(capacity), region), "USD/h", usd_per_hour, hours});
    warn_of_later(made, capacity);
    offerings_.push_back(std::move(made));
  }

  /// A catalog refuses prices beyond these.
  static constexpr double kDearestGigabyte = 1000;  // USD a month
  bool believed(const std::string& item, double usd, double most) {
    if (usd <= most) return true;
    out_.notes.push_back(
        fmt::format("{} would cost {:.6g} USD: its quantity is hardly right, and its price was not "
                    "learnt",
                    item, usd));
    return false;
  }

  /// Of two prices the newer counts, whatever their layers.
  void warn_of_later(const Offering& made, CapacityType capacity) {
    const Offering* known = catalog_.find_offering(made.provider, made.region, "", made.item,
                                                   made.covers, capacity, true);
    if (known != nullptr && known->date > made.date)
      out_.notes.push_back(
          fmt::format("the catalog's price of {} is of {}, later than the bill: it is the one that "
                      "counts",
                      made.item, known->date));
  }

  const Bill& bill_;
  const Plan& plan_;
  const Catalog& catalog_;
  Provider provider_;
  std::map<PaidKey, Paid> paid_;
  double reserved_usd_ = 0;
  std::vector<Offering> offerings_;
  BillCalibration out_;
};

}  // namespace

BillCalibration calibrate_by_bill(const BillComparison& comparison, const Plan& plan,
                                  const std::string& file, const Catalog& catalog) {
  return BillPrices(comparison, plan, catalog).learn(file);
}

}  // namespace reckon
