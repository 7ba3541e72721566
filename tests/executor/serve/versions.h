#pragma once
#include <cstdlib>
#include <filesystem>
#include <span>
#include <vector>

#include "executor/serve/served_model.h"
#include "executor/train/checkpoint/checkpoint_shard.h"
#include "executor/train/parameters.h"

// Versions of a model with made-up weights, in a folder of the test's own.
namespace reckon::test {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/reckon-serve-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A run that ended, all of whose weights are `value`.
inline std::filesystem::path run_with(const std::filesystem::path& folder, const ModelGraph& model,
                                      float value) {
  const auto run = folder / "run";
  std::filesystem::create_directories(run);
  const ParameterLayout layout = parameter_layout(model);
  const std::vector<float> weights(layout.count, value);
  std::vector<StateTensor> tensors;
  for (const ParameterSlot& slot : layout.slots)
    tensors.push_back({whole_tensor(slot.name, slot.shape),
                       std::as_bytes(std::span(weights).subspan(slot.first, slot.count))});
  write_shard(run / "model.safetensors", {}, tensors);
  return run;
}

inline ModelVersion add_version(const Folder& folder, const ModelGraph& model, float value) {
  return export_version(run_with(folder.path(), model, value), model, "name: test\n",
                        folder.path() / "model");
}

inline std::vector<float> instance_of(const ServedModel& model) {
  return std::vector<float>(model.input_size(), 0.5f);
}

}  // namespace reckon::test
