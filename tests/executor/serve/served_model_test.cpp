#include "executor/serve/served_model.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "executor/serve/versions.h"
#include "executor/train/checkpoint/durable_file.h"
#include "sim/model/zoo/zoo.h"
#include "support/plans.h"

// Versions as they are exported and loaded, and what a loaded one answers.
using namespace reckon;
using namespace reckon::test;

TEST_CASE("each export is the next version, whole, and nothing is left of one that failed") {
  const Folder folder;
  const ModelGraph model = test::small_mlp();
  CHECK(list_versions(folder.path() / "model").empty());
  CHECK(add_version(folder, model, 0.1f).number == 1);
  CHECK(add_version(folder, model, 0.2f).number == 2);
  std::filesystem::create_directories(folder.path() / "model" / "007");
  std::filesystem::create_directories(folder.path() / "model" / ".3.partial");
  const auto versions = list_versions(folder.path() / "model");
  REQUIRE(versions.size() == 2);
  CHECK(versions.back().directory.filename() == "2");
  CHECK(read_file_text(versions.back().plan()) == "name: test\n");
  CHECK_THROWS_AS(export_version(folder.path() / "nothing", model, "", folder.path() / "model"),
                  ModelVersionError);
  CHECK(list_versions(folder.path() / "model").size() == 2);
}

TEST_CASE("a run of another model is refused") {
  const Folder folder;
  const ModelGraph model = test::small_mlp();
  constexpr std::array<std::int64_t, 1> kHidden{4};
  const ModelGraph other = make_mlp("other", 4, kHidden, 2).value();
  const auto run = run_with(folder.path(), other, 1);
  CHECK_THROWS_WITH(export_version(run, model, "", folder.path() / "model"),
                    Catch::Contains("are not those of"));
}

TEST_CASE("a flipped bit in a version is found before it answers") {
  const Folder folder;
  const ModelGraph model = test::small_mlp();
  const ModelVersion version = add_version(folder, model, 0.1f);
  auto bytes = read_bytes(version.weights());
  bytes.back() ^= std::byte{1};
  const std::array parts{std::span<const std::byte>(bytes)};
  write_durably(version.weights(), parts);
  Workers workers(1);
  CHECK_THROWS_AS(ServedModel(model, version, 16, workers), CheckpointError);
}

TEST_CASE("a version that an older reckon exported is refused with what to do") {
  const Folder folder;
  const ModelGraph model = test::small_mlp();
  const ModelVersion version = add_version(folder, model, 0.1f);
  std::filesystem::rename(version.weights(), version.directory / "model.ckpt");
  Workers workers(1);
  CHECK_THROWS_WITH(ServedModel(model, version, 16, workers),
                    Catch::Contains("model.ckpt was exported by an older reckon") &&
                        Catch::Contains("export the run again"));
}

TEST_CASE("a batch answers as its instances do one by one") {
  const Folder folder;
  const ModelGraph network = test::small_mlp();
  Workers workers(1);
  ServedModel model(network, add_version(folder, network, 0.01f), 16, workers);
  std::vector<std::vector<float>> instances(5, instance_of(model));
  for (std::size_t k = 0; k < instances.size(); ++k) instances[k].front() = float(k);
  std::vector<const std::vector<float>*> all;
  for (const auto& instance : instances) all.push_back(&instance);
  const auto together = model.predict(all);
  for (std::size_t k = 0; k < instances.size(); ++k) {
    const std::array one{all[k]};
    const auto alone = model.predict(one).front();
    REQUIRE(alone.size() == model.output_size());
    for (std::size_t i = 0; i < alone.size(); ++i)
      CHECK(together[k][i] == Approx(alone[i]).epsilon(1e-4));
  }
}

TEST_CASE("all memory is made at load, and more sizes of batches take no more of it") {
  const Folder folder;
  const ModelGraph network = test::small_mlp();
  const ModelVersion version = add_version(folder, network, 0.01f);
  Workers workers(1);
  ServedModel model(network, version, 16, workers);
  const Bytes at_load = model.activation_memory();
  const std::vector<float> instance = instance_of(model);
  for (std::size_t size = 1; size <= 16; ++size) {
    const std::vector<const std::vector<float>*> all(size, &instance);
    CHECK(model.predict(all).size() == size);
    CHECK(model.activation_memory().v == at_load.v);
  }
  // Nothing is kept for a backward pass.
  const GraphRuntime<float> training(network, {.batch = 16}, workers);
  CHECK(at_load.v < training.activation_memory().v);
}

TEST_CASE("a model that has warmed up answers as before, and says what batches take alone") {
  const Folder folder;
  const ModelGraph network = test::small_mlp();
  Workers workers(1);
  ServedModel model(network, add_version(folder, network, 0.01f), 7, workers);
  const std::vector<float> one = instance_of(model);
  const std::vector<const std::vector<float>*> instances{&one};
  const auto before = model.predict(instances);
  const std::vector<TimedBatch> timed = model.warm_up(std::chrono::minutes(1));
  REQUIRE(timed.size() == 4);
  for (std::size_t k = 0; k < timed.size(); ++k) {
    CHECK(timed[k].instances == std::array{1, 2, 4, 7}[k]);
    CHECK(timed[k].time.count() > 0);
  }
  CHECK(model.predict(instances) == before);
  CHECK(model.warm_up(std::chrono::milliseconds(0)).front().instances == 1);  // one pass at least
}

TEST_CASE("what a row of a larger pass held before does not enter another's answer") {
  const Folder folder;
  const ModelGraph network = test::small_mlp();
  Workers workers(1);
  const ModelVersion version = add_version(folder, network, 0.01f);
  ServedModel used(network, version, 7, workers), fresh(network, version, 7, workers);
  const std::vector<float> loud(used.input_size(), 1e6f), quiet = instance_of(used);
  used.predict(std::vector<const std::vector<float>*>(7, &loud));
  const std::vector<const std::vector<float>*> five(5, &quiet);
  CHECK(used.predict(five) == fresh.predict(five));
}

TEST_CASE("weights that are no numbers are not loaded") {
  const Folder folder;
  const ModelGraph network = test::small_mlp();
  Workers workers(1);
  const auto load = [&](float value) {
    ServedModel model(network, add_version(folder, network, value), 1, workers);
  };
  CHECK_THROWS_WITH(load(NAN),
                    Catch::Contains("number 0 of 'hidden.0.linear.weight' is not a number"));
  CHECK_THROWS_WITH(load(INFINITY),
                    Catch::Contains("number 0 of 'hidden.0.linear.weight' is infinite"));
}
