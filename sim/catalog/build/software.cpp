#include <algorithm>

#include "sim/catalog/build/build.h"
#include "sim/catalog/files/entry.h"
#include "sim/model/zoo/zoo.h"

namespace reckon::catalog_text {
namespace {

Parsed<Samples> parse_samples(std::string_view text) {
  return parse_count(text).map([](double v) { return Samples{v}; });
}

Parsed<double> parse_seconds_of_cpu(std::string_view text) {
  return parse_duration(text).map([](Seconds s) { return s.count(); });
}

bool ends_with_unit(std::string_view key, std::string_view unit) {
  return key.size() > unit.size() && key.ends_with(unit);
}

/// A number of operations.yaml: its unit is the end of its key; a text may bring the same kind of
/// unit along.
Parsed<double> parse_by_key(std::string_view key, std::string_view text) {
  const Parsed<double> bare = parse_number(text);
  if (ends_with_unit(key, "_fraction")) return parse_fraction(text);
  if (bare) return bare;
  if (ends_with_unit(key, "_bytes_per_s_per_vcpu") ||
      ends_with_unit(key, "_bytes_per_s_per_node")) {
    return parse_bandwidth(text).map([](BytesPerSecond v) { return v.v; });
  }
  if (ends_with_unit(key, "_flop_per_s_per_vcpu")) {
    return parse_flop_rate(text).map([](FlopsPerSecond v) { return v.v; });
  }
  if (ends_with_unit(key, "_bytes")) return parse_bytes(text).map([](Bytes v) { return v.v; });
  if (ends_with_unit(key, "_s")) return parse_seconds_of_cpu(text);
  return bare;
}

/// What code does with the number follows from its unit: it becomes a duration, a price, an int.
Most most_by_key(std::string_view key) {
  if (ends_with_unit(key, "_s")) return most_of<Seconds>();
  if (ends_with_unit(key, "_usd_per_hour")) return {kDearestHour, most_of<UsdPerSecond>().text};
  if (ends_with_unit(key, "_count")) return {1e9, "1e9"};
  if (ends_with_unit(key, "_fraction")) return {1000, "1000"};
  if (ends_with_unit(key, "_bytes")) return most_of<Bytes>();
  return most_of<double>();
}

bool has_unit(std::string_view key) {
  for (const char* unit : {"_s", "_fraction", "_count", "_usd_per_hour", "_bytes", "_per_vcpu",
                           "_per_node", "_per_gb"}) {
    if (ends_with_unit(key, unit)) return true;
  }
  return false;
}

}  // namespace

Fact<double> number_by_key(Reader& reader, std::string_view key) {
  const auto parse = [key](std::string_view text) { return parse_by_key(key, text); };
  return reader.fact<double>(key, parse, Need::not_negative, most_by_key(key));
}

void Builder::sources(std::span<const Entry> entries) {
  catalog.sources.push_back({"user", "the scenario or the user's own catalog", ""});
  const SourceTable table(catalog.sources);
  for (const Entry& entry : entries) {
    Reader reader(texts, table, entry);
    Source made;
    made.id = entry.at.text;
    made.reference = reader.text("reference");
    if (made.reference.empty())
      reader.complain("reference", "'reference' is missing",
                      "page, paper with equation, or repository@commit path");
    const bool general = reader.flag("general_knowledge", "true", "");
    if (!general) made.retrieved = reader.iso_date("retrieved");
    if (made.id == "user") reader.complain(entry.at, "'user' is the name of the scenario itself");
    reader.finish();
    catalog.sources.push_back(std::move(made));
  }
  // Ids are positions; the order of entries in the file must not change them.
  std::sort(catalog.sources.begin() + 1, catalog.sources.end(),
            [](const Source& a, const Source& b) { return a.id < b.id; });
}

void Builder::published_models(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  const std::vector<std::string> names = zoo_names();
  const auto count = [](std::string_view text) { return parse_number(text); };
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    PublishedModel made;
    made.model = reader.text("model");
    reader.reference(
        "model", "model of the zoo",
        [&](std::string_view name) {
          // OWNER/NAME: published weights of a config.json that the zoo has no name for.
          return name.find('/') != std::string_view::npos ||
                 std::ranges::find(names, name) != names.end();
        },
        [&] { return names; });
    made.parameters = reader.optional_fact<double>("parameters", count);
    made.active_parameters = reader.optional_fact<double>("active_parameters", count);
    made.forward_macs = reader.optional_fact<double>("forward_gmacs", scaled<double>(1e9));
    made.notes = reader.text("notes");
    catalog.published_models.push_back(std::move(made));
  }
}

void Builder::datasets(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    Dataset made;
    made.name = entry.at.text;
    made.aliases = reader.lines("aliases");
    made.unit = reader.word("unit", from_text<SampleUnit>, texts_of<SampleUnit>)
                    .value_or(SampleUnit::image);
    made.samples = reader.fact<Samples>("samples", parse_samples);
    made.validation_samples =
        reader.fact<Samples>("validation_samples", parse_samples, Need::not_negative);
    made.bytes_per_sample = reader.fact<Bytes>("bytes_per_sample", parse_bytes);
    made.decode_cpu_seconds =
        reader.fact<double>("decode", parse_seconds_of_cpu, Need::not_negative);
    reader.finish();
    catalog.datasets.push_back(std::move(made));
  }
}

void Builder::convergence(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  const std::vector<std::string> names = zoo_names();
  std::vector<std::string> known;
  for (const Dataset& d : catalog.datasets) known.push_back(d.name);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    ConvergencePoint made;
    made.model = reader.text("model");
    reader.reference(
        "model", "model of the zoo",
        [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); },
        [&] { return names; });
    made.dataset = reader.text("dataset");
    reader.reference(
        "dataset", "dataset",
        [&](std::string_view name) { return std::ranges::find(known, name) != known.end(); },
        [&] { return known; });
    made.accuracy = reader.fact<double>("accuracy", parse_fraction).value;
    if (std::string start = reader.text("starts_from"); !start.empty())
      made.starts_from = std::move(start);
    made.sequence_length = reader.integer("sequence_length", 0, 1);
    made.global_batch = reader.required_integer("global_batch", 1);
    made.samples = reader.fact<Samples>("samples", parse_samples);
    made.runs = reader.required_integer("runs", 1);
    reader.text("notes");
    reader.finish();
    catalog.convergence.push_back(std::move(made));
  }
}

void Builder::storages(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    Storage made;
    made.name = entry.at.text;
    made.aliases = reader.lines("aliases");
    made.provider = provider_in(reader);
    made.is_default = reader.flag("default", "true", "");
    made.read_per_node = reader.fact<BytesPerSecond>("read_per_node", parse_bandwidth);
    made.write_per_node = reader.fact<BytesPerSecond>("write_per_node", parse_bandwidth);
    made.latency = reader.fact<Seconds>("latency", parse_duration, Need::not_negative);
    reader.finish();
    catalog.storages.push_back(std::move(made));
  }
}

void Builder::operations(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  for (const Entry& group : entries) {
    Reader reader(texts, sources, group);
    for (const Field& field : group.fields) {
      if (field.name == "source") continue;
      const std::string_view key = field.name;
      if (!has_unit(key)) {
        reader.complain(
            field.cell, fmt::format("the key '{}' does not end with a unit", key),
            "units: _s, _fraction, _count, _usd_per_hour, _bytes, _bytes_per_s_per_vcpu, "
            "_bytes_per_s_per_node, "
            "_flop_per_s_per_vcpu");
        continue;
      }
      catalog.operations.numbers.insert_or_assign(fmt::format("{}.{}", group.at.text, key),
                                                  number_by_key(reader, key));
    }
  }
}

}  // namespace reckon::catalog_text
