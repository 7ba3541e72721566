#include "sim/catalog/build/build.h"
#include "sim/catalog/files/entry.h"

// What services allow and call things: limits of attached GPUs, machines of a size of one's own,
// scale tiers, names of labels and taints.
namespace reckon::catalog_text {
namespace {

constexpr double kGibibyte = 1073741824.0, kMebibyte = 1048576.0;

std::string known_accelerator(Reader& reader, const Catalog& catalog) {
  const std::string name = reader.text("accelerator");
  reader.reference(
      "accelerator", "accelerator",
      [&](auto text) { return catalog.find_accelerator(text) != nullptr; },
      [&] { return accelerator_names(catalog); });
  const Accelerator* found = catalog.find_accelerator(name);
  return found ? found->name : name;
}

std::string known_machine(Reader& reader, const Catalog& catalog, const Provider& provider) {
  const std::string name = reader.text("machine");
  reader.reference(
      "machine", "machine",
      [&](auto text) { return catalog.find_machine(provider, text) != nullptr; },
      [&] { return machine_names(catalog, provider); });
  const Machine* found = catalog.find_machine(provider, name);
  return found ? found->name : name;
}

SourceId source_of(const SourceTable& sources, const Entry& entry) {
  for (const Field& field : entry.fields) {
    if (field.name != "source" && !field.cell.source.empty())
      return sources.find(field.cell.source).value_or(SourceId::user);
  }
  return SourceId::user;
}

/// "key=value:Effect" or "key:Effect", as kubectl taint writes it.
bool is_taint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view effect = text.substr(colon + 1);
  return effect == "NoSchedule" || effect == "NoExecute" || effect == "PreferNoSchedule";
}

}  // namespace

void Builder::limits(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    AttachmentLimit made;
    made.service = service_in(reader);
    made.accelerator = known_accelerator(reader, catalog);
    made.count = reader.required_integer("count", 1);
    made.zones = strings(reader.text("zones"));
    made.vcpus = reader.required_integer("vcpus", 1);
    made.memory = reader.fact<Bytes>("memory_gib", scaled<Bytes>(kGibibyte));
    catalog.limits.push_back(std::move(made));
  }
}

void Builder::custom_families(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    CustomFamily made;
    made.name = entry.at.text;
    made.provider = provider_in(reader);
    made.prefixes = reader.lines("prefixes");
    if (made.prefixes.empty()) reader.complain("prefixes", "'prefixes' is missing", "[n1-custom]");
    made.vcpus_max = reader.required_integer("vcpus_max", 1);
    made.memory_per_vcpu_min = reader.fact<Bytes>("memory_per_vcpu_min", parse_bytes);
    made.memory_per_vcpu_max = reader.fact<Bytes>("memory_per_vcpu_max", parse_bytes);
    made.memory_step = Bytes(kMebibyte * reader.required_integer("memory_step_mib", 1));
    made.like = reader.text("like");
    const bool known = std::ranges::any_of(catalog.machines, [&](const Machine& machine) {
      return machine.provider == made.provider && machine.name.starts_with(made.like);
    });
    if (!known) reader.complain("like", fmt::format("no machine is named '{}...'", made.like));
    reader.finish();
    catalog.custom_families.push_back(std::move(made));
  }
}

void Builder::tiers(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    const Service service = service_in(reader);
    const std::string name = reader.text("tier");
    ScaleTier::Part part;
    part.role = reader.text("role");
    part.machine = known_machine(reader, catalog, provider_with(service));
    part.count = reader.integer("count", 1, 1, kMostNodes);
    part.accelerator = known_accelerator(reader, catalog);
    part.accelerator_count = reader.integer("accelerators", 0, 0, kMostInMachine);
    if (part.accelerator.empty() != (part.accelerator_count == 0))
      reader.complain("accelerators", "accelerator and accelerators go together", "K80,1");
    part.slice = reader.text("slice");
    reader.reference(
        "slice", "TPU slice", [&](auto text) { return catalog.find_slice(text) != nullptr; },
        [&] {
          std::vector<std::string> names;
          for (const TpuSlice& slice : catalog.slices) names.push_back(slice.name);
          return names;
        });
    auto tier = std::ranges::find_if(catalog.tiers, [&](const ScaleTier& t) {
      return t.service == service && same_name(t.name, name);
    });
    if (tier == catalog.tiers.end()) {
      catalog.tiers.push_back({service, name, {}, source_of(sources, entry)});
      tier = std::prev(catalog.tiers.end());
    }
    // A tier whose machines the user names has one row without any.
    if (!part.role.empty()) tier->parts.push_back(std::move(part));
  }
  for (ScaleTier& tier : catalog.tiers) std::ranges::sort(tier.parts, {}, &ScaleTier::Part::role);
}

void Builder::cluster_names(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  constexpr std::string_view kGroups[] = {"labels",       "label_values", "taints",     "resources",
                                          "accelerators", "api_versions", "annotations"};
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    ClusterNames made;
    made.name = entry.at.text;
    for (const Field& field : entry.fields) {
      if (field.name == "source" || field.name == "notes") continue;
      const std::size_t dot = field.name.find('.');
      const std::string_view group = field.name.substr(0, dot);
      if (dot == std::string_view::npos || std::ranges::find(kGroups, group) == std::end(kGroups)) {
        reader.complain(field.cell, fmt::format("unknown group '{}'", group),
                        fmt::format("groups: {}", fmt::join(kGroups, ", ")));
        continue;
      }
      const std::string_view key = field.name.substr(dot + 1);
      std::string name(field.name);
      if (group == "accelerators") {
        const Accelerator* found = catalog.find_accelerator(key);
        if (!found) {
          reader.complain(field.cell, fmt::format("unknown accelerator '{}'", key), {},
                          did_you_mean(key, accelerator_names(catalog)));
          continue;
        }
        name = fmt::format("accelerators.{}", found->name);
      }
      if (group == "taints" && !is_taint(field.cell.text)) {
        reader.complain(field.cell, fmt::format("'{}' is not a taint", field.cell.text),
                        "nvidia.com/gpu=present:NoSchedule");
      }
      const std::optional<SourceId> source = sources.find(field.cell.source);
      if (!source) {
        reader.complain(field.cell, fmt::format("unknown source '{}'", field.cell.source),
                        "give it an entry in sources.yaml");
      }
      made.names[name] = {std::string(field.cell.text), source.value_or(SourceId::user)};
    }
    catalog.cluster_names.push_back(std::move(made));
  }
}

}  // namespace reckon::catalog_text
