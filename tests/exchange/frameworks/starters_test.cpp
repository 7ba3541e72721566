#include "exchange/frameworks/starters.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
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

/// Programs in the place of Slurm's, torchrun and Python, in a folder of their own.
class FakeCluster {
 public:
  FakeCluster() {
    std::filesystem::create_directories(folder_);
    // A save takes longer than the launcher waits.
    const char* rank =
        "#!/bin/bash\n"
        "trap 'sleep 2; echo rank >> saved; exit \"${RANKS_END_WITH:-0}\"' TERM\n"
        "echo rank >> ready\n"
        "while :; do sleep 0.1; done\n";
    write("rank", rank);
    write("python3", rank);
    // It kills its ranks a second after SIGTERM, as torchrun after 30; SIGUSR1 ends it.
    write("torchrun",
          "#!/bin/bash\n"
          "ranks=() code=0\n"
          "for k in 1 2; do rank & ranks+=($!); done\n"
          "trap 'kill -TERM \"${ranks[@]}\"; sleep 1; kill -KILL \"${ranks[@]}\"; exit 1' TERM\n"
          "echo \"$*\" > started\n"
          "for rank in \"${ranks[@]}\"; do wait \"$rank\" || code=$?; done\n"
          "exit $code\n");
    // SIGTERM is SIGKILL to its tasks, each of which has a process group.
    write("srun",
          "#!/bin/bash\n"
          "set -m\n"
          "shift\n"
          "SLURM_NODEID=0 \"$@\" & task=$!\n"
          "echo $task > task\n"
          "trap 'kill -KILL -- -$task; exit 143' TERM\n"
          "wait $task\n");
    write("scancel",
          "#!/bin/bash\n"
          "[ \"$*\" = '--signal=USR1 7.0' ] && kill -USR1 -- \"$WHOM$(cat task)\"\n");
    write("scontrol",
          "#!/bin/bash\n"
          "echo node-0\n"
          "echo \"$1 $2, $(wc -l < saved) saved\" >> asked\n");
    write("ready", "");
    write("saved", "");
  }
  ~FakeCluster() { std::filesystem::remove_all(folder_); }
  FakeCluster(const FakeCluster&) = delete;
  FakeCluster& operator=(const FakeCluster&) = delete;

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }
  std::string read(const std::string& name) const {
    std::ifstream in(folder_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Exit code of the commands of bash.
  int run(const std::string& commands) const {
    write("test.sh", "cd \"$(dirname \"$0\")\" || exit 3\nPATH=$PWD:$PATH\n" + commands);
    const int status =
        std::system(("bash " + (folder_ / "test.sh").string() + " > /dev/null 2>&1").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("reckon-starter-" + std::to_string(::getpid()));
};

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
             Contains(" train.py --data 'a b' --deepspeed --deepspeed_config \"$CONFIG\") &\n") &&
                 !Contains("TRAIN_PROGRAM"));
  CHECK_THAT(slurm_script(m->file, m->layout, program),
             Contains(" train.py --data 'a b' --deepspeed --deepspeed_config \"$CONFIG\") &\n"));
}

TEST_CASE("where the framework starts no program, the words stand behind its own arguments") {
  const auto m = made(Framework::megatron);
  const std::string words = "--data-path /d --tokenizer-type NullTokenizer";
  const std::string expected = " pretrain_gpt.py \"${MEGATRON_ARGS[@]}\" " + words + ") &\n";
  CHECK_THAT(start_script(m->file, m->layout, words), Contains(expected));
  CHECK_THAT(slurm_script(m->file, m->layout, words), Contains(expected));
  CHECK_THAT(start_script(m->file, m->layout, ""), !Contains("TRAIN_PROGRAM"));
  const auto t = made(Framework::torchtitan);
  RunArtifact artifact{.plan = t->plan, .scenario = "name: short\n"};
  for (const JobShape as :
       {JobShape::jobset, JobShape::pytorchjob, JobShape::mpijob, JobShape::trainjob}) {
    KubernetesExport how{.as = as, .image = "registry.example.com/titan:1"};
    const auto yaml =
        launcher_manifests(t->file, t->layout, "--training.dataset_path /d",
                           for_cluster(artifact, shipped_catalog()), how, t->scenario.places);
    REQUIRE(yaml);
    CHECK_THAT(*yaml,
               Contains(" --job.dump_folder \"$CHECKPOINTS\" --training.dataset_path /d) &\n"));
  }
}

TEST_CASE("a Slurm script that is told of its end waits for the save and is requeued") {
  const auto m = made(Framework::megatron);
  // proctrack/cgroup signals the task of a step alone, proctrack/pgid all its processes.
  for (const char* of_group : {"", "-"}) {
    INFO("signals to kill " << of_group << "PID");
    const FakeCluster fake;
    fake.write("job.sh", slurm_script(m->file, m->layout, ""));
    CHECK(fake.run("export WHOM=" + std::string(of_group) +
                   " SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n\nbash job.sh & job=$!\n"
                   "for k in {1..300}; do [ $(wc -l < ready) = 2 ] && break; sleep 0.1; done\n"
                   "kill -USR1 $job\n"
                   "wait $job\n") == 0);
    CHECK(fake.read("saved") == "rank\nrank\n");
    CHECK_THAT(fake.read("asked"), Contains("requeue 7, 2 saved\n"));
    CHECK_THAT(fake.read("started"), Contains("--nnodes=2 --node-rank=0 --rdzv-id=7"));
    CHECK_THAT(fake.read("checkpoints/megatron.sh"), Contains("--exit-signal-handler\n"));
  }
}

TEST_CASE("ranks have longer to save than torchrun gives them, and its exit code is the script's") {
  const auto m = made(Framework::megatron);
  const std::string told =
      "export NODE_RANK=0 HEAD_NODE=node-0\nbash job.sh & job=$!\n"
      "for k in {1..300}; do [ $(wc -l < ready) = 2 ] && break; sleep 0.1; done\n"
      "kill -TERM $job\n"
      "wait $job\n";
  for (const int code : {0, 5}) {
    INFO("ranks end with " << code);
    const FakeCluster fake;
    fake.write("job.sh", start_script(m->file, m->layout, ""));
    CHECK(fake.run("export RANKS_END_WITH=" + std::to_string(code) + "\n" + told) == code);
    CHECK(fake.read("saved") == "rank\nrank\n");
  }
}

TEST_CASE("a program without a launcher gets the notice itself") {
  const auto m = made(Framework::megatron);
  LauncherFile file = m->file;
  file.launcher = Launcher::python;
  const FakeCluster fake;
  fake.write("job.sh", start_script(file, m->layout, ""));
  CHECK(fake.run("export NODE_RANK=0 HEAD_NODE=node-0 RANKS_END_WITH=4\nbash job.sh & job=$!\n"
                 "for k in {1..300}; do [ -s ready ] && break; sleep 0.1; done\n"
                 "kill -TERM $job\n"
                 "wait $job\n") == 4);
  CHECK(fake.read("saved") == "rank\n");
}

TEST_CASE("a notice before there are ranks ends the launcher") {
  const auto m = made(Framework::megatron);
  const FakeCluster fake;
  fake.write("torchrun", "#!/bin/bash\n: > ready\nexec sleep 60\n");
  fake.write("job.sh", start_script(m->file, m->layout, ""));
  CHECK(fake.run("export NODE_RANK=0 HEAD_NODE=node-0\nrm ready\nbash job.sh & job=$!\n"
                 "for k in {1..300}; do [ -e ready ] && break; sleep 0.1; done\n"
                 "sleep 0.2  # the trap stands\n"
                 "kill -TERM $job\n"
                 "wait $job\n") == 128 + SIGTERM);
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
