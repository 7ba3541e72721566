#include "sim/scenario/yaml/kueue/flavors.h"

#include <fmt/format.h>

#include <set>

namespace reckon {
namespace {

/// A flavor as it is written: one quota, or one for each resource.
struct WrittenFlavor : KueueFlavorSpec {
  std::vector<KueueFlavorSpec> resources;
};

template <class F>
Fields<F> quota_fields() {
  return {
      number_field<F, int>("nominalQuota", &F::nominal_quota, whole(0, kMostQuota),
                           "GPUs that the queue always has.", "8"),
      number_field<F, std::optional<int>>(
          "borrowingLimit", &F::borrowing_limit, whole(0, kMostQuota),
          "GPUs that it may borrow from its cohort; default: all of them.", "4"),
      number_field<F, std::optional<int>>("lendingLimit", &F::lending_limit, whole(0, kMostQuota),
                                          "GPUs that its cohort may borrow; default: all of them.",
                                          "2"),
  };
}

const Fields<KueueFlavorSpec>& resource_quota_fields() {
  using F = KueueFlavorSpec;
  static const Fields<F> table = [] {
    Fields<F> rows = quota_fields<F>();
    rows.front() = required(rows.front());
    rows.insert(rows.begin(), required(text_field("name", &F::resource,
                                                  "What jobs ask for: a MIG profile, as "
                                                  "mig-devices of the pool has it.",
                                                  "nvidia.com/mig-1g.10gb")));
    return rows;
  }();
  return table;
}

void read_resources(Reader& reader, const YamlNode& node, WrittenFlavor& flavor) {
  std::set<std::string> names;
  reader.each(node, [&](const YamlNode& item) {
    KueueFlavorSpec quota;
    if (!read_fields(reader, item, resource_quota_fields(), quota)) return;
    if (!quota.resource.empty() && !names.insert(quota.resource).second)
      reader.error(item.find("name")->value.at,
                   fmt::format("resource '{}' is there twice", quota.resource), "names are unique");
    flavor.resources.push_back(std::move(quota));
  });
  if (node.kind == YamlNode::Kind::list && node.entries.empty())
    reader.error("the flavor has no resource");
}

const Fields<WrittenFlavor>& flavor_fields() {
  using F = WrittenFlavor;
  Form resources{Form::Kind::list};
  resources.fields = &infos_of<resource_quota_fields>;
  static const Fields<F> table = [&] {
    Fields<F> rows = quota_fields<F>();
    rows.insert(rows.begin(),
                required(text_field<F>("name", &F::name, "The pool whose nodes it is.", "a100")));
    rows.push_back(field<F>("resources", resources, read_resources,
                            "Instead of nominalQuota: a quota for each MIG profile of the pool.",
                            "[{name: nvidia.com/mig-1g.10gb, nominalQuota: 14}]"));
    return rows;
  }();
  return table;
}

/// One quota, or resources.
void check_quotas(Reader& reader, const YamlNode& item) {
  const YamlNode::Entry* resources = item.find("resources");
  if (resources == nullptr) {
    if (!item.has("nominalQuota") && !reader.misspelt("nominalQuota") &&
        !reader.misspelt("resources"))
      reader.error(fmt::format("{} needs 'nominalQuota'", reader.subject()),
                   "nominalQuota: 8, or resources: [{name: nvidia.com/mig-1g.10gb, nominalQuota: "
                   "14}]");
    return;
  }
  for (const char* key : {"nominalQuota", "borrowingLimit", "lendingLimit"})
    if (const auto* beside = item.find(key))
      reader.error(beside->key_at, fmt::format("'{}' stands in each of 'resources'", key),
                   fmt::format("resources: [{{name: nvidia.com/mig-1g.10gb, {}: 2}}]", key));
}

}  // namespace

std::vector<const FieldInfo*> flavor_infos() { return infos_of<flavor_fields>(); }

std::vector<KueueFlavorSpec> read_flavor_list(Reader& reader, const YamlNode& node) {
  std::vector<KueueFlavorSpec> flavors;
  std::set<std::string> names;
  reader.each(node, [&](const YamlNode& item) {
    WrittenFlavor flavor;
    if (!read_fields(reader, item, flavor_fields(), flavor)) return;
    check_quotas(reader, item);
    if (!flavor.name.empty() && !names.insert(flavor.name).second)
      reader.error(item.find("name")->value.at,
                   fmt::format("flavor '{}' is there twice", flavor.name), "names are unique");
    for (KueueFlavorSpec& quota : flavor.resources) {
      quota.name = flavor.name;
      flavors.push_back(std::move(quota));
    }
    if (!item.has("resources")) flavors.push_back(std::move(flavor));
  });
  return flavors;
}

}  // namespace reckon
