#include "report/catalog/model_view.h"
#include "report/json_parts.h"

namespace reckon {
namespace {

Json published_json(const ModelSheet& s, const Catalog& catalog) {
  if (!s.published) return nullptr;
  const auto value = [](const std::optional<Fact<double>>& fact) {
    return fact ? number(fact->value) : Json(nullptr);
  };
  const PublishedModel& p = *s.published;
  const SourceId source = (p.parameters ? p.parameters : p.forward_macs)->source;
  return {{"parameters", value(p.parameters)},
          {"active_parameters", value(p.active_parameters)},
          {"forward_macs", value(p.forward_macs)},
          {"source", catalog.sources.at(std::size_t(source)).reference},
          {"notes", p.notes}};
}

}  // namespace

std::string model_json(const ModelSheet& s, const Catalog& catalog) {
  const ModelGraph& m = s.model;
  Json out = head("model show");
  out["model"] = m.name();
  out["sample"] = to_text(m.sample_unit());
  out["sequence_length"] =
      m.sample_unit() == SampleUnit::sequence ? Json(m.sequence_length()) : Json(nullptr);
  out["parameters"] = m.parameters();
  out["active_parameters"] = m.active_parameters();
  out["trainable_parameters"] = m.trainable_parameters();
  out["forward_flops"] = number(m.forward_flops().v);
  out["backward_flops"] = number(m.backward_flops().v);
  out["model_flops"] = number(m.model_flops().v);
  out["forward_macs"] = number(m.forward_macs());
  out["activation_bytes"] = number(m.saved_bytes(bytes_per_element(s.precision)).v);
  out["published"] = published_json(s, catalog);
  out["verified"] = s.published && s.published->parameters.has_value();
  out["notes"] = s.notes;
  out["precision"] = to_text(s.precision);
  out["optimizer"] = to_text(s.optimizer);
  out["batch_per_accelerator"] = s.batch;
  out["accelerator"] = s.accelerator ? Json(s.accelerator->name) : Json(nullptr);
  out["layer_groups"] = Json::array();
  for (const LayerGroupCount& g : s.groups)
    out["layer_groups"].push_back({{"name", g.name},
                                   {"groups", g.groups},
                                   {"layers", g.layers},
                                   {"parameters", g.parameters},
                                   {"trainable_parameters", g.trainable},
                                   {"forward_flops", number(g.forward.v)},
                                   {"backward_flops", number(g.backward.v)},
                                   {"activation_bytes", number(g.saved.v)}});
  out["memory"] = Json::array();
  for (const MemoryCase& c : s.memory) {
    Json entry = {{"strategy", c.strategy}};
    entry.update(memory_object(c.memory));
    if (!s.accelerator) entry["available_bytes"] = nullptr;
    entry["fits"] = s.accelerator ? Json(c.memory.fits()) : Json(nullptr);
    const Accelerator* holder = smallest_holder(catalog, s.precision, c.memory.required());
    entry["smallest_accelerator"] = holder ? Json(holder->name) : Json(nullptr);
    out["memory"].push_back(std::move(entry));
  }
  return dump(out, 2);
}

}  // namespace reckon
