#include "exchange/frameworks/frameworks.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "exchange/model_files.h"
#include "read_back.h"
#include "support/golden.h"
#include "written.h"

using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

/// 32 accelerators in every way that the launchers have between them.
std::vector<std::vector<std::string>> layouts() {
  const auto cut = [](const std::string& degrees) {
    return std::vector<std::string>{kModelParallel + "{kind: model_parallel, micro_batch: 1, " +
                                    degrees + "}"};
  };
  return {
      {},
      {"workload.strategy.zero_stage=2"},
      {"workload.strategy.zero_stage=1"},
      {"workload.strategy.recompute=full"},
      {"workload.strategy={kind: multi_worker_mirrored}"},
      {"workload.precision=fp32"},
      {"workload.precision=fp16"},
      {"workload.precision=fp8"},
      cut("data: 4, tensor: 8, sequence_parallel: true, zero_stage: 3, recompute: full"),
      cut("data: 4, tensor: 8, sequence_parallel: false, zero_stage: 1"),
      cut("data: 2, tensor: 8, sequence_parallel: true, context: 2, zero_stage: 3, recompute: "
          "full"),
      cut("data: 4, tensor: 4, sequence_parallel: true, pipeline: 2, zero_stage: 1"),
      cut("data: 4, tensor: 4, sequence_parallel: true, pipeline: 2, zero_stage: 2"),
      cut("data: 4, pipeline: 8, zero_stage: 3, schedule: gpipe, recompute: full"),
      cut("data: 4, tensor: 4, sequence_parallel: true, pipeline: 2, zero_stage: 2, schedule: "
          "interleaved, interleave: 4"),
      cut("data: 2, tensor: 4, sequence_parallel: true, pipeline: 4, zero_stage: 1, schedule: "
          "interleaved, interleave: 4, overlap: false"),
      {"workload.model=mixtral_8x7b", "workload.sequence_length=4096",
       kModelParallel + "{kind: model_parallel, data: 16, tensor: 2, expert: 8, micro_batch: 1, "
                        "zero_stage: 1, recompute: full, sequence_parallel: true}"},
      {"workload.model=gpt2_small", "workload.sequence_length=1024"},
      {"workload.model=bert_base", "workload.sequence_length=512"}};
}

std::int64_t whole(const Values& v, const std::string& name, std::int64_t otherwise = 1) {
  const auto found = v.find(name);
  return found == v.end() ? otherwise : found->second.get<std::int64_t>();
}

/// The degrees fill the accelerators and the batches of a step are the plan's.
void check_sizes(Framework framework, const Values& v, const Plan& plan) {
  const PlannedWorkload& job = plan.only_job();
  const std::int64_t all = job.strategy.accelerators(), batch = job.global_batch;
  switch (framework) {
    case Framework::torchtitan: {
      const std::string p = "parallelism.";
      const std::int64_t data = whole(v, p + "data_parallel_replicate_degree") *
                                whole(v, p + "data_parallel_shard_degree");
      CHECK(data * whole(v, p + "tensor_parallel_degree") *
                whole(v, p + "pipeline_parallel_degree") *
                whole(v, p + "context_parallel_degree") ==
            all);
      CHECK(whole(v, "training.global_batch_size") == batch);
      // torchtitan/train.py asserts it.
      CHECK(batch % (whole(v, "training.local_batch_size") * data) == 0);
      break;
    }
    case Framework::megatron: {
      const std::int64_t cut = whole(v, "--tensor-model-parallel-size") *
                               whole(v, "--pipeline-model-parallel-size") *
                               whole(v, "--context-parallel-size");
      CHECK(all % cut == 0);
      CHECK(whole(v, "--global-batch-size") == batch);
      CHECK(batch % (whole(v, "--micro-batch-size") * (all / cut)) == 0);
      break;
    }
    case Framework::deepspeed:
      CHECK(whole(v, "train_micro_batch_size_per_gpu") * whole(v, "gradient_accumulation_steps") *
                all / whole(v, "tensor_parallel.autotp_size") ==
            batch);
      break;
    case Framework::accelerate:
      CHECK(whole(v, "num_processes") == all);
      break;
    case Framework::maxtext: {
      std::int64_t product = 1;
      for (const auto& [name, value] : v)
        if (name.ends_with("_parallelism")) product *= value.get<std::int64_t>();
      CHECK(product == all);
      CHECK(v.at("per_device_batch_size").get<double>() * double(all) *
                double(whole(v, "gradient_accumulation_steps")) ==
            Approx(double(batch)));
      break;
    }
  }
}

/// Whether all that was refused says what, by whom and what to do.
void check_refusals(const Diagnostics& refused) {
  CHECK_FALSE(refused.empty());
  for (const Diagnostic& d : refused) {
    CHECK_THAT(d.what, Contains(" has no counterpart of "));
    CHECK_FALSE(d.hint.empty());
  }
}

}  // namespace

TEST_CASE("each layout becomes a file of the framework's own arguments, or is refused by name") {
  std::map<Framework, int> files;
  for (const auto& changes : layouts())
    for (const auto& word : words_of(Framework{})) {
      INFO(to_text(word.value) << ": " << (changes.empty() ? "as it is" : changes.front()));
      const Written w = written(word.value, changes);
      if (!w.file) {
        CHECK_THAT(w.errors, Contains("error: ") && Contains(" has no counterpart of "));
        continue;
      }
      ++files[word.value];
      const Values v = values_of(word.value, w.file->text);
      check_arguments(word.value, v);
      check_sizes(word.value, v, *w.plan);
    }
  // Each has its own: none refuses all.
  for (const auto& word : words_of(Framework{})) CHECK(files[word.value] >= 4);
}

TEST_CASE("each training of the shipped scenarios becomes a file or is refused by name") {
  int files = 0, refusals = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RECKON_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() != ".yaml") continue;
    INFO(entry.path());
    auto file = read_scenario(entry.path(), {});
    REQUIRE(file);
    if (!file->scenario.workload && file->scenario.jobs.empty()) continue;
    REQUIRE(resolve_model_files(*file).empty());
    const auto plan = make_plan(*file, shipped_catalog());
    REQUIRE(plan);
    const auto layout = launch_layout_of(*plan, file->places, kTimes);
    if (!layout) {
      ++refusals;
      if (plan->jobs.size() == 1) check_refusals(layout.error());
      continue;
    }
    for (const auto& word : words_of(Framework{})) {
      const auto made = launcher_file(word.value, *layout, file->places);
      if (!made) {
        ++refusals;
        check_refusals(made.error());
        continue;
      }
      ++files;
      const Values v = values_of(word.value, made->text);
      check_arguments(word.value, v);
      check_sizes(word.value, v, *plan);
    }
  }
  CHECK(files > 20);
  CHECK(refusals > 20);
}

TEST_CASE("everything that a framework has no counterpart for is refused at once") {
  const Written w = written(
      Framework::deepspeed,
      {kModelParallel + "{kind: model_parallel, data: 4, tensor: 2, pipeline: 2, context: 2, "
                        "sequence_parallel: true, micro_batch: 1, zero_stage: 1}"});
  CHECK_THAT(w.errors, Contains("DeepSpeed v0.19.5 has no counterpart of 2 pipeline stages") &&
                           Contains("of context parallelism of 2") &&
                           Contains("of sequence parallelism"));
  CHECK_THAT(written(Framework::torchtitan, {"workload.checkpoint.on_notice=save"}).errors,
             Contains("no counterpart of a save when a node's end is announced"));
  CHECK_THAT(
      written(Framework::torchtitan, {"workload.model=gpt2_small", "workload.sequence_length=512"})
          .errors,
      Contains("no counterpart of model gpt2_small") && Contains("llama3 8B"));
  CHECK_THAT(
      written(Framework::megatron, {"workload.model=bert_base", "workload.sequence_length=512"})
          .errors,
      Contains("bert_base, which is no decoder"));
}

TEST_CASE("Megatron-LM saves beside the training where its checkpoints are torch_dist alone") {
  const std::vector<std::string> sharded{"workload.checkpoint={interval: 1h, mode: async}"};
  CHECK_THAT(written(Framework::megatron, sharded).errors,
             Contains("no counterpart of asynchronous saves with zero_stage 3"));
  std::vector<std::string> optimizer_alone = sharded;
  optimizer_alone.emplace_back("workload.strategy.zero_stage=1");
  const Values v = values(Framework::megatron, optimizer_alone);
  CHECK(v.contains("--async-save"));
  CHECK(v.at("--ckpt-format") == "torch_dist");
}

TEST_CASE("what no launcher has is refused for all") {
  const Written servers =
      written(Framework::deepspeed, {"workload.strategy={kind: parameter_server, workers: 4}"});
  CHECK_THAT(servers.errors, Contains("a launcher's configuration has no counterpart of kind: "
                                      "parameter_server"));
  CHECK_THAT(written(Framework::deepspeed,
                     {"workload.strategy={kind: multi_worker_mirrored, all_reduce: hierarchical}"})
                 .errors,
             Contains("all_reduce: hierarchical"));
}

TEST_CASE("ZeRO 3 of Llama 3 8B is torchtitan's FSDP with resharding") {
  const Values v = values(Framework::torchtitan);
  CHECK(v.at("model.flavor") == "8B");
  CHECK(v.at("parallelism.data_parallel_shard_degree") == 32);
  CHECK(v.at("parallelism.fsdp_reshard_after_forward") == "always");
  CHECK(v.at("checkpoint.interval") == 120);  // 1200 s of steps of 10 s
  CHECK(values(Framework::torchtitan, {"workload.strategy.zero_stage=2"})
            .at("parallelism.fsdp_reshard_after_forward") == "never");
}

TEST_CASE("a pipeline of torchtitan has the step's micro-batches in one batch") {
  // 128 samples of 4 copies: 32 micro-batches of one sample.
  const Values v = values(
      Framework::torchtitan,
      {kModelParallel + "{kind: model_parallel, data: 4, tensor: 4, sequence_parallel: true, "
                        "pipeline: 2, zero_stage: 2, schedule: interleaved, interleave: 4, "
                        "micro_batch: 1}"});
  CHECK(v.at("training.local_batch_size") == 32);
  CHECK(v.at("parallelism.pipeline_parallel_microbatch_size") == 1);
  CHECK(v.at("parallelism.pipeline_parallel_schedule") == "Interleaved1F1B");
  CHECK(v.at("parallelism.pipeline_parallel_layers_per_stage") == 4);  // 32 blocks, 8 parts
}

TEST_CASE("NCCL has the plan's algorithm and rails in the environment") {
  const Written w =
      written(Framework::deepspeed,
              {"workload.strategy={kind: multi_worker_mirrored, all_reduce: ring}",
               "workload.fp32_gradients=false", "cluster.fabric={nics: 8, rails: true}"});
  REQUIRE(w.file);
  const std::vector<std::pair<std::string, std::string>> expected{{"NCCL_ALGO", "Ring"},
                                                                  {"NCCL_CROSS_NIC", "0"}};
  CHECK(w.file->environment == expected);
}

TEST_CASE("the files of torchtitan, Megatron-LM and MaxText are these") {
  const auto golden = [](Framework framework, const char* name, std::vector<std::string> changes) {
    const Written w = written(framework, changes);
    INFO(w.errors);
    REQUIRE(w.file);
    check_golden(std::string("exchange/frameworks/golden/") + name, w.file->text);
  };
  golden(Framework::torchtitan, "torchtitan.toml", {"workload.strategy.recompute=full"});
  golden(Framework::megatron, "megatron.sh",
         {"workload.model=mixtral_8x7b", "workload.sequence_length=4096",
          kModelParallel + "{kind: model_parallel, data: 16, tensor: 2, expert: 8, micro_batch: 1, "
                           "zero_stage: 1, recompute: full, sequence_parallel: true}"});
  golden(Framework::maxtext, "maxtext.yml", {"workload.strategy.recompute=full"});
}

TEST_CASE("progress is printed often enough for a forecast of the running job") {
  CHECK(values(Framework::megatron).at("--log-interval") == 10);
  CHECK(values(Framework::deepspeed).at("steps_per_print") == 10);
}

TEST_CASE("an evaluation is the plan's, or there is none") {
  CHECK(values(Framework::megatron).at("--eval-iters") == 0);
  // 537,640 segments and 1,133 to evaluate on, in batches of 128.
  const std::vector<std::string> evaluates{"workload.dataset=wikitext-103",
                                           "workload.train={epochs: 1}",
                                           "workload.evaluation={every_epochs: 0.5}"};
  const Values v = values(Framework::megatron, evaluates);
  CHECK(v.at("--eval-interval") == 2101);
  CHECK(v.at("--eval-iters") == 9);
  const Written other = written(Framework::deepspeed, evaluates);
  REQUIRE(other.file);
  CHECK_THAT(other.file->left_to_program,
             Catch::VectorContains(std::string("an evaluation of 9 batches every 2101 steps")));
}

TEST_CASE("MaxText saves on a notice where the plan counts on it") {
  std::vector<std::string> changes{"workload.strategy.recompute=full"};
  CHECK(values(Framework::maxtext, changes).at("enable_autocheckpoint") == false);
  changes.emplace_back("workload.checkpoint={interval: 1h, on_notice: save}");
  CHECK(values(Framework::maxtext, changes).at("enable_autocheckpoint") == true);
}

TEST_CASE("a decoder on a TPU slice is MaxText's, and no hint names a framework of GPUs") {
  const auto slice = [](const std::string& type, const std::string& region) {
    return std::vector<std::string>{"workload.strategy.recompute=full",
                                    "cluster={provider: gcp, service: gke, region: " + region +
                                        ", pools: [{name: tpu, tpu: " + type + ", nodes: 1}]}"};
  };
  for (const auto& [type, region] : {std::pair{"{type: TPU-v4, slice: v4-64}", "us-central2"},
                                     std::pair{"{type: TPU-v5p, slice: v5p-64}", "us-east5"},
                                     std::pair{"{type: TPU-v5e, slice: v5litepod-32}", "us-east5"},
                                     std::pair{"{type: TPU-v6e, slice: v6e-32}", "us-east5"}}) {
    INFO(type);
    const Values v = values(Framework::maxtext, slice(type, region));
    CHECK(v.at("hardware") == "tpu");
    CHECK(v.at("ici_fsdp_parallelism") == 32);
  }
  CHECK_THAT(
      written(Framework::maxtext, slice("{type: TPU-v3, slice: v3-64}", "europe-west4")).errors,
      Contains("no counterpart of TPU-v3, whose chips are two devices of JAX"));
  std::vector<std::string> other = slice("{type: TPU-v5p, slice: v5p-64}", "us-east5");
  other.emplace_back("workload.sequence_length=512");
  for (const char* model : {"llama3_8b", "bert_base"}) {
    other.emplace_back(std::string("workload.model=") + model);
    for (const auto& word : words_of(Framework{})) {
      const std::string errors = written(word.value, other).errors;
      INFO(errors);
      if (word.value == Framework::maxtext && model == std::string("llama3_8b")) continue;
      CHECK_THAT(errors, Contains("a JAX or TensorFlow program of yours in workload.container") &&
                             !Contains("reckon export deepspeed") &&
                             !Contains("reckon export megatron"));
      if (word.value != Framework::maxtext) CHECK_THAT(errors, Contains("reckon export maxtext"));
    }
  }
}
