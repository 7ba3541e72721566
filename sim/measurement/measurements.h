#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity.h"
#include "sim/base/words.h"
#include "sim/cluster/life/life.h"
#include "sim/measurement/probe_record.h"

// What a run measured, in the words of the forecast: JSON lines, one record a line, which say what
// they are in "record". Written by whoever runs a job (executor/train/records/measurement_log.h),
// read by calibration, by comparison with a forecast, and by people with jq.
//
//   {"record":"run","schema_version":3,"scenario":"mlp","attempt":0,...,"xxh3":"..."}
//   {"record":"step","attempt":0,"step":0,"at_seconds":0.81,"seconds":0.0121,"loss":2.31,...}
//   {"record":"span","name":"save","category":"checkpoint_save","begin_seconds":60.2,...}
//
// Times are seconds since the first start of the run (`started` of its first record). A step that
// was done again after an interruption is there once for each attempt. Version 1 had no
// `other_seconds`, which is then read as 0: it was not measured. Since version 3 each line ends
// with a checksum (sim/measurement/sealed_line.h); a line that has none, of an older file or of
// somebody else, is taken as it is. A file of `reckon probe` holds the records of
// sim/measurement/probe_record.h, and may be one with a run's.
namespace reckon {

inline constexpr int kMeasurementsVersion = 3;

/// One start of the job's processes: the first record, and one more after every restart.
struct RunRecord {
  int schema_version = kMeasurementsVersion;
  std::string scenario;
  std::int64_t attempt = 0;
  std::string started;                     // of the run's first attempt: 2026-12-04T18:00:00.123Z
  Seconds at{};                            // of this attempt
  std::int64_t first_step = 0, steps = 0;  // this attempt's first; of the whole job
  std::string model, precision, optimizer, strategy, stack;
  int workers = 1, parameter_servers = 0, accelerators = 0;
  std::string accelerator;  // "" : the workers compute on their CPUs
  std::string machine;
  std::int64_t batch_per_accelerator = 0, global_batch = 0;
  std::uint64_t seed = 0;
  std::string catalog_digest;
  /// Digests of the artifact that was run and of the one that it was made of for the place where it
  /// runs (sim/scenario/artifact/artifact.h); "": not known, or of none.
  std::string plan_digest, planned_digest;
  std::string data;  // where its samples were: a path, s3://BUCKET/KEY, or "": they were made up
};

/// What a rank waited for others for in a step, by what it waited for, in the forecast's words
/// (ExposedCommunication of sim/step/step.h). But for the bubble all of it is exposed
/// communication.
struct StepWaits {
  Seconds gradients{};   // all-reduce or ZeRO's reduce-scatter; the loss, and whether to go on
  Seconds parameters{};  // ZeRO's all-gathers
  Seconds tensor{}, context{}, expert{};  // within passes, with ranks that share the model
  Seconds pipeline{};  // handing activations and their gradients to the stages beside
  Seconds bubble{};    // for messages of the stages beside, their way among it
};

/// One optimizer step as one rank saw it.
struct StepRecord {
  std::int64_t attempt = 0;
  int rank = 0;
  std::int64_t step = 0;  // from 0
  Seconds at{};           // its end
  Seconds seconds{};      // wall time, of all it consists of
  // compute + exposed communication + input + update + other = seconds. Who only tells when steps
  // end has none of them.
  Seconds compute{}, communication{}, input{}, update{};
  Seconds exposed_communication{};  // of gradients, then of the loss and whether to go on
  Seconds other{};                  // the worker's own, its loop, its records; the bubble
  /// Of the communication and of `other`; all 0 with parameter servers, and of a program that does
  /// not say.
  StepWaits waits;
  Seconds push{}, pull{}, wait{}, apply{};  // parameter server: by phase; else 0
  Bytes sent{};                             // by this rank, payload
  std::int64_t samples = 0;                 // of all ranks
  std::optional<double> loss;               // mean over the samples; absent: not a number
  /// Asynchronous parameter servers: others' updates between the rank's pull and its own update.
  std::optional<double> delay;
  // What the rank's data loader did, ahead of steps, since the one before: samples that it made
  // ready and left out as damaged, their bytes as stored, time in which it waited for bytes, the
  // same of its threads added up, and processor time of decoding. Absent: the format does not
  // measure it.
  std::optional<std::int64_t> read_samples, skipped_samples;
  std::optional<Bytes> read_bytes;
  std::optional<Seconds> read, requests, decode_cpu;
};

/// What no part of a step has.
Seconds rest_of(const StepRecord& step);

/// A rank or a node was lost, or asked to stop.
struct InterruptionRecord {
  std::int64_t attempt = 0;
  Interruption cause = Interruption::failure;
  std::optional<int> rank;  // whose loss ended the attempt, where it is known
  Seconds at{};
  Seconds notice{};             // warning before it; 0: none
  std::int64_t lost_steps = 0;  // done, and to be done again
  Seconds lost_work{};          // time spent on those
  std::string detail;           // "rank 2 was killed by signal 9"
};

enum class CheckpointAction { save, restore };
constexpr auto words_of(CheckpointAction) {
  return std::array{Word<CheckpointAction>{"save", CheckpointAction::save},
                    Word<CheckpointAction>{"restore", CheckpointAction::restore}};
}

struct CheckpointRecord {
  std::int64_t attempt = 0;
  CheckpointAction action = CheckpointAction::save;
  bool emergency = false;
  std::int64_t step = 0;
  Seconds at{};       // its end
  Seconds seconds{};  // until it was on the device, or loaded
  Seconds blocked{};  // of those, in which training stood still
  Bytes size{};       // of the rank's part
};

/// A pass over the validation set behind a step, without training on it.
struct EvaluationRecord {
  std::int64_t attempt = 0;
  int rank = 0;           // of parameter servers every worker's; else of all ranks, rank 0's
  std::int64_t step = 0;  // steps done before it
  Seconds at{};           // its end
  Seconds seconds{};
  std::int64_t samples = 0;    // that the loss is of
  std::optional<double> loss;  // mean over them; absent: not a number
};

/// A node or process that was asked for; `ready` false: it had not come after `seconds`.
struct ProvisioningRecord {
  std::string pool;
  int node = 0;
  std::string machine;
  Seconds at{};
  Seconds seconds{};
  bool ready = true;
};

/// What a run does otherwise than before: a setting that the user let a resumed run change
/// (--accept-changes), or its checkpoint_interval, by what a save was measured to take.
struct ChangeRecord {
  std::int64_t attempt = 0;
  std::int64_t step = 0;  // the first under the new value
  Seconds at{};
  std::string name;             // "learning_rate"
  std::string recorded, value;  // before and from now on, in words
};

/// A run will miss its deadline or budget, or the node of a slow rank is replaced: what would help,
/// or is done, and how the run ends with it and without, as forecast then.
struct DecisionRecord {
  std::int64_t attempt = 0;
  std::int64_t step = 0;  // steps done
  Seconds at{};
  bool applied = false;              // the run goes on so; false: it was told, and nothing changed
  std::string planned_digest;        // RunRecord's, of the plan that the changes are of
  std::string what;                  // "two more workers"; "": nothing that was looked at helps
  std::vector<std::string> changes;  // as --set takes them
  // Probability that a limit is missed, and seconds and mean USD of the whole run: without the
  // changes, and with them; absent where there are none, or nobody forecast them.
  double kept_miss = 0;
  Seconds kept_p5{}, kept_p50{}, kept_p95{};
  std::optional<double> kept_cost, miss, cost;
  std::optional<Seconds> p5, p50, p95;
};

/// How an attempt ended.
struct EndRecord {
  std::int64_t attempt = 0;
  bool finished = false;
  Seconds at{};
  std::int64_t steps_done = 0;
  std::string detail;
  /// USD that the run had spent by then, all its parts and plans; absent: a price is unknown.
  std::optional<double> spent;
};

using MeasurementRecord =
    std::variant<RunRecord, StepRecord, Span, Mark, InterruptionRecord, CheckpointRecord,
                 ProvisioningRecord, EndRecord, MachineRecord, AcceleratorRecord, ProbeRecord,
                 ChangeRecord, DecisionRecord, EvaluationRecord>;

/// The record as a JSON object, without a checksum and a newline.
std::string to_json(const MeasurementRecord& record);
/// One line, with its checksum and its newline.
std::string to_line(const MeasurementRecord& record);

/// A line that is no record as it was written: damaged, or nothing that this reckon knows.
struct DamagedLine {
  int line = 0;                      // from 1
  std::size_t begin = 0, bytes = 0;  // where it stands in the text, without its newline
  Diagnostics why;                   // warnings, at least one
  std::vector<std::string> rescued;  // whole records within it, which are read; without newlines
};

struct Measurements {
  std::vector<RunRecord> runs;
  std::vector<StepRecord> steps;
  Timeline timeline;
  std::vector<InterruptionRecord> interruptions;
  std::vector<CheckpointRecord> checkpoints;
  std::vector<ProvisioningRecord> provisioning;
  std::vector<EndRecord> ends;
  std::vector<ChangeRecord> changes;
  std::vector<DecisionRecord> decisions;
  std::vector<EvaluationRecord> evaluations;
  std::vector<MachineRecord> machines;
  std::vector<AcceleratorRecord> accelerators;
  std::vector<ProbeRecord> probes;
  int torn_lines = 0;  // last lines without a newline: their record was never accepted
  std::vector<DamagedLine> damaged;  // left out, in order

  /// The steps that the job's result rests on, in order: of each, its last attempt on `rank`.
  std::vector<StepRecord> useful_steps(int rank = 0) const;
};

/// The one reader of records. A line that is damaged (another checksum, no JSON, unknown records
/// and keys, missing keys, values of the wrong kind, over 1 MiB) costs its own record: it is left
/// out and listed with all that is wrong with it. Error: the records are of a schema version that
/// this reckon does not read.
Expected<Measurements> parse_measurements(std::string_view file, std::string_view text);

/// What to tell the user of lines that were left out: the first few, and how many more.
Diagnostics damage_of(const Measurements& measurements);

/// Calls f(record) for each record that was read, kind by kind.
template <class F>
void for_each_record(const Measurements& m, F&& f) {
  const auto all = [&](const auto& records) {
    for (const auto& record : records) f(record);
  };
  all(m.runs), all(m.steps), all(m.timeline.spans), all(m.timeline.marks);
  all(m.interruptions), all(m.checkpoints), all(m.provisioning), all(m.ends), all(m.changes);
  all(m.decisions), all(m.evaluations);
  all(m.machines), all(m.accelerators), all(m.probes);
}

}  // namespace reckon
