#include "cli/machine_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>

#include "cli/history/history_store.h"
#include "cli/output.h"
#include "cli/probe/probe_processes.h"
#include "executor/comm/gloo/gloo_communicator.h"
#include "executor/probe/host.h"
#include "executor/probe/probe.h"
#include "sim/measurement/measured_processor.h"

namespace reckon::cli {
namespace {

namespace fs = std::filesystem;

/// Of the machine, its processor and what of it this process may use; a file's name.
std::string name_of(const MachineRecord& m) {
  std::string name = fmt::format("{} {} {} cores {} {}", m.host, m.processor, m.cores, m.stack,
                                 m.cpu_quota ? fmt::format("quota {:.2f}", *m.cpu_quota) : "");
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.') c = '-';
  return name;
}

Measurements probe(MachineRecord machine) {
  using Clock = std::chrono::steady_clock;
  constexpr double kShareOfMemory = 1.0 / 64;
  constexpr Seconds kItem{0.004};
  const auto begin = Clock::now();
  Measurements out;
  machine.threads = machine.cores;
  out.probes = probe_processor(machine.threads, {.budget = kItem, .at_least = 3},
                               machine.memory * kShareOfMemory);
  try {
    if (!has_gloo()) throw std::runtime_error("this reckon has no Gloo, which joins them");
    std::ranges::move(
        probe_between_processes({.processes = 2, .budget = kItem, .device = DeviceWish::cpu}),
        std::back_inserter(out.probes));
  } catch (const std::exception& error) {
    print_error(fmt::format("reckon: warning: processes of this machine were not probed: {}\n",
                            error.what()));
  }
  machine.seconds = Clock::now() - begin;
  out.machines.push_back(std::move(machine));
  return out;
}

std::string probe_lines(const Measurements& probed) {
  std::string out = to_line(probed.machines.front());
  for (const ProbeRecord& r : probed.probes) out += to_line(r);
  return out;
}

}  // namespace

MachineStore::MachineStore(fs::path file, Measurements records, ProcessorRates rates)
    : file_(std::move(file)), records_(std::move(records)), rates_(std::move(rates)) {}

std::optional<MachineStore> MachineStore::open() {
  const char* wish = std::getenv("RECKON_PROBE");
  const auto directory = data_directory();
  if (!directory || (wish != nullptr && std::string_view(wish) == "off")) return std::nullopt;
  MachineRecord machine = describe_machine();
  const fs::path file = *directory / "machines" / (name_of(machine) + ".jsonl");
  std::error_code none;
  if (fs::exists(file, none))
    if (auto records = parse_measurements(file.string(), read_text(file)))
      if (auto rates = processor_rates(*records))
        return MachineStore(file, std::move(*records), std::move(*rates));
  print_error("reckon: first run on this machine: its processors are probed (a few seconds)\n");
  Measurements probed = probe(std::move(machine));
  auto rates = processor_rates(probed);
  if (!rates) return std::nullopt;
  MachineStore store(file, std::move(probed), std::move(*rates));
  store.keep();
  return store;
}

void MachineStore::keep() const {
  try {
    fs::create_directories(file_.parent_path());
    write_file(file_, probe_lines(records_));
  } catch (const std::exception& error) {
    print_error(fmt::format("reckon: warning: the probe is not kept: {}\n", error.what()));
  }
}

std::string MachineStore::name() const {
  return fmt::format("{}, {} cores", rates_.processor, rates_.cores);
}

Seconds MachineStore::passes(const PassesWanted& wanted) {
  const std::string item = wanted.item();
  for (const ProbeRecord& r : records_.probes)
    if (r.kind == "passes" && r.item == item && r.samples == wanted.batch &&
        r.threads == wanted.threads && r.processes == wanted.processes)
      return r.median;
  constexpr Seconds kMeasured{0.5};
  records_.probes.push_back(probe_passes(wanted, {.budget = kMeasured, .at_least = 2}));
  keep();
  return records_.probes.back().median;
}

}  // namespace reckon::cli
