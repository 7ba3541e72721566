#include <algorithm>
#include <tuple>

#include "planner/space/space.h"
#include "sim/scenario/resolve/draft.h"

// Which kinds of node the catalog offers to the question.
namespace reckon::planner {
namespace {

template <class T>
bool allows(const std::vector<T>& list, const T& value) {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

/// May data be there, and is the power clean enough? Where it is not known, no.
bool is_permitted(const Question& q, const Provider& provider, const std::string& name) {
  if (q.residency.empty() && !q.carbon_free) return true;
  const Region* region = find_region(q.base.regions, provider, name);
  if (region == nullptr) return false;
  const bool resides =
      q.residency.empty() || std::ranges::any_of(region->jurisdictions, [&](const std::string& j) {
        return std::ranges::count(q.residency, j) > 0;
      });
  return resides && (!q.carbon_free || region->carbon_free.value_or(-1) >= *q.carbon_free);
}

/// Each kind with each interval and storage of checkpoints that may be.
std::vector<Hardware> with_checkpoints(const Question& q, const Catalog& catalog,
                                       std::vector<Hardware> kinds) {
  std::vector<std::optional<SaveInterval>> intervals(q.may.save_intervals.begin(),
                                                     q.may.save_intervals.end());
  if (intervals.empty()) intervals.emplace_back();
  std::vector<Hardware> out;
  for (const Hardware& kind : kinds) {
    std::vector<std::string> storages;
    for (const std::string& name : q.may.checkpoint_storages)
      if (catalog.find_storage(name)->provider == kind.provider) storages.push_back(name);
    if (storages.empty()) storages.emplace_back();
    for (const auto& interval : intervals)
      for (const std::string& storage : storages) {
        out.push_back(kind);
        out.back().save_interval = interval;
        out.back().checkpoint_storage = storage;
      }
  }
  return out;
}

/// Each kind with each machine of parameter servers that may be; "": those of other strategies, and
/// servers beside the workers.
std::vector<Hardware> with_servers(const Question& q, const Catalog& catalog,
                                   std::vector<Hardware> kinds) {
  const Freedom& may = q.may;
  if (may.server_machines.empty()) return kinds;
  const bool beside = std::ranges::count(may.parameter_servers, 0) > 0;
  const bool others =
      std::ranges::any_of(may.kinds, [](StrategyKind kind) { return !traits_of(kind).servers; });
  std::vector<Hardware> out;
  for (const Hardware& kind : kinds) {
    if (beside || others) out.push_back(kind);
    for (const std::string& name : may.server_machines)
      if (const Machine* m = catalog.find_machine(kind.provider, name)) {
        out.push_back(kind);
        out.back().server_machine = m->name;
      }
  }
  return out;
}

/// The rows for the most exact item that has any: of a slice the slice before its chip, of a GPU
/// the accelerator before the machine (as make_plan judges them).
std::vector<const Location*> rows_of(const Catalog& catalog, const Hardware& h) {
  std::vector<const Location*> rows;
  for (const std::string* item : {&h.slice, &h.accelerator, &h.machine})
    if (rows.empty() && !item->empty()) rows = catalog.locations_of(h.provider, *item);
  return rows;
}

/// Zones of a region that may be, by the rows of what is sold there; a row without zones knows
/// none.
std::vector<std::string> zones_in(const Question& q, const std::vector<const Location*>& rows,
                                  const std::string& region) {
  std::vector<std::string> out;
  bool unknown = rows.empty();
  for (const Location* row : rows) {
    if (row->region != region) continue;
    unknown = unknown || row->zones.empty();
    for (const std::string& zone : row->zones)
      if (allows(q.may.zones, zone)) out.push_back(zone);
  }
  if (unknown)
    for (const std::string& zone : q.may.zones)
      if (zone.starts_with(region)) out.push_back(zone);
  if (out.empty() && unknown && q.may.zones.empty()) out.emplace_back();
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::optional<Precision> precision_for(const Question& q, const Catalog& catalog,
                                       const std::string& name) {
  const Accelerator* a = catalog.find_accelerator(name);
  return q.may.precision && a != nullptr ? std::optional(a->training_precision()) : std::nullopt;
}

class Collector {
 public:
  Collector(const Question& question, const Catalog& catalog) : q_(question), catalog_(catalog) {}
  HardwareList list;

  void collect(const Provider& provider) {
    const ClusterSpec& cluster = q_.file.scenario.cluster;
    ClusterSpec other;
    other.provider = provider;
    const ServiceRules* rules =
        planning::service_of(provider == cluster.provider ? cluster : other, catalog_);
    if (rules == nullptr) return;
    const Service& service = rules->id;
    for (const Machine& m : catalog_.machines) {
      if (m.provider != provider || !m.offered_under(service) || !named(m)) continue;
      if (!m.accelerator.empty()) {
        if (allows(q_.may.accelerators, m.accelerator))
          add(provider, m.name, m.accelerator, m.accelerator_count, "");
        continue;
      }
      for (const Accelerator& a : catalog_.accelerators)
        if (a.kind == AcceleratorKind::gpu && allows(q_.may.accelerators, a.name))
          for (const int count : catalog_.allowed_counts(service, m.name, a.name))
            add(provider, m.name, a.name, count, "");
    }
    for (const TpuSlice& slice : catalog_.slices)
      if (q_.may.machines.empty() && allows(q_.may.accelerators, slice.accelerator))
        add(provider, "", slice.accelerator, slice.chips, slice.name);
  }

 private:
  bool named(const Machine& machine) const {
    return q_.may.machines.empty() ||
           std::ranges::any_of(q_.may.machines, [&](const std::string& name) {
             return catalog_.find_machine(machine.provider, name) == &machine;
           });
  }

  std::vector<std::string> regions(const std::vector<const Location*>& rows) const {
    std::vector<std::string> out;
    for (const Location* row : rows)
      if (!row->region.empty() && allows(q_.may.regions, row->region)) out.push_back(row->region);
    std::ranges::sort(out);
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  /// Regions without a zone that may be are none. A zone may take less of an accelerator than the
  /// rest of its region.
  void set_zones(const std::vector<const Location*>& rows, Hardware& h) const {
    const ClusterSpec& cluster = q_.file.scenario.cluster;
    ClusterSpec other;
    other.provider = h.provider;
    const ServiceRules* rules =
        planning::service_of(h.provider == cluster.provider ? cluster : other, catalog_);
    if (rules == nullptr) return;
    const Service& service = rules->id;
    const Machine* m = catalog_.find_machine(h.provider, h.machine);
    const bool attached = h.slice.empty() && m != nullptr && m->accelerator.empty();
    std::erase_if(h.regions, [&](const std::string& region) {
      std::vector<std::string> zones = zones_in(q_, rows, region);
      std::erase_if(zones, [&](const std::string& zone) {
        if (!attached || h.accelerator.empty()) return false;
        const auto counts = catalog_.allowed_counts(service, h.machine, h.accelerator, zone);
        return std::ranges::count(counts, h.per_node) == 0;
      });
      if (!zones.empty()) h.zones[region] = zones;
      return zones.empty();
    });
  }

  void add(const Provider& provider, const std::string& machine, const std::string& accelerator,
           int count, const std::string& slice) {
    Hardware h;
    h.provider = provider;
    h.machine = machine;
    h.accelerator = accelerator;
    h.slice = slice;
    h.per_node = count;
    h.precision = precision_for(q_, catalog_, accelerator);
    const std::vector<const Location*> rows = rows_of(catalog_, h);
    h.regions = regions(rows);
    if (q_.may.zone) set_zones(rows, h);
    const bool nowhere = h.regions.empty();
    std::erase_if(h.regions,
                  [&](const std::string& region) { return !is_permitted(q_, provider, region); });
    if (nowhere)
      ++list.nowhere;
    else if (h.regions.empty())
      ++list.forbidden;
    else
      list.kinds.push_back(std::move(h));
  }

  const Question& q_;
  const Catalog& catalog_;
};

Hardware own_hardware(const Question& question, const Catalog& catalog) {
  const Scenario& s = question.file.scenario;
  const PoolSpec& pool = worker_pool(s);
  Hardware h;
  h.own = true;
  h.provider = s.cluster.provider;
  h.regions = {s.cluster.region};
  if (const auto* named = std::get_if<MachineByName>(&pool.machine)) h.machine = named->name;
  if (pool.tpu) {
    h.slice = pool.tpu->slice;
    h.accelerator = pool.tpu->type;
    if (const TpuSlice* slice = catalog.find_slice(pool.tpu->slice)) h.per_node = slice->chips;
  } else if (pool.accelerator) {
    h.accelerator = pool.accelerator->type;
    h.per_node = pool.accelerator->count;
  } else if (const Machine* m = catalog.find_machine(h.provider, h.machine)) {
    h.accelerator = m->accelerator;
    h.per_node = m->accelerator_count;
  }
  if (const Accelerator* a = catalog.find_accelerator(h.accelerator)) h.accelerator = a->name;
  h.precision = precision_for(question, catalog, h.accelerator);
  if (question.may.zone) {
    const auto zones = zones_in(question, rows_of(catalog, h), h.regions.front());
    if (!zones.empty()) h.zones[h.regions.front()] = zones;
  }
  return h;
}

}  // namespace

HardwareList hardware_for(const Question& question, const Catalog& catalog) {
  if (!question.may.hardware) {
    const Hardware own = own_hardware(question, catalog);
    if (!is_permitted(question, own.provider, own.regions.front())) return {{}, 0, 1};
    if (question.may.zone && own.zones.empty()) return {{}, 1, 0};
    return {with_servers(question, catalog, with_checkpoints(question, catalog, {own})), 0, 0};
  }
  Collector collector(question, catalog);
  for (const Provider& provider : question.may.providers) collector.collect(provider);
  const auto key = [&](const Hardware& h) {
    return std::tuple(catalog.place_of(h.provider), std::tie(h.machine, h.slice, h.accelerator),
                      h.per_node);
  };
  auto& kinds = collector.list.kinds;
  std::ranges::sort(kinds, [&](const Hardware& a, const Hardware& b) { return key(a) < key(b); });
  kinds = with_servers(question, catalog, with_checkpoints(question, catalog, std::move(kinds)));
  return std::move(collector.list);
}

}  // namespace reckon::planner
