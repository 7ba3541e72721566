#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "sim/base/text/names_like.h"
#include "sim/scenario/resolve/draft.h"

// Provider, service, region and zone, and whether the accelerators are offered there.
namespace reckon::planning {
namespace {

using Zones = std::set<std::string>;

/// Every region of the provider that the catalog knows, with the zones it knows there.
std::map<std::string, Zones> regions_of(const Catalog& catalog, const Provider& provider) {
  std::map<std::string, Zones> regions;
  const auto add = [&](const Provider& p, const std::string& region,
                       const std::vector<std::string>& zones) {
    if (p == provider && !region.empty()) regions[region].insert(zones.begin(), zones.end());
  };
  for (const Location& l : catalog.locations) add(l.provider, l.region, l.zones);
  for (const Offering& o : catalog.offerings) add(o.provider, o.region, o.zones);
  return regions;
}

bool resolve_provider(Draft& draft) {
  const Provider& written = draft.scenario().cluster.provider;
  draft.provider = draft.catalog.find_provider(written.name);
  if (draft.provider != nullptr) {
    draft.plan.provider = draft.provider->id;
    return true;
  }
  std::vector<std::string> names;
  for (const ProviderRules& p : draft.catalog.providers) names.push_back(p.id.name);
  draft.error(
      "cluster.provider",
      fmt::format("unknown provider '{}'{}", written.name, did_you_mean(written.name, names)),
      fmt::format("providers of the catalog: {}", join(names, ", ")));
  return false;
}

void resolve_service(Draft& draft) {
  const std::optional<Service>& written = draft.scenario().cluster.service;
  const std::vector<Service>& services = draft.provider->services;
  if (written && std::ranges::find(services, *written) == services.end()) {
    std::vector<std::string> names;
    for (const Service& s : services) names.push_back(s.name);
    draft.error("cluster.service",
                fmt::format("provider {} has no service {}", to_text(draft.plan.provider),
                            to_text(*written)),
                fmt::format("its services: {}", join(names, ", ")));
    // so that the other rules can still be checked
    draft.plan.service = draft.catalog.rules_of(services.front());
    return;
  }
  draft.plan.service = draft.catalog.rules_of(written.value_or(services.front()));
}

/// Where the catalog does not list a region's zones, a zone is known by its region's name in front.
bool is_zone_of(const std::string& zone, const std::string& region, const Zones& known) {
  return known.empty() ? zone.size() > region.size() && zone.starts_with(region)
                       : known.contains(zone);
}

void resolve_region(Draft& draft) {
  const ClusterSpec& cluster = draft.scenario().cluster;
  Plan& plan = draft.plan;
  plan.region = cluster.region;
  plan.zone = cluster.zone;
  const auto regions = regions_of(draft.catalog, plan.provider);
  if (regions.empty()) {  // of one's own machines, the names are the user's own
    draft.region_known = false;
    if (!draft.provider->owned && cluster.region.empty())
      draft.error("cluster", fmt::format("provider {} needs a region", to_text(plan.provider)),
                  "prices and offers depend on it");
    return;
  }
  std::vector<std::string> names;
  for (const auto& [name, zones] : regions) names.push_back(name);
  const std::string list = names_like(
      cluster.region, names, fmt::format("regions of {} in the catalog", to_text(plan.provider)),
      fmt::format("reckon catalog list locations {}", to_text(plan.provider)));
  if (cluster.region.empty()) {
    draft.error("cluster", fmt::format("provider {} needs a region", to_text(plan.provider)), list);
    return;
  }
  const auto found = regions.find(cluster.region);
  if (found == regions.end()) {
    draft.error(
        "cluster.region",
        fmt::format("unknown region '{}'{}", cluster.region, did_you_mean(cluster.region, names)),
        list);
    return;
  }
  draft.region_known = true;
  const Zones& zones = found->second;
  if (cluster.zone.empty() || is_zone_of(cluster.zone, cluster.region, zones)) return;
  const std::vector<std::string> zone_names(zones.begin(), zones.end());
  draft.error("cluster.zone",
              fmt::format("region {} has no zone '{}'{}", cluster.region, cluster.zone,
                          did_you_mean(cluster.zone, zone_names)),
              zones.empty() ? fmt::format("its zones begin with '{}'", cluster.region)
                            : fmt::format("zones of {} in the catalog: {}", cluster.region,
                                          join(zone_names, ", ")));
  plan.zone.clear();
}

/// "us-central1 (us-central1-c, us-central1-f) and us-east1 (us-east1-b)".
std::string where(const std::vector<const Location*>& locations) {
  std::vector<std::string> words;
  for (const Location* l : locations)
    words.push_back(l->zones.empty() ? l->region
                                     : fmt::format("{} ({})", l->region, join(l->zones, ", ")));
  return join(words, ", ");
}

/// What a place must offer for the pool, by the catalog's rows.
struct Offered {
  std::string name;      // of a slice, an accelerator or a machine with accelerators built in
  std::string_view key;  // of the pool, where the scenario says so
  std::vector<const Location*> rows;
};

/// Rows for a slice shape ("v2-256") come before rows for the chip: pods are in fewer zones than
/// one board. AWS and Azure list their machines.
Offered offered_of(const Draft& draft, const PlannedPool& pool) {
  const Provider& provider = draft.plan.provider;
  const auto rows = [&](const std::string& item) {
    return draft.catalog.locations_of(provider, item);
  };
  if (pool.slice) {
    Offered slice{pool.slice->name, "tpu", rows(pool.slice->name)};
    if (slice.rows.empty()) slice.rows = rows(pool.accelerator->name);
    return slice;
  }
  Offered accelerator{pool.accelerator->name, "accelerator", rows(pool.accelerator->name)};
  if (!accelerator.rows.empty() || pool.machine.accelerator.empty()) return accelerator;
  return {pool.machine.name, "machine", rows(pool.machine.name)};
}

/// The lists of AWS and Azure that we have leave regions out: what they do not say is no "no".
void warn_of_other_place(Draft& draft, const Offered& offered) {
  draft.warn(
      offered.rows.empty()
          ? fmt::format("the catalog does not know where {} offers {}",
                        to_text(draft.plan.provider), offered.name)
          : fmt::format("the catalog does not know whether {} offers {} in {}; it does in {}",
                        to_text(draft.plan.provider), offered.name, draft.plan.region,
                        where(offered.rows)));
}

/// Zones of the plan's region that have what the pool needs; an error (and nothing) where none has.
Zones zones_with(Draft& draft, const PlannedPool& pool) {
  const Plan& plan = draft.plan;
  const Offered offered = offered_of(draft, pool);
  const std::string path = draft.path(pool, offered.key);
  Zones zones;
  bool in_region = false, elsewhere = offered.rows.empty() && !pool.machine.accelerator.empty() &&
                                      !draft.provider->locations_complete;
  for (const Location* l : offered.rows) {
    elsewhere = elsewhere || l->elsewhere;
    if (l->region != plan.region) continue;
    in_region = true;
    zones.insert(l->zones.begin(), l->zones.end());
  }
  if (!in_region && elsewhere) {
    warn_of_other_place(draft, offered);
    return {};
  }
  if (offered.rows.empty()) {
    draft.error(path, fmt::format("{} is not offered by {} anywhere that the catalog knows",
                                  offered.name, to_text(plan.provider)));
    return {};
  }
  const std::string hint = fmt::format("it is offered in {}", where(offered.rows));
  if (!in_region) {
    draft.error(path, fmt::format("{} is not offered in region {}", offered.name, plan.region),
                hint);
    return {};
  }
  if (!plan.zone.empty() && !zones.empty() && !zones.contains(plan.zone)) {
    draft.error(path, fmt::format("{} is not offered in zone {}", offered.name, plan.zone), hint);
    return {};
  }
  return zones;
}

/// Where all machines of a job are in one zone, every accelerator type of it must be there.
void check_one_zone(Draft& draft,
                    const std::vector<std::pair<const PlannedPool*, Zones>>& offered) {
  if (!draft.plan.service.one_zone || offered.empty()) return;
  Zones common = offered.front().second;
  std::set<std::string> types;
  for (const auto& [pool, zones] : offered) {
    Zones both;
    std::set_intersection(common.begin(), common.end(), zones.begin(), zones.end(),
                          std::inserter(both, both.end()));
    common = both;
    types.insert(pool->accelerator->name);
  }
  if (!common.empty() || types.size() < 2) return;
  std::vector<std::string> lines;
  std::set<std::string> told;
  for (const auto& [pool, zones] : offered)
    if (told.insert(pool->accelerator->name).second)
      lines.push_back(
          fmt::format("{} is in {}", pool->accelerator->name,
                      join(std::vector<std::string>(zones.begin(), zones.end()), ", ")));
  draft.error(
      draft.path(*offered.back().first, "accelerator"),
      fmt::format("no zone of {} has {}; all accelerators of one {} job must be in one zone",
                  draft.plan.region, join(std::vector<std::string>(types.begin(), types.end())),
                  draft.plan.service.called),
      join(lines, "; "));
}

/// Where the catalog knows what a provider sells but not where (Selectel), another kind is
/// doubtful.
void warn_of_unlisted(Draft& draft) {
  std::set<std::string> sold;
  for (const Location& l : draft.catalog.locations)
    if (l.provider == draft.plan.provider) sold.insert(l.item);
  if (sold.empty()) return;
  for (const PlannedPool& pool : draft.plan.pools)
    if (draft.resolved[index(pool.id)] && pool.accelerator &&
        !sold.contains(pool.accelerator->name))
      draft.warn(fmt::format("the catalog does not know that {} offers {}; it knows of {}",
                             to_text(draft.plan.provider), pool.accelerator->name,
                             join(std::vector<std::string>(sold.begin(), sold.end()))));
}

}  // namespace

const ServiceRules* service_of(const ClusterSpec& cluster, const Catalog& catalog) {
  if (cluster.service) return catalog.find_service(cluster.service->name);
  const ProviderRules* provider = catalog.find_provider(cluster.provider.name);
  return provider == nullptr ? nullptr : &catalog.rules_of(provider->services.front());
}

std::string autoscaling_services(const Catalog& catalog) {
  std::vector<std::string> names;
  for (const ServiceRules& s : catalog.services)
    if (s.scales == Scales::all_pools) names.push_back(s.id.name);
  return join(names, " or ");
}

bool resolve_place(Draft& draft) {
  if (!resolve_provider(draft)) return false;
  resolve_service(draft);
  resolve_region(draft);
  return true;
}

void check_where_accelerators_are(Draft& draft) {
  if (!draft.region_known) return warn_of_unlisted(draft);
  std::vector<std::pair<const PlannedPool*, Zones>> offered;
  for (const PlannedPool& pool : draft.plan.pools) {
    if (!draft.resolved[index(pool.id)] || !pool.accelerator) continue;
    const Zones zones = zones_with(draft, pool);
    if (!zones.empty()) offered.emplace_back(&pool, zones);
  }
  check_one_zone(draft, offered);
}

}  // namespace reckon::planning
