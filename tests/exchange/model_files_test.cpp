#include "exchange/model_files.h"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <fstream>

using namespace reckon;
using Catch::Matchers::Contains;

namespace {

/// A folder of its own, gone with the test.
struct Folder {
  Folder() {
    path = std::filesystem::temp_directory_path() /
           ("reckon_model_files_" + std::to_string(::getpid()));
    std::filesystem::create_directories(path / "vit");
  }
  ~Folder() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
  }
  std::filesystem::path path;
};

ScenarioFile scenario_with(const Folder& folder, const std::string& config) {
  ScenarioFile file;
  file.directory = folder.path;
  file.places.file = "s.yaml";
  file.places.set("workload.model", {"s.yaml", 3, 3});
  file.scenario.workload.emplace();
  file.scenario.workload->model = ModelFromHuggingFace{config};
  return file;
}

const std::string kGpt2File = R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12,
  "n_positions": 1024, "vocab_size": 50257})";
const std::string kLlama = R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
  "max_position_embeddings": 512, "num_attention_heads": 4, "num_hidden_layers": 2,
  "vocab_size": 100})";
const std::string kVitFile = R"({"model_type": "vit", "hidden_size": 64, "intermediate_size": 128,
  "num_attention_heads": 4, "num_hidden_layers": 2, "patch_size": 16, "image_size": 32,
  "num_labels": 10})";

}  // namespace

TEST_CASE("a scenario's config file becomes dimensions") {
  const Folder folder;
  folder.write("gpt2.json", kGpt2File);
  ScenarioFile file = scenario_with(folder, "gpt2.json");
  CHECK(resolve_model_files(file).empty());
  const auto& model = std::get<ModelFromTransformer>(*file.scenario.workload->model);
  CHECK(model.name == "gpt2");
  CHECK(model.dimensions.hidden == 768);
  CHECK(model.dimensions.sequence_length == 1024);
}

TEST_CASE("a folder stands for its config.json, a vision transformer keeps its own dimensions") {
  const Folder folder;
  folder.write("vit/config.json", kVitFile);
  ScenarioFile file = scenario_with(folder, "vit");
  CHECK(resolve_model_files(file).empty());
  CHECK(std::get<ModelFromGraph>(*file.scenario.workload->model).graph.layers().end()[-2].output ==
        Shape{1, 10});
}

TEST_CASE("a rotary model asks for the sequence length at the scenario's place") {
  const Folder folder;
  folder.write("llama.json", kLlama);
  ScenarioFile file = scenario_with(folder, "llama.json");
  CHECK_THAT(format(resolve_model_files(file)),
             Contains("s.yaml:3:3: error: the model takes sequences of up to 512 tokens"));
  file.scenario.workload->sequence_length = 256;
  CHECK(resolve_model_files(file).empty());
  CHECK(std::holds_alternative<ModelFromTransformer>(*file.scenario.workload->model));
}

TEST_CASE("files that cannot be read and files with mistakes are told for all jobs at once") {
  const Folder folder;
  folder.write("bad.json", R"({"model_type": "gpt2"})");
  ScenarioFile file = scenario_with(folder, "absent.json");
  JobSpec job;
  job.name = "second";
  job.workload.model = ModelFromHuggingFace{"bad.json"};
  file.scenario.jobs.push_back(job);
  const std::string errors = format(resolve_model_files(file));
  CHECK_THAT(errors, Contains("s.yaml:3:3: error: cannot read the model's config"));
  CHECK_THAT(errors, Contains("bad.json") && Contains("key 'n_embd' is missing") &&
                         Contains("key 'n_layer' is missing"));
}
