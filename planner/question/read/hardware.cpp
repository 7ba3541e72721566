#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "planner/question/reader.h"

// Which machines, and where.
namespace reckon::planner {

std::vector<std::string> QuestionReader::accelerators_named(const std::string& written) {
  if (const Accelerator* a = catalog_.find_accelerator(written)) return {a->name};
  const auto plain = [](std::string_view text) {
    std::string out;
    for (const char c : text)
      if (c != '-' && c != '_') out += char(std::tolower(static_cast<unsigned char>(c)));
    return out;
  };
  std::vector<std::string> fitting, all;
  const std::size_t dash = written.find_last_of("-_");
  const std::string front = plain(written.substr(0, dash));
  const std::string back = dash == std::string::npos ? "" : plain(written.substr(dash + 1));
  for (const Accelerator& a : catalog_.accelerators) {
    all.push_back(a.name);
    const std::size_t first = a.name.find('-'), last = a.name.rfind('-');
    const bool family = plain(a.name.substr(0, first)) == front;
    const bool size = back.empty() || (last != first && plain(a.name.substr(last + 1)) == back);
    if (family && size) fitting.push_back(a.name);
  }
  if (fitting.empty())
    error("plan.vary.accelerator",
          fmt::format("unknown accelerator '{}'{}", written, did_you_mean(written, all)),
          fmt::format("known: {}", fmt::join(all, ", ")));
  return fitting;
}

void QuestionReader::add_provider(const std::string& name) {
  if (const ProviderRules* found = catalog_.find_provider(name)) {
    q_.may.providers.push_back(found->id);
    return;
  }
  std::vector<std::string> names;
  for (const ProviderRules& p : catalog_.providers) names.push_back(p.id.name);
  error("plan.vary.provider",
        fmt::format("unknown provider '{}'{}", name, did_you_mean(name, names)),
        fmt::format("providers of the catalog: {}", fmt::join(names, ", ")));
}

void QuestionReader::read_hardware(const Scenario& s) {
  Freedom& may = q_.may;
  // "any" stands for what is not written: it never narrows the search.
  const PoolSpec& pool = worker_pool(s);
  const auto* machine = std::get_if<MachineByName>(&pool.machine);
  const bool any_machine = machine != nullptr && machine->name == kAny;
  const bool any_accelerator = pool.accelerator && pool.accelerator->type == kAny;
  const bool any_region = s.cluster.region == kAny;
  may.hardware = varied("provider") || varied("accelerator") || varied("machine") ||
                 varied("region") || any_machine || any_accelerator || any_region;
  may.providers = {s.cluster.provider};
  if (const auto* names = varied("provider")) {
    may.providers.clear();
    for (const ProviderRules& p : catalog_.providers)
      if (has_any(*names) && !p.owned) may.providers.push_back(p.id);
    if (!has_any(*names))
      for (const std::string& name : *names) add_provider(name);
  }
  if (const auto* names = varied("accelerator")) {
    for (const std::string& name : has_any(*names) ? std::vector<std::string>{} : *names)
      for (std::string& found : accelerators_named(name))
        if (std::ranges::find(may.accelerators, found) == may.accelerators.end())
          may.accelerators.push_back(std::move(found));
  } else if (const auto& own = pool.accelerator; own && !any_accelerator) {
    may.accelerators = {own->type};
    if (const Accelerator* a = catalog_.find_accelerator(own->type)) may.accelerators = {a->name};
  }
  if (const auto* names = varied("machine")) {
    if (!has_any(*names)) may.machines = *names;
  } else if (machine != nullptr && !any_machine && !any_accelerator && !varied("accelerator") &&
             !varied("provider")) {
    may.machines = {machine->name};
  }
  if (const auto* names = varied("region")) {
    if (!has_any(*names)) may.regions = *names;
  } else if (!varied("provider") && !s.cluster.region.empty() && !any_region)
    may.regions = {s.cluster.region};
  may.pricing = {worker_pool(s).pricing};
  if (const auto* names = varied("pricing")) {
    may.pricing.clear();
    for (const CapacityType c :
         {CapacityType::on_demand, CapacityType::spot, CapacityType::reserved})
      if (std::ranges::find(*names, to_text(c)) != names->end()) may.pricing.push_back(c);
  }
}

void QuestionReader::read_zones() {
  const auto* names = varied("zone");
  if (!names) return;
  q_.may.zone = true;
  if (has_any(*names)) return;
  q_.may.zones = *names;
  std::vector<std::string> known;
  for (const Location& l : catalog_.locations)
    if (std::ranges::count(q_.may.providers, l.provider) > 0)
      known.insert(known.end(), l.zones.begin(), l.zones.end());
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (const std::string& name : *names)
    if (!known.empty() && !std::ranges::binary_search(known, name))
      error("plan.vary.zone", fmt::format("unknown zone '{}'{}", name, did_you_mean(name, known)),
            fmt::format("zones of the catalog: {}", fmt::join(known, ", ")));
}

void QuestionReader::check_residency() {
  std::vector<std::string> known;
  for (const Region& region : q_.base.regions)
    known.insert(known.end(), region.jurisdictions.begin(), region.jurisdictions.end());
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (const std::string& name : q_.residency)
    if (!std::ranges::binary_search(known, name))
      error("plan.residency", fmt::format("no region of the catalog is in '{}'", name),
            fmt::format("known: {}", fmt::join(known, ", ")));
}

}  // namespace reckon::planner
