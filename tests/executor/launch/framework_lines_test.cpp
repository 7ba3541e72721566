#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "executor/launch/progress_lines.h"

// Lines that users of the frameworks have published of their runs, as they are. Each log's source
// stands above it.
using namespace reckon;

namespace {

/// What the lines tell, one after the other; of a line that tells nothing nothing.
std::vector<LogProgress> told(const std::vector<std::string>& lines) {
  const ProgressPattern pattern;
  std::vector<LogProgress> all;
  for (const std::string& line : lines)
    if (const auto found = pattern.match(line)) all.push_back(*found);
  return all;
}

}  // namespace

TEST_CASE("torchtitan's log tells steps and losses, with its colors and without") {
  // github.com/pytorch/torchtitan/pull/1437, of 2025-07-21
  const std::string plain =
      "[rank0]:[titan] 2025-07-21 15:57:43,242 - root - INFO - step:  4  loss:  4.6671  grad_norm: "
      " "
      "2.5457  memory:  0.00GiB(0.00%)  tps: 35,051  tflops: 3.59  mfu: 0.36%";
  // The same in the colors of torchtitan/tools/utils.py.
  const std::string colored =
      "[rank0]:[titan] 2025-07-21 15:57:43,242 - root - INFO - \x1b[31mstep:  4  \x1b[32mloss:  "
      "4.6671  \x1b[38;2;180;60;0mgrad_norm:  2.5457  \x1b[36mmemory:  0.00GiB(0.00%)\x1b[39m";
  for (const std::string& line : {plain, colored}) {
    const auto all = told({line});
    REQUIRE(all.size() == 1);
    CHECK(all[0].step == 4);
    CHECK(all[0].loss == Approx(4.6671));
    CHECK(!all[0].samples_per_second);  // its tokens are none
    CHECK(!all[0].resumed);
  }
}

TEST_CASE("Megatron-LM's log tells iterations, their time, losses and saves") {
  // github.com/epfLLM/Megatron-LLM/issues/11; the saves as megatron/training/checkpointing.py says
  // them.
  const auto all = told(
      {" iteration      201/  250000 | consumed samples:       205824 | elapsed time per iteration "
       "(ms): 139113.4 | learning rate: 1.507E-05 | global batch size:  1024 | lm loss: "
       "2.373574E+00 | loss scale: 1.0 | grad norm: 0.811 | number of skipped iterations:   0 | "
       "number of nan iterations:   0 |",
       "saving checkpoint at iteration     500 to /checkpoints in torch_dist format",
       "  successfully saved checkpoint from iteration     500 to /checkpoints [ t 1/8, p 1/2 ]",
       "  successfully loaded checkpoint from /checkpoints [ t 1/8, p 1/2 ] at iteration 500"});
  REQUIRE(all.size() == 4);
  CHECK(all[0].step == 201);
  CHECK(all[0].seconds->count() == Approx(139.1134));
  CHECK(all[0].loss == Approx(2.373574));
  CHECK(!all[0].samples_per_second);
  CHECK(all[2].checkpoint == 500);
  CHECK(all[3].resumed == 500);
  CHECK(!all[3].checkpoint);
}

TEST_CASE("DeepSpeed's log tells steps, their rate and saves, and no parts of a step as steps") {
  // github.com/deepspeedai/DeepSpeed/issues/5779 and 3742,
  // github.com/argonne-lcf/Megatron-DeepSpeed/pull/63; the saves as deepspeed/runtime/engine.py and
  // checkpoint_engine/torch_checkpoint_engine.py say them.
  const auto all = told(
      {"[2024-10-13 10:39:13,696] [INFO] [logging.py:96:log_dist] [Rank 0] step=22, skipped=0, "
       "lr=[1.8402508875376674e-07, 1.8402508875376674e-07], mom=[(0.9, 0.95), (0.9, 0.95)]",
       "[2024-10-13 10:39:13,696] [INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | "
       "fwd_microstep: 4631.17 | bwd_microstep: 15589.38 | step_microstep: 423.28",
       "[2024-10-13 10:39:13,696] [INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | fwd: "
       "4631.17 "
       "| bwd: 15589.38 | bwd_inner: 14105.76 | bwd_allreduce: 1483.59 | step: 423.28",
       "[2024-07-17 19:53:24,981] [INFO] [timer.py:258:stop] epoch=0/micro_step=4500/"
       "global_step=4500, RunningAvgSamplesPerSec=16.124955167964504, "
       "CurrSamplesPerSec=16.807402094161112, MemAllocated=0.02GB, MaxMemAllocated=0.97GB",
       " samples/sec: 7.799 | iteration       34/   10000 | elapsed time per iteration (ms): "
       "4103.1 "
       "| learning rate: 2.111E-06 | approx flops per GPU: 112.9TFLOPS | lm_loss: 1.118665E+01 | "
       "number of skipped iterations:   0 | number of nan iterations:   0 |",
       "[2024-10-13 11:02:00,120] [INFO] [logging.py:96:log_dist] [Rank 0] [Torch] Checkpoint "
       "global_step500 is about to be saved!",
       "[2024-10-13 11:02:09,871] [INFO] [torch_checkpoint_engine.py:23:save] [Torch] Saved "
       "/checkpoints/global_step500/mp_rank_00_model_states.pt."});
  REQUIRE(all.size() == 4);
  CHECK(all[0].step == 22);
  CHECK(all[1].step == 4500);
  CHECK(all[1].samples_per_second == Approx(16.8074));
  CHECK(all[2].step == 34);
  CHECK(all[2].seconds->count() == Approx(4.1031));
  CHECK(all[2].samples_per_second == Approx(7.799));
  CHECK(all[2].loss == Approx(11.18665));
  CHECK(all[3].checkpoint == 500);
}

TEST_CASE("the bar and the log of programs that accelerate starts tell steps, pace and loss") {
  // The bar of huggingface/diffusers examples/text_to_image, and the log of transformers' Trainer.
  const auto all =
      told({"Steps:   5%|5         | 50/1000 [00:30<09:30,  1.67it/s, lr=1e-5, step_loss=0.123]",
            "10/15/2024 11:02:09 - INFO - accelerate.accelerator - Saving current state to "
            "out/checkpoint-500",
            "{'loss': 2.3508, 'grad_norm': 1.21, 'learning_rate': 4.9e-05, 'epoch': 0.02}"});
  REQUIRE(all.size() == 2);
  CHECK(all[0].step == 50);
  CHECK(all[0].bar == 1000);
  CHECK(all[0].seconds->count() == Approx(1 / 1.67));
  CHECK(all[0].loss == Approx(0.123));
  CHECK(all[1].checkpoint == 500);
}

TEST_CASE("MaxText's log, which numbers steps from 0, tells steps, their time and losses") {
  // github.com/AI-Hypercomputer/maxtext/pull/4847 and 2232
  const auto all = told(
      {"I0811 21:55:06.119312 138304841739136 metric_logger.py:226] completed step: 2, seconds: "
       "10.228, TFLOP/s/device: 350.869, Tokens/s/device: 19222.175, total_weights: 1572864, loss: "
       "12.980, lm_loss: 12.980, perplexity: 433463.719",
       "completed step: 9, seconds: 5.667, TFLOP/s/device: 134.924, Tokens/s/device: 8672.758, "
       "total_weights: 196608, loss: 10.374"});
  REQUIRE(all.size() == 2);
  CHECK(all[0].step == 3);
  CHECK(all[0].seconds->count() == Approx(10.228));
  CHECK(all[0].loss == Approx(12.98));
  CHECK(all[1].step == 10);
  CHECK(all[1].seconds->count() == Approx(5.667));
}
