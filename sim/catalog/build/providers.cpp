#include <algorithm>
#include <iterator>
#include <tuple>

#include "sim/catalog/build/build.h"
#include "sim/catalog/files/entry.h"

// Providers and services: what code asks for instead of which one it is.
namespace reckon::catalog_text {
namespace {

constexpr int kLastRank = 1000;  // of a provider that gives none: behind those that do
constexpr std::string_view kFlagWords[] = {"true", "false"};

bool truth(Reader& reader, const Entry& entry, std::string_view field, bool otherwise) {
  const std::string text = reader.text(field);
  if (!entry.find(field)) return otherwise;
  if (std::ranges::find(kFlagWords, text) == std::end(kFlagWords))
    reader.complain(field, fmt::format("{} is '{}'", field, text), "true or false");
  return text == "true";
}

std::string required_text(Reader& reader, std::string_view field, std::string_view example) {
  std::string text = reader.text(field);
  if (text.empty())
    reader.complain(field, fmt::format("'{}' is missing", field), std::string(example));
  return text;
}

/// A number of a provider or a service: `field` of its entry, and where in its key its name stands
/// ("provisioning.cpu_s" is provisioning.gcp_cpu_s).
struct KeyedNumber {
  std::string_view field, group, name;
  bool required = true;
};
constexpr KeyedNumber kOfProvider[] = {
    {"provisioning.cpu_s", "provisioning", "cpu_s"},
    {"provisioning.gpu_s", "provisioning", "gpu_s"},
    {"provisioning.tpu_s", "provisioning", "tpu_s", false},
    {"spot.notice_s", "spot", "notice_s"},
    {"spot.free_if_reclaimed_within_s", "spot", "free_if_reclaimed_within_s"},
    {"spot.preemptible_life_max_s", "spot", "preemptible_life_max_s", false},
    {"maintenance.every_s", "maintenance", "every_s"},
    {"maintenance.notice_s", "maintenance", "notice_s"},
    {"maintenance.reserved_together_fraction", "maintenance", "reserved_together_fraction", false},
    {"billing.granularity_s", "billing", "granularity_s"},
    {"billing.minimum_s", "billing", "minimum_s"},
    {"power.pue_fraction", "power", "pue_fraction", false},
    {"egress.between_regions_usd_per_gb", "egress", "between_regions_usd_per_gb", false},
    {"egress.between_zones_usd_per_gb", "egress", "between_zones_usd_per_gb", false},
    {"block.ends_before_s", "block", "ends_before_s", false},
    {"block.step_s", "block", "step_s", false},
    {"block.long_step_s", "block", "long_step_s", false},
    {"block.long_from_s", "block", "long_from_s", false},
    {"block.longest_s", "block", "longest_s", false},
    {"block.machines_most_count", "block", "machines_most_count", false}};
constexpr KeyedNumber kOfService[] = {
    {"management_usd_per_hour", "billing", "management_usd_per_hour"},
    {"pod_notice_s", "spot", "pod_notice_s", false}};

void read_numbers(Reader& reader, const Entry& entry, std::span<const KeyedNumber> numbers,
                  OperationalDefaults& operations) {
  for (const KeyedNumber& number : numbers)
    if (number.required || entry.find(number.field))
      operations.numbers.insert_or_assign(
          fmt::format("{}.{}_{}", number.group, entry.at.text, number.name),
          number_by_key(reader, number.field));
}

/// What several providers have ("none") comes last.
void sort_services(Catalog& catalog) {
  const auto place = [&](const Service& service) {
    int having = 0, first = 0, at = 0;
    for (const ProviderRules& p : catalog.providers)
      for (const Service& s : p.services) {
        ++at;
        if (s != service) continue;
        if (having++ == 0) first = at;
      }
    return std::tuple(having != 1, first);
  };
  std::ranges::stable_sort(catalog.services, {},
                           [&](const ServiceRules& s) { return place(s.id); });
}

}  // namespace

void Builder::services(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    ServiceRules made;
    made.id.name = entry.at.text;
    made.called = required_text(reader, "called", "called: EKS");
    made.kubernetes = truth(reader, entry, "kubernetes", false);
    made.scales =
        reader.word("scales", from_text<Scales>, texts_of<Scales>).value_or(Scales::nothing);
    if (made.scales != Scales::nothing && !made.kubernetes)
      reader.complain("scales", "Kubernetes' autoscaler is the only one that is simulated",
                      "scales: nothing, or kubernetes: true");
    made.nodes_of_job = truth(reader, entry, "nodes_of_job", false);
    made.one_zone = truth(reader, entry, "one_zone", false);
    made.spot_machines = truth(reader, entry, "spot_machines", true);
    made.spot_slices = truth(reader, entry, "spot_slices", true);
    made.prices_of = reader.text("prices_of");
    made.cluster_tool = reader.text("cluster_tool");
    made.karpenter_labels = reader.text("karpenter_labels");
    made.flex_start = truth(reader, entry, "flex_start", false);
    made.compute_classes = truth(reader, entry, "compute_classes", false);
    made.price_expander = truth(reader, entry, "price_expander", false);
    made.slurm = truth(reader, entry, "slurm", false);
    made.name_server = reader.text("name_server");
    made.bucket_driver = reader.text("bucket_driver");
    made.bucket_annotation = reader.text("bucket_annotation");
    read_numbers(reader, entry, kOfService, catalog.operations);
    reader.finish();
    catalog.services.push_back(std::move(made));
  }
}

void Builder::providers(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    ProviderRules made;
    made.id.name = entry.at.text;
    made.called = required_text(reader, "called", "called: Google Cloud");
    made.rank = reader.integer("rank", kLastRank);
    for (const std::string& name : reader.lines("services")) {
      if (const auto service = service_named(name))
        made.services.push_back(*service);
      else
        reader.complain(
            "services", fmt::format("unknown service '{}'", name),
            fmt::format("services of services.yaml: {}", fmt::join(service_names(), ", ")));
    }
    if (made.services.empty() && reader.lines("services").empty())
      reader.complain("services", "there is no service that applies",
                      "services: [none] for machines without one");
    made.owned = truth(reader, entry, "owned", false);
    made.locations_complete = truth(reader, entry, "locations_complete", false);
    made.counts_by_table = truth(reader, entry, "counts_by_table", false);
    made.sells_spot = truth(reader, entry, "spot_sold", true);
    made.node_id = reader.text("node_id");
    made.tcp_link = reader.text("tcp_link");
    reader.reference(
        "tcp_link", "link", [&](auto name) { return catalog.find_link(name) != nullptr; },
        [&] {
          std::vector<std::string> names;
          for (const LinkClass& link : catalog.links) names.push_back(link.name);
          return names;
        });
    made.region = reader.text("usual.region");
    made.worker_machine = reader.text("usual.worker_machine");
    made.server_machine = reader.text("usual.server_machine");
    read_numbers(reader, entry, kOfProvider, catalog.operations);
    reader.finish();
    catalog.providers.push_back(std::move(made));
  }
  std::ranges::sort(catalog.providers, {}, [](const ProviderRules& p) {
    return std::tuple(p.rank, std::string_view(p.id.name));
  });
  sort_services(catalog);
}

Provider Builder::provider_in(Reader& reader) const {
  const auto named = [&](std::string_view text) -> std::optional<Provider> {
    const auto found = std::ranges::find_if(
        catalog.providers, [&](const ProviderRules& p) { return same_name(p.id.name, text); });
    return found == catalog.providers.end() ? std::nullopt : std::optional(found->id);
  };
  const auto names = [&] {
    std::vector<std::string> result;
    for (const ProviderRules& p : catalog.providers) result.push_back(p.id.name);
    return result;
  };
  return reader.word("provider", named, names).value_or(Provider{});
}

std::optional<Service> Builder::service_named(std::string_view text) const {
  const auto found = std::ranges::find_if(
      catalog.services, [&](const ServiceRules& s) { return same_name(s.id.name, text); });
  return found == catalog.services.end() ? std::nullopt : std::optional(found->id);
}

Service Builder::service_in(Reader& reader) const {
  const auto named = [&](std::string_view text) { return service_named(text); };
  return reader.word("service", named, [&] { return service_names(); }).value_or(Service{});
}

std::vector<std::string> Builder::service_names() const {
  std::vector<std::string> result;
  for (const ServiceRules& s : catalog.services) result.push_back(s.id.name);
  return result;
}

Provider Builder::provider_with(const Service& service) const {
  const ProviderRules* found = catalog.provider_of(service);
  return found == nullptr ? Provider{} : found->id;
}

}  // namespace reckon::catalog_text
