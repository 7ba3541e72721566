#include "exchange/frameworks/starters.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "exchange/frameworks/toml_text.h"
#include "read_back.h"
#include "support/golden.h"
#include "support/scenario_text.h"
#include "support/skip.h"

using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

struct Made {
  ScenarioFile scenario;
  Plan plan;
  LaunchLayout layout;
  LauncherFile file;
};

/// Of two machines with eight H100.
std::unique_ptr<Made> made(Framework framework) {
  auto m = std::make_unique<Made>();
  const auto scenario = read_scenario(RECKON_SOURCE_DIR "/scenarios/llama3-8b-zero3.yaml", {});
  REQUIRE(scenario);
  m->scenario = *scenario;
  const auto plan = make_plan(m->scenario, shipped_catalog());
  REQUIRE(plan);
  m->plan = *plan;
  const auto layout =
      launch_layout_of(m->plan, m->scenario.places, {Seconds{10}, Seconds{1200}, Seconds{60}});
  REQUIRE(layout);
  m->layout = *layout;
  const auto file = launcher_file(framework, m->layout, m->scenario.places);
  if (!file) FAIL(format(file.error()));
  m->file = *file;
  return m;
}

/// Whether a program of the system takes the text as it is.
bool accepts(const std::string& command, const std::string& text) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("reckon-starter-" + std::to_string(::getpid()) + ".sh");
  std::ofstream(path) << text;
  const bool done = std::system((command + " '" + path + "' > /dev/null").c_str()) == 0;
  std::filesystem::remove(path);
  return done;
}

}  // namespace

TEST_CASE("a Slurm script passes a notice on, waits for the save and is requeued") {
  const auto m = made(Framework::megatron);
  const std::string script = slurm_script(m->file, m->layout, "");
  check_golden("exchange/frameworks/golden/megatron-slurm.sh", script);
  CHECK_THAT(script, Contains("#SBATCH --requeue\n") && Contains("#SBATCH --nodes=2\n") &&
                         Contains("#SBATCH --gpus-per-node=8\n") &&
                         // a save of 60 s, and what comes before and behind it
                         Contains("#SBATCH --signal=B:USR1@") &&
                         Contains("trap start_again USR1 TERM\n") &&
                         Contains("scontrol requeue \"$SLURM_JOB_ID\"\n"));
}

TEST_CASE("bash takes the scripts of all frameworks, and shellcheck finds nothing") {
  const bool shellcheck = std::system("shellcheck --version > /dev/null 2>&1") == 0;
  for (const auto& word : words_of(Framework{})) {
    INFO(to_text(word.value));
    if (word.value == Framework::maxtext) continue;  // recomputes all, or is refused
    const auto m = made(word.value);
    for (const std::string& script : {start_script(m->file, m->layout, "train.py --data 'a b'"),
                                      slurm_script(m->file, m->layout, ""),
                                      slurm_script(m->file, m->layout, "train.py 'a b'")}) {
      CHECK(accepts("bash -n", script));
      if (shellcheck) CHECK(accepts("shellcheck", script));
    }
  }
}

TEST_CASE("the script of a node writes the configuration and starts torchrun with it") {
  const auto m = made(Framework::torchtitan);
  const std::string script = start_script(m->file, m->layout, "");
  CHECK_THAT(script, Contains("<< 'END_OF_CONFIG'\n" + m->file.text + "END_OF_CONFIG\n") &&
                         Contains("exec torchrun --nnodes=2 --node-rank=\"$NODE_RANK\"") &&
                         Contains("--nproc-per-node=8 -m torchtitan.train"));
  // What the framework does not bring itself, the user says.
  CHECK_THAT(start_script(made(Framework::deepspeed)->file, m->layout, ""),
             Contains("${TRAIN_PROGRAM:?"));
}

TEST_CASE("the user's program is words of bash, in every script") {
  const auto m = made(Framework::deepspeed);
  const std::string program = "train.py --data 'a b'";
  CHECK_THAT(start_script(m->file, m->layout, program),
             Contains(" train.py --data 'a b' --deepspeed --deepspeed_config \"$CONFIG\"\n") &&
                 !Contains("TRAIN_PROGRAM"));
  // Within the quotes of `bash -c` each of its own is closed and opened again.
  CHECK_THAT(slurm_script(m->file, m->layout, program),
             Contains("train.py --data '\\''a b'\\'' --deepspeed"));
}

TEST_CASE("a Slurm script that is told of its end waits for the save and is requeued") {
  const auto m = made(Framework::megatron);
  const auto folder =
      std::filesystem::temp_directory_path() / ("reckon-slurm-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  // srun in place of the processes: it saves when it is told to end. scontrol writes down what it
  // is asked for.
  std::ofstream(folder / "srun") << "#!/bin/bash\n"
                                    "trap 'echo saved > saved; exit 0' TERM\n"
                                    "printf '%s\\n' \"$@\" > started\n"
                                    "for k in {1..300}; do sleep 0.1; done\n";
  std::ofstream(folder / "scontrol") << "#!/bin/bash\n"
                                        "echo node-0\n"
                                        "echo \"$1 $2 $(cat saved 2> /dev/null)\" >> asked\n";
  std::ofstream(folder / "job.sh") << slurm_script(m->file, m->layout, "");
  std::ofstream(folder / "test.sh")
      << "cd \"$(dirname \"$0\")\" || exit 3\n"
         "chmod +x srun scontrol\n"
         "PATH=$PWD:$PATH SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n bash job.sh & job=$!\n"
         "for k in {1..300}; do [ -s started ] && break; sleep 0.1; done\n"
         "kill -USR1 $job\n"
         "wait $job\n";
  const int status =
      std::system(("bash " + (folder / "test.sh").string() + " > /dev/null").c_str());
  std::ifstream in(folder / "asked");
  const std::string asked{std::istreambuf_iterator<char>(in), {}};
  std::ifstream started_in(folder / "started");
  const std::string started{std::istreambuf_iterator<char>(started_in), {}};
  const bool config = std::filesystem::exists(folder / "checkpoints" / "megatron.sh");
  std::filesystem::remove_all(folder);
  CHECK(status == 0);
  CHECK_THAT(asked, Contains("requeue 7 saved\n"));
  CHECK_THAT(started, Contains("exec torchrun --nnodes=2"));
  CHECK(config);
}

TEST_CASE("manifests start the launcher in a pod a node, with the configuration from their map") {
  const auto m = made(Framework::torchtitan);
  RunArtifact artifact{.plan = m->plan, .scenario = "name: short\n"};
  KubernetesExport how{.as = JobShape::jobset, .image = "registry.example.com/titan:1"};
  const auto yaml = launcher_manifests(
      m->file, m->layout, "", for_cluster(artifact, shipped_catalog()), how, m->scenario.places);
  REQUIRE(yaml);
  CHECK_THAT(*yaml, Contains("kind: JobSet\n") && Contains("completions: 2\n") &&
                        Contains("nvidia.com/gpu: 8\n") && Contains("torchtitan.toml: |\n") &&
                        Contains("value: /plan/torchtitan.toml\n") &&
                        Contains("exec torchrun --nnodes=2"));
  const auto d = made(Framework::deepspeed);
  const auto refused = launcher_manifests(
      d->file, d->layout, "", for_cluster(artifact, shipped_catalog()), how, d->scenario.places);
  REQUIRE_FALSE(refused);
  CHECK_THAT(
      format(refused.error()),
      Contains("a JobSet has no counterpart of a training program") && Contains("--program"));
}

TEST_CASE("TOML has tables for objects, and texts as TOML escapes them") {
  const nlohmann::ordered_json value = {{"a", 1},
                                        {"b", {{"c", "x\"\\\n\x7f"}, {"d", {{"e", {1, 2}}}}}},
                                        {"f", nlohmann::ordered_json::object()}};
  CHECK(toml_text(value) ==
        "a = 1\n\n[b]\nc = \"x\\\"\\\\\\n\\u007f\"\n\n[b.d]\ne = [1,2]\n\n[f]\n");
}

TEST_CASE("Python reads the TOML as it was meant") {
  if (std::system("python3 -c 'import tomllib' > /dev/null 2>&1") != 0)
    skip_test("python3 has no tomllib");
  const auto m = made(Framework::torchtitan);
  CHECK(
      accepts("python3 -c 'import sys, tomllib; c = tomllib.load(open(sys.argv[1], \"rb\")); "
              "assert c[\"parallelism\"][\"data_parallel_shard_degree\"] == 16; "
              "assert c[\"optimizer\"][\"eps\"] == 1e-8'",
              m->file.text));
}
