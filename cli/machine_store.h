#pragma once
#include <filesystem>
#include <optional>
#include <vector>

#include "executor/probe/probe.h"
#include "sim/measurement/measurements.h"
#include "sim/scenario/processor_rates.h"

// What is known of this machine's processors: probed when a run on them is first forecast (a few
// seconds), and kept beside the history, a file for each machine:
// $XDG_DATA_HOME/reckon/machines/NAME.jsonl, in the format of `reckon probe`.
namespace reckon::cli {

class MachineStore {
 public:
  /// nullopt: nothing is probed: RECKON_PROBE or RECKON_HISTORY is "off", or there is no home to
  /// keep it in. What cannot be written is said on standard error.
  static std::optional<MachineStore> open();

  const ProcessorRates& rates() const { return rates_; }
  /// "AMD EPYC 9654 96-Core Processor, 192 cores"
  std::string name() const;
  /// Forward and backward of a network, measured the first time (for about a second) and kept.
  Seconds passes(const PassesWanted& wanted);

 private:
  MachineStore(std::filesystem::path file, Measurements records, ProcessorRates rates);
  void keep() const;

  std::filesystem::path file_;
  Measurements records_;
  ProcessorRates rates_;
};

}  // namespace reckon::cli
