#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/probe/probe_device.h"
#include "cli/probe/probe_kubernetes.h"
#include "cli/probe/probe_options.h"
#include "cli/probe/probe_processes.h"
#include "executor/probe/host.h"
#include "executor/probe/nvml.h"
#include "executor/probe/probe.h"
#include "report/run/probe.h"
#include "sim/base/text/printable.h"
#include "sim/model/zoo/zoo.h"

namespace reckon::cli {
namespace {

std::optional<ModelGraph> model_of(const ProbeOptions& options) {
  const std::string& name = options.model;
  if (name.empty()) return std::nullopt;
  const std::optional<std::int64_t> length = options.sequence_length;
  if (length) {
    const bool known = std::ranges::count(zoo_names(), name) > 0;
    if (known && !zoo_takes_sequence_length(name))
      throw UsageError(fmt::format("model {} has no sequence length", name));
  }
  auto model = zoo_model(name, length);
  if (!model)
    throw UsageErrorWithHint(
        fmt::format("no model is named '{}'{}", name, did_you_mean(name, zoo_names())),
        "reckon model list shows them");
  for (const Layer& layer : model->layers())
    if (only_simulated(layer.op))
      throw UsageError(
          fmt::format("layer '{}' of {} is only simulated: nothing here runs it to measure it",
                      layer.name, name));
  return model;
}

/// What is asked for, judged before anything is measured.
struct ProbeRequest {
  std::optional<ModelGraph> model;
  std::int64_t batch = 1;
  int processes = 1;
  std::string checkpoint_directory;
  DeviceWish device = DeviceWish::automatic;
  std::string no_gpu;  // why none is measured; "": one is
  RepeatRule rule;
};

ProbeRequest probe_request_of(const ProbeOptions& options) {
  ProbeRequest r;
  r.model = model_of(options);
  r.batch = options.batch;
  r.processes = options.processes;
  r.checkpoint_directory = options.checkpoint_dir;
  r.device = options.device;
  r.no_gpu = r.device == DeviceWish::cpu ? "--device cpu" : why_no_gpu();
  if (r.device == DeviceWish::cuda && !r.no_gpu.empty())
    throw std::runtime_error("--device cuda: " + r.no_gpu);
  r.rule.budget = options.item_time.value_or(r.rule.budget);
  return r;
}

/// Names what is measured on a terminal's last line.
class Now {
 public:
  void is(const char* what) {
    if (::isatty(STDERR_FILENO) == 1)
      print_control(fmt::format("\rmeasuring {}\033[K", printable(what)));
  }
  ~Now() {
    if (::isatty(STDERR_FILENO) == 1) print_control("\r\033[K");
  }
};

void add_measured(std::vector<ProbeRecord>& all, std::vector<ProbeRecord> more) {
  std::ranges::move(more, std::back_inserter(all));
}

std::vector<ProbeRecord> measure_machine(const ProbeRequest& request, const ProbeBench& bench,
                                         const MachineRecord& machine) {
  constexpr double kTriadArray = 64 << 20, kShareOfMemory = 1.0 / 16;
  const Bytes array{std::min(kTriadArray, machine.memory.v * kShareOfMemory)};
  constexpr Bytes kCheckpoint{64 << 20};
  Now now;
  std::vector<ProbeRecord> all;
  now.is("memory");
  add_measured(all, probe_memory(bench, array));
  add_measured(all, probe_copies(bench, array));
  add_measured(all, probe_dispatch(bench));
  now.is("matrix products");
  add_measured(all, probe_matrix_products(bench));
  if (request.model) {
    now.is("the model's layers");
    add_measured(all, probe_model(bench, *request.model, request.batch));
  }
  now.is("data loading");
  add_measured(all, probe_data_loading(bench, std::filesystem::temp_directory_path()));
  if (!request.checkpoint_directory.empty()) {
    now.is("checkpoints");
    add_measured(all, probe_checkpoints(bench, request.checkpoint_directory, kCheckpoint));
  }
  if (request.processes > 1) {
    now.is("collectives");
    constexpr double kShareOfAnItem = 1.0 / 3;  // there are thirty of them
    add_measured(all, probe_between_processes({.processes = request.processes,
                                               .budget = kShareOfAnItem * request.rule.budget,
                                               .device = request.device}));
  }
  return all;
}

/// Into `probe`, whose machine is described.
void measure_gpu(const ProbeRequest& request, Measurements& probe) {
  if (!request.no_gpu.empty()) return;
  Now now;
  now.is("the GPU");
  DeviceProbe gpu =
      probe_device(request.rule, request.model ? &*request.model : nullptr, request.batch);
  add_measured(probe.probes, std::move(gpu.records));
  probe.machines.front().device_drift = gpu.drift;
}

Measurements probe_machine(const ProbeRequest& request, int threads) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  Measurements out;
  MachineRecord machine = describe_machine();
  Workers workers(threads > 0 ? threads : machine.cores);
  const ProbeBench bench{workers, request.rule};
  const ControlGroups groups = ControlGroups::of_this_process();
  const Seconds throttled_before = throttled_time(groups);
  machine.threads = workers.count();
  machine.hertz_before = cpu_frequency();
  const ProbeRecord first = probe_reference_product(bench);
  out.probes = measure_machine(request, bench, machine);
  const ProbeRecord last = probe_reference_product(bench);
  machine.hertz_after = cpu_frequency();
  machine.throttled = throttled_time(groups) - throttled_before;
  machine.drift = first.median / last.median - 1;
  machine.seconds = Clock::now() - begin;
  out.machines.push_back(std::move(machine));
  return out;
}

std::string lines_of_probe(const Measurements& probe) {
  std::string out;
  for (const MachineRecord& r : probe.machines) out += to_line(r);
  for (const AcceleratorRecord& r : probe.accelerators) out += to_line(r);
  for (const ProbeRecord& r : probe.probes) out += to_line(r);
  return out;
}

void probe_answer(const ProbeOptions& options, const Measurements& probe, const GpuAnswer& gpu) {
  const std::string& out = options.out;
  if (!out.empty()) write_file(out, lines_of_probe(probe));
  if (out == "-") return;
  print(options.format == OutputFormat::json ? lines_of_probe(probe) : probe_table(probe, gpu));
}

}  // namespace

std::vector<OptionText> probe_options() { return shown_options<ProbeOptions>(); }

int run_probe(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<ProbeOptions>(self, arguments);
  if (!options) return kDone;
  if (options->on == RunPlace::kubernetes) return probe_cluster(*options);
  const ProbeRequest request = probe_request_of(*options);
  if (const auto me = probe_identity()) {
    Measurements probe;
    probe.probes = probe_as_member(*me, request.rule, request.device);
    if (me->rank == 0) probe_answer(*options, probe, {});
    return kDone;
  }
  Measurements probe = probe_machine(request, options->threads);
  measure_gpu(request, probe);
  NvmlAnswer gpus = ask_nvml();  // at once: its clocks are still those of work
  probe.accelerators = std::move(gpus.accelerators);
  probe_answer(*options, probe, {.none = std::move(gpus.problem), .not_measured = request.no_gpu});
  return kDone;
}

}  // namespace reckon::cli
