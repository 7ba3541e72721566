#include "report/catalog/model_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/catalog/rows.h"
#include "report/text.h"
#include "sim/base/text/lower_case.h"
#include "sim/base/unit_text.h"
#include "sim/model/zoo/zoo.h"

namespace reckon {
namespace {

std::string source_of(const Catalog& catalog, SourceId id, const std::string& notes) {
  const Source& source = catalog.sources.at(std::size_t(id));
  return notes.empty() ? source.reference : fmt::format("{}; {}", source.reference, notes);
}

/// "the same" or "+0.55 %".
std::string against_published(double ours, double published) {
  const double change = 100 * (ours / published - 1);
  return ours == published          ? "the same"
         : std::abs(change) < 0.005 ? "the same to four digits"
                                    : fmt::format("ours {:+.2f} %", change);
}

std::string model_head(const ModelSheet& s) {
  const ModelGraph& m = s.model;
  std::string what = fmt::format("{}s", to_text(m.sample_unit()));
  if (m.sample_unit() == SampleUnit::sequence)
    what += fmt::format(" of {} tokens", format_count(double(m.sequence_length())));
  else
    what += " of " + to_text(m.layers().front().output);
  return fmt::format("{}: {}, {} layers\n", m.name(), what, m.layers().size());
}

std::string totals(const ModelSheet& s, const Catalog& catalog) {
  const ModelGraph& m = s.model;
  const bool sequence = m.sample_unit() == SampleUnit::sequence;
  const double tokens = double(m.sequence_length());
  Columns rows(Columns::Kind::facts);
  const auto published = [&](const std::optional<Fact<double>>& fact, double ours,
                             const std::string& text) {
    return fact ? fmt::format("published {}: {} ({})", text, against_published(ours, fact->value),
                              source_of(catalog, fact->source, s.published->notes))
                : std::string();
  };
  const PublishedModel none;
  const PublishedModel& p = s.published ? *s.published : none;
  const auto count = [](const std::optional<Fact<double>>& fact) {
    return fact ? format_count(fact->value) : std::string();
  };
  const auto parameters = double(m.parameters()), active = double(m.active_parameters());
  const auto trainable = double(m.trainable_parameters());
  const bool confirmed = p.parameters.has_value();
  rows.row({"parameters", format_count(parameters),
            confirmed ? published(p.parameters, parameters, count(p.parameters))
                      : "unverified: no published count confirms it"});
  if (active != parameters)
    rows.row({"active a token", format_count(active),
              published(p.active_parameters, active, count(p.active_parameters))});
  if (trainable != parameters)
    rows.row({"trainable", format_count(trainable),
              fmt::format("{} of the parameters", format_percent(trainable / parameters))});
  const auto flops = [&](const char* name, Flops f, std::string note) {
    if (sequence)
      note =
          fmt::format("{} a token{}{}", format_flops(f / tokens), note.empty() ? "" : "; ", note);
    rows.row({name, format_flops(f) + " a sample", std::move(note)});
  };
  flops("forward", m.forward_flops(), "");
  flops("backward", m.backward_flops(), "");
  flops("model FLOPs", m.model_flops(), "what MFU counts, forward and backward");
  if (!sequence)
    rows.row(
        {"forward MACs", fmt::format("{:.3f} GMAC", m.forward_macs() / 1e9),
         published(p.forward_macs, m.forward_macs(),
                   p.forward_macs ? fmt::format("{:.3f} GMAC", p.forward_macs->value / 1e9) : "")});
  rows.row({"activations",
            format_bytes(m.saved_bytes(bytes_per_element(s.precision))) + " a sample",
            fmt::format("kept for the backward pass in {}", to_text(s.precision))});
  return rows.text();
}

std::string notes(const ModelSheet& s) {
  std::string out;
  for (const std::string& note : s.notes) out += fmt::format("note: {}\n", note);
  return out;
}

std::string groups(const ModelSheet& s) {
  Columns rows;
  rows.row({"", "layers", "parameters", "share", "forward", "backward", "activations"});
  const double all = double(s.model.parameters());
  for (const LayerGroupCount& g : s.groups) {
    const bool bare = g.parameters == 0;
    rows.row(
        {g.name,
         g.groups > 1 ? fmt::format("{} x {}", g.groups, g.layers) : fmt::format("{}", g.layers),
         bare ? "" : format_count(double(g.parameters)),
         bare ? "" : format_percent(double(g.parameters) / all), format_flops(g.forward),
         format_flops(g.backward), g.saved.v > 0 ? format_bytes(g.saved) : ""});
  }
  return "\nBy layer group, one sample\n" + rows.text();
}

std::string memory_verdict(const ModelSheet& s, const MemoryCase& c, const Catalog& catalog) {
  const Bytes required = c.memory.required();
  if (s.accelerator)
    return c.memory.fits_at(kRiskOfAPlan) ? "fits"
           : c.memory.fits()              ? fmt::format("may fit, P(out of memory) {}",
                                                        probability_text(c.memory.out_of_memory()))
                             : fmt::format("{:.2g} x too large", required / c.memory.available);
  const Accelerator* holder = smallest_holder(catalog, s.precision, required);
  return holder ? fmt::format("{} ({})", holder->name, format_bytes(holder->memory.value)) : "none";
}

std::string memory_cases(const ModelSheet& s, const Catalog& catalog) {
  Columns rows;
  rows.row(
      {"", "parameters", "gradients", "optimizer", "activations", "workspace", "gathered", "all",
       s.accelerator
           ? fmt::format("{} ({})", s.accelerator->name, format_bytes(s.accelerator->memory.value))
           : "smallest that holds it"});
  for (const MemoryCase& c : s.memory) {
    const MemoryEstimate& m = c.memory;
    const auto bytes = [](Bytes b) { return b.v > 0 ? format_bytes(b) : std::string(); };
    rows.row({c.strategy, bytes(m.parameters), bytes(m.gradients), bytes(m.optimizer),
              bytes(m.activations), bytes(m.workspace), bytes(m.gathered), bytes(m.required()),
              memory_verdict(s, c, catalog)});
  }
  return fmt::format("\nMemory of one accelerator: {}, {}, batch {}, {} for the framework\n",
                     to_text(s.precision), to_text(s.optimizer), s.batch,
                     format_bytes(s.memory.front().memory.reserve)) +
         rows.text();
}

}  // namespace

const Accelerator* smallest_holder(const Catalog& catalog, Precision precision, Bytes required) {
  const Accelerator* best = nullptr;
  for (const Accelerator& a : catalog.accelerators) {
    const bool sold =
        std::ranges::any_of(catalog.locations, [&](const Location& l) { return l.item == a.name; });
    if (!sold || a.kind != AcceleratorKind::gpu || !a.peak_for(precision)) continue;
    if (a.memory.value < required || (best && best->memory.value <= a.memory.value)) continue;
    best = &a;
  }
  return best;
}

std::string model_table(const ModelSheet& sheet, const Catalog& catalog) {
  return model_head(sheet) + totals(sheet, catalog) + notes(sheet) + groups(sheet) +
         memory_cases(sheet, catalog);
}

CatalogTable list_models(const Catalog& catalog, std::span<const std::string> words) {
  CatalogTable table{
      "", {"model", "sample", "parameters", "active", "TFLOP a sample", "published", "source"}, {}};
  for (const std::string& name : zoo_names()) {
    const ModelGraph model = zoo_model(name).value();
    const PublishedModel* published = catalog.find_published(name);
    const std::string sample = model.sample_unit() == SampleUnit::sequence
                                   ? fmt::format("{} tokens", model.sequence_length())
                                   : fmt::format("{}s of {}", to_text(model.sample_unit()),
                                                 to_text(model.layers().front().output));
    const bool all = std::ranges::all_of(words, [&](const std::string& word) {
      return lower_case(name + " " + sample).find(lower_case(word)) != std::string::npos;
    });
    if (!all) continue;
    const bool counted = published != nullptr && published->parameters.has_value();
    table.rows.push_back(
        {name, sample, model.parameters(), model.active_parameters(), model.model_flops().v / 1e12,
         counted ? fmt::format("{:.0f}", published->parameters->value) : "unverified",
         counted ? catalog_rows::id_of(catalog, published->parameters->source) : ""});
  }
  return table;
}

}  // namespace reckon
