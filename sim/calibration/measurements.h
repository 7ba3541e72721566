#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity.h"
#include "sim/calibration/probe_record.h"
#include "sim/cluster/life.h"

// What a run measured, in the words of the forecast: JSON lines, one record a line, which say what
// they are in "record". Written by whoever runs a job (executor/train/measurement_log.h), read by
// calibration, by comparison with a forecast, and by people with jq.
//
//   {"record":"run","schema_version":2,"scenario":"mlp","attempt":0,...}
//   {"record":"step","attempt":0,"step":0,"at_seconds":0.81,"seconds":0.0121,"loss":2.31,...}
//   {"record":"span","name":"save","category":"checkpoint_save","begin_seconds":60.2,...}
//
// Times are seconds since the first start of the run (`started` of its first record). A step that
// was done again after an interruption is there once for each attempt. Version 1 had no
// `other_seconds`, which is then read as 0: it was not measured. A file of `reckon probe`
// holds the records of sim/calibration/probe_record.h, and may be one with a run's.
namespace reckon {

inline constexpr int kMeasurementsVersion = 2;

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
  Seconds exposed_communication{};          // of gradients, then of the loss and whether to go on
  Seconds other{};                          // the worker's own: its loop, its records
  Seconds push{}, pull{}, wait{}, apply{};  // parameter server: by phase; else 0
  Bytes sent{};                             // by this rank, payload
  std::int64_t samples = 0;                 // of all ranks
  std::optional<double> loss;               // mean over the samples; absent: not a number
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
std::string_view to_text(CheckpointAction a);

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

/// A node or process that was asked for; `ready` false: it had not come after `seconds`.
struct ProvisioningRecord {
  std::string pool;
  int node = 0;
  std::string machine;
  Seconds at{};
  Seconds seconds{};
  bool ready = true;
};

/// How an attempt ended.
struct EndRecord {
  std::int64_t attempt = 0;
  bool finished = false;
  Seconds at{};
  std::int64_t steps_done = 0;
  std::string detail;
};

using MeasurementRecord =
    std::variant<RunRecord, StepRecord, Span, Mark, InterruptionRecord, CheckpointRecord,
                 ProvisioningRecord, EndRecord, MachineRecord, AcceleratorRecord, ProbeRecord>;

/// One line, with its newline.
std::string to_line(const MeasurementRecord& record);

struct Measurements {
  std::vector<RunRecord> runs;
  std::vector<StepRecord> steps;
  Timeline timeline;
  std::vector<InterruptionRecord> interruptions;
  std::vector<CheckpointRecord> checkpoints;
  std::vector<ProvisioningRecord> provisioning;
  std::vector<EndRecord> ends;
  std::vector<MachineRecord> machines;
  std::vector<AcceleratorRecord> accelerators;
  std::vector<ProbeRecord> probes;
  int torn_lines = 0;  // last lines without a newline: their record was never accepted

  /// The steps that the job's result rests on, in order: of each, its last attempt on `rank`.
  std::vector<StepRecord> useful_steps(int rank = 0) const;
};

/// All errors at once, at their lines: text that is no JSON, records and keys that nobody knows,
/// missing keys, values of the wrong kind, another schema version.
Expected<Measurements> parse_measurements(std::string_view file, std::string_view text);

}  // namespace reckon
