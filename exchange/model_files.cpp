#include "exchange/model_files.h"

#include <fmt/format.h>

#include <fstream>
#include <system_error>

#include "exchange/graphs/fx_json.h"
#include "exchange/graphs/onnx_file.h"
#include "exchange/huggingface/huggingface.h"

namespace reckon {
namespace {

// A config.json with 22,000 labels has 1 MB; an ONNX file holds weights, up to protobuf's 2 GB.
constexpr std::size_t kLargestFile = 16 << 20, kLargestGraph = std::size_t{1} << 31;

/// nullopt: it cannot be read, or is too large.
std::optional<std::string> read_text(const std::filesystem::path& path, std::size_t largest) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error || size > largest) return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(size), '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(size))) return std::nullopt;
  return text;
}

class Resolver {
 public:
  explicit Resolver(ScenarioFile& file) : file_(file) {}

  void resolve(WorkloadSpec& workload, const std::string& path) {
    if (!workload.model) return;
    if (const auto* graph = std::get_if<ModelFromGraphFile>(&*workload.model))
      return resolve_graph(workload, *graph, path);
    const auto* given = std::get_if<ModelFromHuggingFace>(&*workload.model);
    if (!given) return;
    std::filesystem::path config = file_.directory / given->config;
    std::error_code error;
    if (std::filesystem::is_directory(config, error)) config /= "config.json";
    const SourcePlace place = file_.places.find(path + ".model.huggingface");
    const auto text = read_text(config, kLargestFile);
    if (!text) {
      add(place, fmt::format("cannot read the model's config '{}'", config.string()),
          "the path is relative to the scenario's folder");
      return;
    }
    auto model = read_huggingface_config(*text, config.string());
    if (!model) {
      errors_.insert(errors_.end(), model.error().begin(), model.error().end());
      return;
    }
    if (model->longest_sequence > 0 && model->sequence_length == 0 && !workload.sequence_length) {
      add(place,
          fmt::format("the model takes sequences of up to {} tokens; how long yours are is not "
                      "said",
                      model->longest_sequence),
          "workload: {sequence_length: 4096}");
      return;
    }
    if (model->longest_sequence == 0 && workload.sequence_length) {
      add(file_.places.find(path + ".sequence_length"), "the model reads no sequences",
          "leave sequence_length out");
      return;
    }
    if (const auto* d = std::get_if<TransformerDimensions>(&model->dimensions)) {
      workload.model = ModelFromTransformer{*d, model->name};
      return;
    }
    auto graph = make_model(*model, workload.sequence_length);
    if (graph) {
      workload.model = ModelFromGraph{std::move(*graph)};
      return;
    }
    for (Diagnostic& d : graph.error()) add(place, std::move(d.what), std::move(d.hint));
  }

  void resolve_graph(WorkloadSpec& workload, const ModelFromGraphFile& given,
                     const std::string& path) {
    const bool onnx = given.format == ModelFromGraphFile::Format::onnx;
    const std::filesystem::path file = file_.directory / given.file;
    const SourcePlace place = file_.places.find(path + (onnx ? ".model.onnx" : ".model.fx"));
    const auto bytes = read_text(file, kLargestGraph);
    if (!bytes)
      return add(place, fmt::format("cannot read the network's graph '{}'", file.string()),
                 "the path is relative to the scenario's folder; 2 GB at most");
    auto graph = onnx ? read_onnx_graph(*bytes, file.string(), workload.sequence_length)
                      : read_fx_graph(*bytes, file.string());
    auto model = graph ? make_graph_model(*graph)
                       : Expected<ImportedGraph>(tl::unexpected<Diagnostics>(graph.error()));
    if (model) {
      workload.model = ModelFromGraph{std::move(model->model)};
      return;
    }
    for (Diagnostic& d : model.error())
      add(d.at.line > 0 ? d.at : place, std::move(d.what), std::move(d.hint));
  }

  Diagnostics take() { return std::move(errors_); }

 private:
  void add(SourcePlace at, std::string what, std::string hint) {
    errors_.push_back({Severity::error, std::move(at), std::move(what), std::move(hint)});
  }

  ScenarioFile& file_;
  Diagnostics errors_;
};

}  // namespace

Diagnostics resolve_model_files(ScenarioFile& file) {
  Resolver resolver(file);
  if (file.scenario.workload) resolver.resolve(*file.scenario.workload, "workload");
  for (JobSpec& job : file.scenario.jobs)
    resolver.resolve(job.workload, "jobs." + job.name + ".workload");
  if (auto& serving = file.scenario.serving; serving && serving->model) {
    WorkloadSpec served;
    served.model = serving->model;
    served.sequence_length = serving->sequence_length;
    resolver.resolve(served, "serving");
    serving->model = served.model;
  }
  return resolver.take();
}

}  // namespace reckon
