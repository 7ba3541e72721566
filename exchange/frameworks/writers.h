#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "exchange/frameworks/frameworks.h"
#include "exchange/refusals.h"

// Inside exchange/frameworks: one writer a framework. What it refuses it adds to `refused`; the
// file is then not used.
namespace reckon::frameworks {

using Json = nlohmann::ordered_json;

namespace torchtitan {
LauncherFile write(const LaunchLayout& l, Refusals& refused);
}
namespace megatron {
LauncherFile write(const LaunchLayout& l, Refusals& refused);
}
namespace deepspeed {
LauncherFile write(const LaunchLayout& l, Refusals& refused);
}
namespace accelerate {
LauncherFile write(const LaunchLayout& l, Refusals& refused);
}
namespace maxtext {
LauncherFile write(const LaunchLayout& l, Refusals& refused);
}

inline constexpr const char* kTorchtitanVersion = "torchtitan v0.2.2";
inline constexpr const char* kMegatronVersion = "Megatron-LM core_v0.15.0";
inline constexpr const char* kDeepspeedVersion = "DeepSpeed v0.19.5";
inline constexpr const char* kAccelerateVersion = "accelerate v1.14.0";
inline constexpr const char* kMaxtextVersion = "MaxText v0.2.4";

/// Between two lines of progress, which a forecast of the running job reads.
inline constexpr int kStepsPerPrint = 10;

// refuse.cpp: what several writers refuse or say alike.
/// Of frameworks that train on GPUs alone; says what starts the plan instead.
void refuse_tpus(Refusals& refused, const LaunchLayout& l);
/// What is no plain decoder, of frameworks that build the model from the configuration.
void refuse_other_models(Refusals& refused, const LaunchLayout& l);
/// A rate that falls in steps, of frameworks that have smooth schedules alone.
void refuse_steps_of_rate(Refusals& refused, const LaunchLayout& l);
/// To ten digits: "2e-05", "0.1", "1".
std::string number_text(double value);
/// The lines that a configuration begins with: what it is of, and whose names it has.
std::string header(const LaunchLayout& l, const char* version, const char* source);
/// That nothing saves on a notice, where the plan was simulated so; refused where the scenario asks
/// for it.
void note_notice(LauncherFile& file, Refusals& refused, const LaunchLayout& l, const char* version);

/// What frameworks that take the user's own model leave to the program: model, sequence length,
/// steps, checkpoints.
void note_program(LauncherFile& file, const LaunchLayout& l);

/// Passes over the validation set, as the plan has them.
struct EvaluationSteps {
  std::int64_t every = 1;    // optimizer steps
  std::int64_t batches = 1;  // of the global batch
};
/// nullopt: the plan evaluates nothing.
std::optional<EvaluationSteps> evaluation_steps(const PlannedWorkload& job);

}  // namespace reckon::frameworks
