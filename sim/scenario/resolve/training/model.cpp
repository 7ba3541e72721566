#include <fmt/format.h>

#include "sim/base/text/names_like.h"
#include "sim/model/finetune.h"
#include "sim/model/layers.h"
#include "sim/model/names.h"
#include "sim/scenario/resolve/draft.h"

// The model of a training or of a service.
namespace reckon::planning {

ModelUse use_of(const WorkloadSpec& workload) {
  return {.model = workload.model ? &*workload.model : nullptr,
          .container = workload.container ? &*workload.container : nullptr,
          .sequence_length = workload.sequence_length,
          .precision = workload.precision,
          .stack = workload.stack};
}

namespace {

std::optional<ModelGraph> named_model(Draft& draft, const std::string& name,
                                      const std::string& path, std::optional<std::int64_t> length) {
  const std::vector<std::string> names = zoo_names();
  if (!zoo_model(name)) {
    draft.error(path, fmt::format("unknown model '{}'{}", name, did_you_mean(name, names)),
                models_like(name));
    return std::nullopt;
  }
  if (length && !zoo_takes_sequence_length(name)) {
    draft.error("workload.sequence_length", fmt::format("model {} has no sequence length", name),
                "leave sequence_length out");
    return zoo_model(name);
  }
  if (length && (*length < 1 || *length > zoo_longest_sequence(name))) {
    draft.error("workload.sequence_length",
                fmt::format("model {} takes sequences of 1 to {} tokens, not {}", name,
                            zoo_longest_sequence(name), *length));
    return std::nullopt;
  }
  return zoo_model(name, length);
}

std::optional<ModelGraph> made(Draft& draft, std::string_view path, Expected<ModelGraph> model) {
  if (model) return std::move(*model);
  for (const Diagnostic& d : model.error()) draft.error(path, d.what, d.hint);
  return std::nullopt;
}

std::optional<ModelGraph> model_from_layers(Draft& draft, const ModelFromLayers& given) {
  auto model = make_layers("layers", given.layers);
  if (model) return std::move(*model);
  for (LayerMistake& m : model.error()) {
    std::string path = "workload.model.layers";
    if (m.layer) {
      // Items of a list are found by their name, by their index where they have none.
      const LayerText& layer = given.layers[*m.layer];
      const auto name = layer.find("name");
      path += "." + (name == layer.end() ? std::to_string(*m.layer) : name->second);
      if (!m.key.empty()) path += "." + m.key;
    }
    draft.error(path, std::move(m.what), std::move(m.hint));
  }
  return std::nullopt;
}

}  // namespace

std::optional<ModelGraph> resolve_model(Draft& draft, const ModelUse& use) {
  if (use.model == nullptr) {
    if (use.container != nullptr)
      if (const auto* profile = std::get_if<std::string>(&use.container->profile))
        return named_model(draft, *profile, "workload.container.profile", use.sequence_length);
    if (use.container == nullptr)
      draft.error("workload", "the workload has no model", "model: resnet50");
    return std::nullopt;
  }
  if (const auto* named = std::get_if<ModelByName>(use.model))
    return named_model(draft, named->name, "workload.model", use.sequence_length);
  if (const auto* given = std::get_if<ModelFromTransformer>(use.model)) {
    TransformerDimensions dimensions = given->dimensions;
    if (use.sequence_length) dimensions.sequence_length = *use.sequence_length;
    return made(draft, "workload.model", make_transformer(given->name, dimensions));
  }
  if (std::holds_alternative<ModelFromHuggingFace>(*use.model) ||
      std::holds_alternative<ModelFromGraphFile>(*use.model))
    return std::nullopt;  // refused by name before
  if (const auto* given = std::get_if<ModelFromGraph>(use.model)) return given->graph;
  if (use.sequence_length)
    draft.error("workload.sequence_length", "the model has its own length of a sample",
                "leave sequence_length out");
  if (const auto* given = std::get_if<ModelFromLayers>(use.model))
    return model_from_layers(draft, *given);
  return std::nullopt;
}

/// The part of the model that is trained.
std::optional<ModelGraph> resolve_finetune(Draft& draft, const WorkloadSpec& workload,
                                           ModelGraph model) {
  if (!workload.finetune) return model;
  if (workload.finetune->method == "last_layers")
    return made(draft, "workload.finetune", with_last_layers(model, workload.finetune->layers));
  const auto method = from_text<AdapterKind>(workload.finetune->method);
  return made(draft, "workload.finetune",
              with_adapters(model, method.value_or(AdapterKind::lora), workload.finetune->rank));
}

}  // namespace reckon::planning
