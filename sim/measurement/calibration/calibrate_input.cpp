#include "sim/measurement/calibration/calibrate_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <variant>

#include "sim/measurement/log_spread.h"
#include "sim/scenario/plan.h"

namespace reckon {
namespace {

constexpr double kSame = 0.01;  // as a share: what is no other number

bool differs(double is, double said, double share) { return std::abs(is - said) > share * said; }

std::optional<MeasuredQuantity> take(MeasuredRun& run, Measured what) {
  const auto found = std::ranges::find(run.quantities, what, &MeasuredQuantity::what);
  if (found == run.quantities.end() || !(found->value > 0)) return std::nullopt;
  MeasuredQuantity taken = std::move(*found);
  run.quantities.erase(found);
  return taken;
}

class InputTaker {
 public:
  explicit InputTaker(Catalog& catalog) : catalog_(catalog) {}

  void take_from(MeasuredRun& run) {
    auto& workload = run.scenario.scenario.workload;
    if (!workload || !workload->dataset) return;
    if (auto* given = std::get_if<DatasetInline>(&*workload->dataset))
      take_own(run, *given);
    else if (const Dataset* dataset =
                 catalog_.find_dataset(std::get<DatasetByName>(*workload->dataset).name))
      take_of_catalog(run, *dataset);
    take_of_store(run);
  }

  MeasuredInput result() {
    for (const auto& [name, numbers] : of_catalog_) correct(name, numbers);
    return std::move(result_);
  }

 private:
  struct Numbers {
    std::vector<MeasuredQuantity> of_runs;
    std::vector<std::string> rows;
  };

  void take_own(MeasuredRun& run, DatasetInline& given) {
    const auto sample = take(run, Measured::sample), decode = take(run, Measured::decode);
    OwnData data{.name = run.name,
                 .samples = given.samples,
                 .bytes = given.bytes_per_sample.v,
                 .decode_seconds = given.decode.count()};
    bool other = false;
    if (sample) {
      add_row(run, *sample, data.bytes);
      other = differs(sample->value, data.bytes, kSame);
      data.bytes = given.bytes_per_sample.v = sample->value;
    }
    if (decode) {
      add_row(run, *decode, data.decode_seconds);
      other = other || differs(decode->value, data.decode_seconds, decode->log_error);
      data.decode_seconds = decode->value;
      given.decode = Seconds{decode->value};
    }
    if (other) result_.own_data.push_back(std::move(data));
  }

  void take_of_catalog(MeasuredRun& run, const Dataset& dataset) {
    if (const auto sample = take(run, Measured::sample)) {
      const std::string row = add_row(run, *sample, dataset.bytes_per_sample.value.v);
      add_number(fmt::format("datasets/{}/bytes_per_sample", dataset.name), *sample, row);
    }
    if (const auto decode = take(run, Measured::decode)) {
      const std::string row = add_row(run, *decode, dataset.decode_cpu_seconds.value);
      add_number(fmt::format("datasets/{}/decode_cpu_seconds", dataset.name), *decode, row);
    }
  }

  /// A rank reads with fewer threads than a node may have, so a store is only shown to be faster
  /// than it was said to be. How long it takes over one request is the same for any number.
  void take_of_store(MeasuredRun& run) {
    const auto read = take(run, Measured::read), request = take(run, Measured::request);
    if (!read && !request) return;
    const auto plan = make_plan(run.scenario, catalog_);
    if (!plan || plan->jobs.size() != 1) return;  // told where it is added to the fit
    const PlannedWorkload& job = plan->only_job();
    const Storage& storage = job.checkpoint.storage;
    double rate = storage.read_per_node.value.v;
    if (read && read->value > rate) {
      const std::string row = add_row(run, *read, rate);
      add_number(fmt::format("storages/{}/read_per_node", storage.name), *read, row);
      rate = read->value;
    }
    if (!request) return;
    const std::string row = add_row(run, *request, storage.latency.value.count());
    MeasuredQuantity latency = *request;
    if (rate > 0) latency.value -= job.dataset.bytes_per_sample.value.v / rate;
    if (latency.value > 0)
      add_number(fmt::format("storages/{}/latency", storage.name), latency, row);
  }

  std::string add_row(const MeasuredRun& run, const MeasuredQuantity& q, double before) {
    std::string name = fmt::format("{}: {}", run.name, to_text(q.what));
    result_.rows.push_back({.name = name,
                            .unit = std::string(unit_of(q.what)),
                            .measured = q.value,
                            .before = before,
                            .after = q.value,
                            .values = q.values});
    return name;
  }

  void add_number(const std::string& name, const MeasuredQuantity& q, const std::string& row) {
    Numbers& numbers = of_catalog_[name];
    numbers.of_runs.push_back(q);
    numbers.rows.push_back(row);
  }

  /// The mean over the runs; from the least to the most of them, each as far as it is known.
  void correct(const std::string& name, const Numbers& numbers) {
    auto parameter = find_parameter(catalog_, name);
    if (!parameter) return;
    const ParameterValue before = parameter->get();
    ParameterValue now{0, INFINITY, 0};
    double error = 0;
    for (const MeasuredQuantity& q : numbers.of_runs) {
      const double known = std::exp(kScoreOfP95 * q.log_error);
      now.value += q.value / double(numbers.of_runs.size());
      now.low = std::min(now.low, q.value / known);
      now.high = std::max(now.high, q.value * known);
      error = std::max(error, q.log_error);
    }
    parameter->set({now.value, now.value, now.value}, SourceId::user);  // certain to the fit
    if (!before.uncertain() && !differs(now.value, before.value, kSame)) return;
    result_.corrections.push_back({.parameter = name,
                                   .unit = parameter->unit(),
                                   .catalog = before,
                                   .calibrated = now,
                                   .standard_error = error,
                                   .rows = numbers.rows});
  }

  Catalog& catalog_;
  std::map<std::string, Numbers> of_catalog_;
  MeasuredInput result_;
};

}  // namespace

MeasuredInput take_input(std::vector<MeasuredRun>& runs, Catalog& catalog) {
  InputTaker taker(catalog);
  for (MeasuredRun& run : runs) taker.take_from(run);
  return taker.result();
}

}  // namespace reckon
