#include "sim/scenario/artifact/json_write.h"

#include "sim/scenario/artifact/json.h"

namespace reckon::artifact {

/// The input is that of an InputLayer; a graph that was never made has none.
WrittenModel written(const ModelGraph& model) {
  WrittenModel parts{.name = model.name(),
                     .unit = model.sample_unit(),
                     .input = {},
                     .layers = {model.layers().begin(), model.layers().end()}};
  for (const Layer& layer : parts.layers)
    if (parts.input.empty() && std::holds_alternative<InputLayer>(layer.op))
      parts.input = layer.output;
  return parts;
}

Json json_of(const RunArtifact& artifact) { return to_json(artifact); }
Json json_of(const PlannedStrategy& strategy) { return to_json(strategy); }
Json json_of(const ModelGraph& model) { return to_json(model); }

}  // namespace reckon::artifact
