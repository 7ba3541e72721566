#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sim/scenario/yaml/layers.h"
#include "sim/scenario/yaml/scenario_yaml.h"

using namespace reckon;

namespace {

/// A directory of files for one test.
class Files {
 public:
  Files() {
    std::string name = (std::filesystem::temp_directory_path() / "reckon-layers-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    directory_ = name;
  }
  ~Files() { std::filesystem::remove_all(directory_); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  std::filesystem::path path(const std::string& name) const { return directory_ / name; }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(path(name).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

 private:
  std::filesystem::path directory_;
};

constexpr const char* kLayersBase = R"(name: base
workload:
  model: resnet50
  dataset: imagenet
  train: {epochs: 90}
  batch_per_accelerator: 64
cluster:
  provider: gcp
  region: us-central1
  pools:
    - name: p100
      machine: n1-standard-16
      accelerator: {type: P100-PCIE-16, count: 2}
      nodes: 3
    - name: servers
      role: parameter_server
      machine: n1-highmem-8
disruptions: {preemption: !exponential {mean: 8h}}
expect: [p95(time) <= 48h, goodput >= 95%]
)";

std::string problems_of(const std::filesystem::path& file) {
  const auto read = read_scenario(file);
  return read ? "" : format(read.error());
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a file that extends another changes what it names and keeps the rest") {
  const Files files;
  files.write("base.yaml", kLayersBase);
  const auto file = files.write("more.yaml", R"(extends: base.yaml
workload: {batch_per_accelerator: 32}
cluster:
  pools:
    - {name: p100, nodes: 5}
    - {name: spare, machine: n1-standard-4}
expect: [goodput >= 90%]
)");
  const auto read = read_scenario(file);
  REQUIRE(read);
  const Scenario& s = read->scenario;
  CHECK(s.name == "base");
  CHECK(s.workload->batch_per_accelerator == 32);
  CHECK(s.workload->train->amount == 90);
  REQUIRE(s.cluster.pools.size() == 3);  // by name: one is changed, one kept, one new
  CHECK(s.cluster.pools[0].nodes.initial == 5);
  CHECK(s.cluster.pools[0].accelerator->count == 2);
  CHECK(s.cluster.pools[1].name == "servers");
  CHECK(s.cluster.pools[2].name == "spare");
  CHECK(s.expect.size() == 1);  // a list without names replaces
}

TEST_CASE("a place points into the file that the value came from") {
  const Files files;
  const auto base = files.write("base.yaml", kLayersBase);
  const auto file =
      files.write("more.yaml", "extends: base.yaml\nworkload:\n  train: {epochs: 1}\n");
  const auto read = read_scenario(file);
  REQUIRE(read);
  CHECK(read->places.find("workload.train.epochs") == SourcePlace{file.string(), 3, 19});
  CHECK(read->places.find("workload.model") == SourcePlace{base.string(), 3, 10});
  CHECK(read->places.find("cluster.pools.p100.nodes") == SourcePlace{base.string(), 14, 14});
}

TEST_CASE("a key without a value takes the base's key away") {
  const Files files;
  files.write("base.yaml", kLayersBase);
  const auto file = files.write(
      "more.yaml", "extends: base.yaml\nworkload: {train: {epochs: null, steps: 1000}}\n");
  const auto read = read_scenario(file);
  REQUIRE(read);
  CHECK(read->scenario.workload->train->unit == TrainLength::Unit::steps);
  // Without it both lengths stand: the mistake is the reader's usual one.
  const auto both =
      files.write("both.yaml", "extends: base.yaml\nworkload: {train: {steps: 1000}}\n");
  CHECK(has(problems_of(both), "workload.train has epochs and steps at once"));
}

TEST_CASE("a distribution is replaced by another and merged with its own kind") {
  const Files files;
  files.write("base.yaml", kLayersBase);
  const auto other = read_scenario(files.write(
      "a.yaml",
      "extends: base.yaml\ndisruptions: {preemption: !weibull {shape: 0.8, scale: 9h}}\n"));
  REQUIRE(other);
  CHECK(std::holds_alternative<WeibullReclaim>(*other->scenario.disruptions.preemption));
  const auto same = read_scenario(files.write(
      "b.yaml", "extends: base.yaml\ndisruptions: {preemption: !exponential {mean: 2h}}\n"));
  REQUIRE(same);
  CHECK(std::get<ExponentialReclaim>(*same->scenario.disruptions.preemption).mean.count() == 7200);
}

TEST_CASE("a mistake in a base names the base and the file that extends it") {
  const Files files;
  const auto base =
      files.write("base/base.yaml", std::string(kLayersBase) + "forcast: {seed: 1}\n");
  const auto file = files.write("more.yaml", "# mine\nextends: base/base.yaml\n");
  const std::string problems = problems_of(file);
  INFO(problems);
  CHECK(has(problems, base.string() + ":20:1: error: unknown key 'forcast'"));
  CHECK(has(problems, file.string() + " extends this file (line 2)"));
}

TEST_CASE("files may extend in a chain, not in a circle and not without end") {
  const Files files;
  files.write("0.yaml", kLayersBase);
  for (int k = 1; k < 20; ++k)
    files.write(fmt::format("{}.yaml", k),
                fmt::format("extends: {}.yaml\nforecast: {{seed: {}}}\n", k - 1, k));
  const auto read = read_scenario(files.path("15.yaml"));  // with 0.yaml 16 files
  REQUIRE(read);
  CHECK(read->scenario.forecast.seed == 15);
  CHECK(has(problems_of(files.path("16.yaml")), "more than 16 files extend one another"));

  const auto a = files.write("a.yaml", "extends: b.yaml\n");
  files.write("b.yaml", "extends: ./a.yaml\n");
  CHECK(has(problems_of(a), "extends goes in a circle"));
  CHECK(has(problems_of(files.write("self.yaml", "extends: self.yaml\n")), "in a circle"));
}

TEST_CASE("what cannot be extended is said with its place") {
  const Files files;
  const auto missing = files.write("missing.yaml", "extends: nowhere.yaml\n");
  CHECK(has(problems_of(missing), "nowhere.yaml: error: there is no such file"));
  CHECK(has(problems_of(missing), "missing.yaml extends this file (line 1)"));
  files.write("list.yaml", "[1, 2]\n");
  CHECK(has(problems_of(files.write("l.yaml", "extends: list.yaml\n")),
            "a scenario must be a map of keys, not a list"));
  CHECK(has(problems_of(files.write("m.yaml", "extends: {a: b}\n")),
            "extends must be a file, not a map"));
  files.write("base.yaml", kLayersBase);
  CHECK(has(problems_of(files.write("t.yaml", "extends: base.yaml\nextends: base.yaml\n")),
            "extends stands once, in a file"));
}

TEST_CASE("a key given twice is still a mistake in a file that extends another") {
  const Files files;
  files.write("base.yaml", kLayersBase);
  const auto file =
      files.write("more.yaml", "extends: base.yaml\nforecast: {seed: 1}\nforecast: {seed: 2}\n");
  CHECK(has(problems_of(file), "more.yaml:3:1: error: key 'forecast' is given twice"));
  const auto names = files.write(
      "names.yaml",
      "extends: base.yaml\ncluster: {pools: [{name: p100, nodes: 1}, {name: p100, nodes: 2}]}\n");
  CHECK(has(problems_of(names), "a second pool is named 'p100'"));
}

TEST_CASE("layers are read over the scenario in order, overrides over them") {
  const Files files;
  const auto base = files.write("base.yaml", kLayersBase);
  const std::vector<std::filesystem::path> layers{
      files.write("1.yaml", "forecast: {seed: 1, replications: 10}\n"),
      files.write("2.yaml", "forecast: {seed: 2}\n")};
  const std::vector<std::string> overrides{"workload.train.epochs=3"};
  const auto read = read_scenario(base, overrides, layers);
  REQUIRE(read);
  CHECK(read->scenario.forecast.seed == 2);
  CHECK(read->scenario.forecast.replications == 10);
  CHECK(read->scenario.workload->train->amount == 3);
  const std::vector<std::filesystem::path> bad{files.write("3.yaml", "- a\n"),
                                               files.path("4.yaml")};
  const auto refused = read_scenario(base, {}, bad);
  REQUIRE_FALSE(refused);
  CHECK(has(format(refused.error()), "3.yaml: error: a layer must be a map of keys, not a list"));
  CHECK(has(format(refused.error()), "4.yaml: error: there is no such file"));
}

TEST_CASE("a relative path in a base is relative to the base") {
  const Files files;
  files.write("base/base.yaml", kLayersBase);
  const std::string trace = "disruptions: {preemption: !trace {file: t.json}}\n";
  files.write("base/trace.yaml", "extends: base.yaml\n" + trace);
  const auto inherited = read_scenario(files.write("a.yaml", "extends: base/trace.yaml\n"));
  REQUIRE(inherited);
  CHECK(directory_of(*inherited, "disruptions.preemption.file") == files.path("base"));
  const auto own = read_scenario(files.write("b.yaml", "extends: base/base.yaml\n" + trace));
  REQUIRE(own);
  CHECK(directory_of(*own, "disruptions.preemption.file") == files.path("b.yaml").parent_path());
  const std::vector<std::string> set{"disruptions.preemption.file=s.json"};
  const auto changed = read_scenario(files.path("a.yaml"), set);
  REQUIRE(changed);
  CHECK(directory_of(*changed, "disruptions.preemption.file") ==
        files.path("a.yaml").parent_path());
}

TEST_CASE("of a file that is no scenario nothing is shown") {
  const Files files;
  const std::string secret = "hunter2-geheim";
  const std::vector<std::string> texts{
      "root:" + secret + ":19000:0:99999:7:::\ndaemon:*:19000:0:99999:7:::\n",
      secret + "\n",
      "\"" + secret + "\"\n",
      "- " + secret + "\n- b\n",
      "{\"auths\": {\"registry\": {\"auth\": \"" + secret + "\"}}}\n",
      secret + ": 1\nother: " + secret + "\n",
      "name: " + secret + "\n" + secret + ": 1\na: " + secret + "\nb: 2\n",
      "apiVersion: v1\nkind: Secret\ndata: {password: " + secret + "}\n",
      "key: [" + secret + "\n",
      "'" + secret + "\n",
      "&" + secret + " a: b\n",
      "a: *" + secret + "\n",
      "!" + secret + " a\n",
      "? [" + secret + "]\n: b\n",
      "a: b\n--- " + secret + "\n",
      "%" + secret + "\n---\na\n",
      secret + ": \"\\q" + secret + "\"\n",
      "\t" + secret + "\n",
  };
  for (const std::string& text : texts) {
    const auto other = files.write("other", text);
    const auto file = files.write("s.yaml", "extends: other\n");
    const std::string problems = problems_of(file);
    INFO(problems);
    CHECK(has(problems, "other"));
    CHECK_FALSE(has(problems, secret));
    CHECK_FALSE(has(problems, "daemon"));
    const auto base = files.write("base.yaml", kLayersBase);
    const std::vector<std::filesystem::path> layers{other};
    const auto refused = read_scenario(base, {}, layers);
    REQUIRE_FALSE(refused);
    CHECK_FALSE(has(format(refused.error()), secret));
  }
}

TEST_CASE("a misspelt key of a base is still told") {
  const Files files;
  files.write("base.yaml", std::string(kLayersBase) + "expct: [p95(time) <= 48h]\n");
  CHECK(has(problems_of(files.write("s.yaml", "extends: base.yaml\n")),
            "unknown key 'expct'; did you mean 'expect'?"));
}

TEST_CASE("a pipe is no base: nobody may ever write into it") {
  const Files files;
  REQUIRE(std::system(("mkfifo '" + files.path("pipe").string() + "'").c_str()) == 0);
  CHECK(has(problems_of(files.write("s.yaml", "extends: pipe\n")),
            "this is a pipe or a device, not a scenario file"));
  CHECK(has(problems_of(files.write("z.yaml", "extends: /dev/zero\n")),
            "this is a pipe or a device, not a scenario file"));
}
