#include <catch2/catch.hpp>

#include "cli/run_reckon.h"

using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

const std::string kPlan = RECKON_SOURCE_DIR "/scenarios/llama3-8b-zero3.yaml";

}  // namespace

TEST_CASE("export writes a launcher's configuration, and says what it leaves to the program") {
  const Workspace w;
  const Output titan = w.run("export torchtitan " + kPlan + " --out t.toml");
  CHECK(titan.code == 0);
  CHECK_THAT(read_all(w.path("t.toml")), Contains("data_parallel_shard_degree = 16\n") &&
                                             Contains("seq_len = 8192\n") &&
                                             Contains("flavor = \"8B\"\n"));
  CHECK_THAT(titan.err, Contains("reckon: left to you: data and tokenizer: training.dataset") &&
                            Contains("reckon: in the environment: PYTORCH_ALLOC_CONF="));
  const Output speed = w.run("export deepspeed " + kPlan);
  CHECK(speed.code == 0);
  CHECK_THAT(speed.err, Contains("a checkpoint every ") && Contains("recomputation: full"));
}

TEST_CASE("export refuses by name what a framework has no counterpart for, all at once") {
  const Workspace w;
  const Output r =
      w.run("export accelerate " RECKON_SOURCE_DIR "/scenarios/gpt3-175b-1024-a100.yaml");
  CHECK(r.code == 2);
  CHECK(r.out.empty());
  CHECK_THAT(r.err, Contains(".yaml:17:15: error: accelerate v1.14.0 has no counterpart of 8 "
                             "pipeline stages") &&
                        Contains("of zero_stage 1") && Contains("reckon export deepspeed"));
}

TEST_CASE("export takes as --as one of the target's own words") {
  const Workspace w;
  const Output slurm = w.run("export megatron " + kPlan + " --as slurm");
  CHECK(slurm.code == 0);
  CHECK_THAT(slurm.out, Contains("#SBATCH --requeue\n") && Contains("pretrain_gpt.py"));
  CHECK_THAT(
      w.run("export megatron " + kPlan + " --as tfjob").err,
      Contains("--as tfjob is not a form of export megatron: script, slurm, jobset, pytorchjob"));
  CHECK_THAT(
      w.run("export kubernetes " + kPlan + " --as slurm").err,
      Contains("--as slurm is not a form of export kubernetes: job, tfjob, pytorchjob, jobset"));
  CHECK_THAT(w.run("export gcloud " + kPlan + " --as job").err, Contains("takes no --as"));
  CHECK_THAT(w.run("export torchtitan " + kPlan + " --as jobset").err, Contains("needs --image"));
  const Output pods = w.run("export torchtitan " + kPlan + " --as jobset --image titan:1");
  CHECK(pods.code == 0);
  CHECK_THAT(pods.out, Contains("kind: JobSet\n") && Contains("titan:1") &&
                           Contains("exec torchrun --nnodes=2"));
}

TEST_CASE("what --program says reaches what --as writes, and is refused elsewhere") {
  const Workspace w;
  const std::string words = " --program '--data-path /d --tokenizer-type NullTokenizer'";
  const Output script = w.run("export megatron " + kPlan + " --as script" + words);
  CHECK(script.code == 0);
  CHECK_THAT(script.out, Contains("\"${MEGATRON_ARGS[@]}\" --data-path /d --tokenizer-type Null"));
  const Output alone = w.run("export megatron " + kPlan + words);
  CHECK(alone.code == 2);
  CHECK_THAT(alone.err, Contains("--program goes into what --as writes"));
  const Output pods = w.run("export kubernetes " + kPlan + words);
  CHECK(pods.code == 2);
  CHECK_THAT(pods.err, Contains("export kubernetes takes no --program"));
}

TEST_CASE("the decoder on TPUs goes to MaxText without a warning, and reckon-worker says so") {
  const Workspace w;
  const std::string plan = RECKON_SOURCE_DIR "/scenarios/llama3-8b-tpu-v5p.yaml";
  const Output file = w.run("export maxtext " + plan);
  CHECK(file.code == 0);
  CHECK(file.err ==
        "reckon: left to you: data and tokenizer: dataset_type, dataset_path, "
        "tokenizer_path\n");
  CHECK_THAT(file.out, Contains("hardware: tpu\n") && Contains("ici_fsdp_parallelism: 32\n") &&
                           Contains("enable_autocheckpoint: true\n"));
  const Output pods = w.run("export maxtext " + plan + " --as jobset --image maxtext:1");
  CHECK(pods.code == 0);
  CHECK_THAT(pods.err, !Contains("warning"));
  CHECK_THAT(pods.out, Contains("google.com/tpu: 4\n") && Contains("completions: 8\n") &&
                           Contains("maxtext.trainers.pre_train.train"));
  const Output worker = w.run("export kubernetes " + plan);
  CHECK_THAT(worker.err, Contains("warning: reckon-worker trains on CPUs and NVIDIA's GPUs") &&
                             Contains("reckon export maxtext starts decoder models"));
}
