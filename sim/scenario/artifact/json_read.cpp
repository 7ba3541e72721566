#include "sim/scenario/artifact/json_read.h"

#include "sim/scenario/artifact/json.h"

namespace reckon::artifact {

void Reader::read_number(const Json& json, double& value, const Where& at) {
  if (json.is_number()) return void(value = json.get<double>());
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (json == kInfinity)
    value = kInfinite;
  else if (json == kMinusInfinity)
    value = -kInfinite;
  else if (json == kNotANumber)
    value = std::numeric_limits<double>::quiet_NaN();
  else
    wrong(at, "no number");
}

/// Made again and compared: its shapes follow from its layers.
void Reader::read_model(const Json& json, ModelGraph& model, const Where& at) {
  WrittenModel written;
  const std::size_t before = problems_.size();
  read_fields(json, written, at);
  if (problems_.size() != before) return;
  const std::vector<Layer> given = written.layers;
  auto made = ModelGraph::make(std::move(written.name), written.unit, std::move(written.input),
                               std::move(written.layers));
  if (!made) {
    for (const Diagnostic& problem : made.error()) wrong(at, problem.what);
    return;
  }
  for (std::size_t k = 0; k < given.size(); ++k) {
    const Layer& own = made->layers()[k];
    if (own.id != given[k].id || own.output != given[k].output)
      wrong(at, fmt::format("the shape of layer '{}' does not follow from its inputs", own.name));
  }
  model = std::move(*made);
}

Expected<RunArtifact> artifact_of(const Json& json, const std::string& file) {
  Reader reader(file);
  RunArtifact artifact;
  reader.read(json, artifact, Where{});
  Diagnostics problems = reader.take_problems();
  if (problems.empty()) problems = contradictions_of(artifact, file);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return artifact;
}

}  // namespace reckon::artifact
