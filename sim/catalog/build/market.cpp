#include "sim/catalog/build/build.h"
#include "sim/catalog/files/entry.h"

namespace reckon::catalog_text {
namespace {

/// What may be located or priced, under its canonical name; nullopt: unknown.
std::optional<std::string> item_name(const Catalog& catalog, const Provider& provider,
                                     std::string_view name) {
  if (const Accelerator* found = catalog.find_accelerator(name)) return found->name;
  if (const TpuSlice* found = catalog.find_slice(name)) return found->name;
  if (const Machine* found = catalog.find_machine(provider, name)) return found->name;
  return std::nullopt;
}

std::vector<std::string> item_names(const Catalog& catalog, const Provider& provider) {
  std::vector<std::string> result = accelerator_names(catalog);
  for (const TpuSlice& slice : catalog.slices) result.push_back(slice.name);
  for (std::string& machine : machine_names(catalog, provider))
    result.push_back(std::move(machine));
  return result;
}

bool of_custom_family(Offering::Covers covers) {
  return covers == Offering::Covers::vcpu || covers == Offering::Covers::memory_gib;
}

/// The priced item as the catalog names it; what it must be follows from what the price covers.
void read_item(Reader& reader, const Catalog& catalog, Offering& made) {
  const std::string name = reader.text("item");
  const std::string_view noun = made.covers == Offering::Covers::accelerator ? "accelerator"
                                : made.covers == Offering::Covers::slice     ? "TPU slice"
                                : of_custom_family(made.covers)              ? "custom family"
                                                                             : "machine";
  const auto find = [&](std::string_view text) -> std::optional<std::string> {
    if (made.covers == Offering::Covers::accelerator) {
      const Accelerator* found = catalog.find_accelerator(text);
      return found ? std::optional(found->name) : std::nullopt;
    }
    if (made.covers == Offering::Covers::slice) {
      const TpuSlice* found = catalog.find_slice(text);
      return found ? std::optional(found->name) : std::nullopt;
    }
    if (of_custom_family(made.covers)) {
      const CustomFamily* found = catalog.find_custom_family(made.provider, text);
      return found ? std::optional(found->name) : std::nullopt;
    }
    const Machine* found = catalog.find_machine(made.provider, text);
    return found ? std::optional(found->name) : std::nullopt;
  };
  made.item = find(name).value_or(name);
  if (find(name)) return;
  reader.reference(
      "item", noun, [](auto) { return false; }, [&] { return item_names(catalog, made.provider); });
}

}  // namespace

void Builder::locations(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    Location made;
    made.provider = provider_in(reader);
    const std::string item = reader.text("item");
    const std::optional<std::string> known = item_name(catalog, made.provider, item);
    made.item = known.value_or(item);
    if (!known) {
      reader.reference(
          "item", "accelerator, TPU slice or machine", [](auto) { return false; },
          [&] { return item_names(catalog, made.provider); });
    }
    made.region = reader.text("region");
    made.zones = strings(reader.text("zones"));
    made.elsewhere = reader.flag("elsewhere", "unknown", "");
    for (const std::string& zone : made.zones) {
      if (!zone.starts_with(made.region)) {
        reader.complain("zones", fmt::format("zone '{}' is not in region '{}'", zone, made.region));
      }
    }
    catalog.locations.push_back(std::move(made));
  }
}

void Builder::regions(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  const auto number = [&](Reader& reader, std::string_view field, auto parse, Region& made) {
    const auto fact = reader.optional_fact<double>(field, parse, Need::not_negative);
    if (fact) made.source = fact->source;
    return fact ? std::optional(fact->value) : std::nullopt;
  };
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    Region made;
    made.provider = provider_in(reader);
    made.name = reader.text("region");
    made.jurisdictions = strings(reader.text("jurisdictions"));
    made.carbon_free = number(reader, "carbon_free", parse_fraction, made);
    if (made.carbon_free.value_or(0) > 1)
      reader.complain("carbon_free", "more than all of the power is free of carbon",
                      "a share such as 0.87 or 87%");
    made.grid_gco2_per_kwh = number(reader, "grid_gco2_per_kwh", scaled<double>(1), made);
    catalog.regions.push_back(std::move(made));
  }
}

void Builder::prices(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  const auto per_hour = scaled<UsdPerSecond>(1.0 / 3600);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    Offering made;
    made.provider = provider_in(reader);
    made.covers = reader.word("covers", from_text<Offering::Covers>, texts_of<Offering::Covers>)
                      .value_or(Offering::Covers::machine);
    read_item(reader, catalog, made);
    made.region = reader.text("region");
    if (made.region.empty()) reader.complain("region", "'region' is missing");
    made.zones = strings(reader.text("zones"));
    made.count = reader.integer("count", 1, 1);
    made.on_demand =
        reader.optional_fact<UsdPerSecond>("on_demand_usd_per_hour", per_hour, Need::not_negative);
    made.spot =
        reader.optional_fact<UsdPerSecond>("spot_usd_per_hour", per_hour, Need::not_negative);
    if (!entry.find("on_demand_usd_per_hour") && !entry.find("spot_usd_per_hour")) {
      reader.complain(entry.at, "there is no price",
                      "on_demand_usd_per_hour, spot_usd_per_hour or both");
    }
    made.date = reader.iso_date("date");
    made.suspect = reader.flag("flag", "suspect", "");
    made.notes = reader.text("notes");
    for (const Field& field : entry.fields) made.layer = std::max(made.layer, field.cell.file);
    catalog.offerings.push_back(std::move(made));
  }
}

void Builder::storage_prices(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  constexpr double kMonth = 730 * 3600.0;  // as clouds bill
  const auto per_month = scaled<UsdPerSecond>(1 / kMonth);
  const auto names = [&] {
    std::vector<std::string> result;
    for (const Storage& storage : catalog.storages) result.push_back(storage.name);
    return result;
  };
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    Offering made;
    made.covers = Offering::Covers::storage;
    made.provider = provider_in(reader);
    made.region = reader.text("region");
    const std::string item = reader.text("storage");
    const Storage* storage = catalog.find_storage(item);
    made.item = storage ? storage->name : item;
    reader.reference(
        "storage", "storage", [&](auto) { return storage != nullptr; }, names);
    made.on_demand = reader.fact<UsdPerSecond>("usd_per_gb_month", per_month, Need::not_negative,
                                               {1000 / kMonth, "1,000 USD"});
    made.date = reader.iso_date("date");
    made.notes = reader.text("notes");
    for (const Field& field : entry.fields) made.layer = std::max(made.layer, field.cell.file);
    catalog.offerings.push_back(std::move(made));
  }
}

}  // namespace reckon::catalog_text
