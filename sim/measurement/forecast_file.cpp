#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/measurement/run/diff.h"

namespace reckon {
namespace {

using ForecastJson = nlohmann::json;

/// Takes values out of the document by their path; what is missing is collected.
class ForecastReader {
 public:
  ForecastReader(std::string_view file, const ForecastJson& document, Diagnostics& problems)
      : file_(file), document_(document), problems_(problems) {}

  double number(const std::string& path) {
    const ForecastJson* value = find(path);
    if (value == nullptr || !value->is_number()) {
      problem(path);
      return 0;
    }
    return value->get<double>();
  }
  /// Between 0 and `most`: what a forecast of ours can say.
  double number_within(const std::string& path, double most) {
    const double value = number(path);
    if (value >= 0 && value <= most) return value;
    problems_.push_back(
        {Severity::error,
         {std::string(file_), 0, 0},
         fmt::format("key {} is {:g}, but must be from 0 to {:g}", path, value, most),
         "a forecast is what 'reckon simulate --format json' prints"});
    return 0;
  }
  int count(const std::string& path) { return int(number_within(path, 1e9)); }
  HourlyRate hourly_rate(const std::string& path) {
    return scaled({1'000'000'000}, number_within(path, 9e9));
  }
  Seconds duration(const std::string& path) {
    return Seconds{number_within(path, 100.0 * 365 * 86400)};
  }
  Quantiles quantiles(const std::string& path) {
    return {number(path + "/mean"), number(path + "/p5"), number(path + "/p50"),
            number(path + "/p95")};
  }
  /// Is there, and not null, which stands for what is unknown.
  bool has(const std::string& path) const {
    const ForecastJson* value = find(path);
    return value != nullptr && !value->is_null();
  }
  std::size_t size(const std::string& path) const { return has(path) ? find(path)->size() : 0; }
  std::vector<std::pair<std::string, double>> numbers(const std::string& path) {
    std::vector<std::pair<std::string, double>> values;
    if (!has(path)) return values;
    for (const auto& [name, value] : find(path)->items()) {
      if (!value.is_number())
        problem(path + "/" + name);
      else
        values.emplace_back(name, value.get<double>());
    }
    return values;
  }
  std::string text(const std::string& path) {
    const ForecastJson* value = find(path);
    if (value == nullptr || !value->is_string()) {
      problem(path);
      return "";
    }
    return value->get<std::string>();
  }

 private:
  const ForecastJson* find(const std::string& path) const {
    const ForecastJson::json_pointer pointer(path);
    return document_.contains(pointer) ? &document_[pointer] : nullptr;
  }
  void problem(const std::string& path) {
    problems_.push_back({Severity::error,
                         {std::string(file_), 0, 0},
                         "key " + path + " is missing or of another kind",
                         "a forecast is what 'reckon simulate --format json' prints"});
  }

  std::string_view file_;
  const ForecastJson& document_;
  Diagnostics& problems_;
};

PoolRates pool_rates(ForecastReader& in, const std::string& at) {
  PoolRates p;
  p.pool = in.text(at + "/pool");
  p.nodes = in.count(at + "/nodes");
  p.price.machine = in.hourly_rate(at + "/machine_usd_per_hour");
  p.price.accelerators = in.hourly_rate(at + "/accelerators_usd_per_hour");
  if (in.has(at + "/reserved")) {
    p.reservation = PlannedReservation{in.count(at + "/reserved/nodes"),
                                       in.hourly_rate(at + "/reserved/usd_per_hour"), std::nullopt};
    if (in.has(at + "/reserved/until_seconds"))
      p.reservation->until = in.duration(at + "/reserved/until_seconds");
  }
  if (in.has(at + "/minimum_rental_seconds"))
    p.minimum_rental = in.duration(at + "/minimum_rental_seconds");
  return p;
}

/// Parts that few forecasts have are left out where they are 0.
double part_of(ForecastReader& in, std::string_view in_what, std::string_view part) {
  const std::string at = fmt::format("{}{}", in_what, part);
  const bool rare = part == to_text(CostPart::spares) || part == to_text(Badput::stragglers);
  return rare && !in.has(at) ? 0 : in.number(at);
}

void read_money(ForecastReader& in, SaidForecast& f) {
  if (in.has("/node_hours")) f.node_hours = in.numbers("/node_hours");
  if (!in.has("/cost_usd")) return;
  f.cost_usd = in.quantiles("/cost_usd");
  for (std::size_t p = 0; p < kCostParts; ++p)
    f.cost_breakdown_usd[p] = part_of(in, "/cost_breakdown_usd/", to_text(CostPart(p)));
  if (!in.has("/rates")) return;
  RunRates rates;
  for (std::size_t k = 0; k < in.size("/rates/pools"); ++k)
    rates.pools.push_back(pool_rates(in, "/rates/pools/" + std::to_string(k)));
  rates.billing.management = in.hourly_rate("/rates/management_usd_per_hour");
  rates.billing.granularity = in.duration("/rates/granularity_seconds");
  rates.billing.minimum = in.duration("/rates/minimum_seconds");
  rates.storage = in.hourly_rate("/rates/storage_usd_per_hour");
  f.rates = std::move(rates);
}

/// Those whose effects the file says; an older one has but their sum.
void read_assumptions(ForecastReader& in, SaidForecast& f) {
  for (std::size_t k = 0; k < in.size("/assumptions"); ++k) {
    const std::string at = "/assumptions/" + std::to_string(k);
    if (!in.has(at + "/key")) continue;
    AssumptionEffect a;
    a.what = in.text(at + "/what");
    a.value = in.text(at + "/value");
    a.source = in.text(at + "/source");
    a.key = in.text(at + "/key");
    a.unit = in.text(at + "/unit");
    a.median = in.number(at + "/median");
    a.low = in.number(at + "/low");
    a.high = in.number(at + "/high");
    for (auto& [row, effect] : in.numbers(at + "/effects_seconds"))
      a.effects_seconds.emplace(std::move(row), effect);
    for (auto& [part, effect] : in.numbers(at + "/effects_usd"))
      a.effects_usd.emplace(std::move(part), effect);
    f.assumptions.push_back(std::move(a));
  }
}

void read_step(ForecastReader& in, SaidForecast& f) {
  f.step = Seconds{in.number("/step/seconds")};
  f.communication = Seconds{in.number("/step/communication_seconds")};
  f.parts.compute = Seconds{in.number("/step/compute_seconds")};
  f.parts.exposed_communication = Seconds{in.number("/step/exposed_communication_seconds")};
  const auto waits = [&](const char* key) {
    return in.has(key) ? Seconds{in.number(key)} : Seconds{};
  };
  f.waits = {.gradients = waits("/step/exposed_seconds/gradients"),
             .parameters = waits("/step/exposed_seconds/parameters"),
             .tensor = waits("/step/exposed_seconds/tensor"),
             .context = waits("/step/exposed_seconds/context"),
             .expert = waits("/step/exposed_seconds/expert"),
             .pipeline = waits("/step/exposed_seconds/pipeline"),
             .bubble = waits("/step/bubble_seconds")};
  f.says_update = in.has("/step/update_seconds");
  if (f.says_update) {
    f.parts.update = Seconds{in.number("/step/update_seconds")};
    f.parts.exposed_input = Seconds{in.number("/step/exposed_input_seconds")};
  }
  f.parts.other = f.step - f.parts.compute - f.parts.exposed_communication - f.parts.exposed_input -
                  f.parts.update;
}

}  // namespace

Expected<SaidForecast> parse_forecast(std::string_view file, std::string_view text) {
  const ForecastJson document = ForecastJson::parse(text, nullptr, false);
  Diagnostics problems;
  if (!document.is_object()) {
    problems.push_back({Severity::error,
                        {std::string(file), 0, 0},
                        "the file is no JSON object",
                        "a forecast is what 'reckon simulate --format json' prints"});
    return tl::unexpected(std::move(problems));
  }
  ForecastReader in(file, document, problems);
  SaidForecast f;
  f.scenario = in.text("/scenario");
  f.steps = std::int64_t(in.number_within("/steps", 1e18));
  f.time_seconds = in.quantiles("/time_seconds");
  read_step(in, f);
  f.goodput = in.number("/goodput");
  for (std::size_t c = 0; c < kBadputCauses; ++c)
    f.badput[c] = part_of(in, "/badput/", to_text(Badput(c)));
  for (std::size_t c = 0; c < kInterruptionCauses; ++c)
    f.interruptions[c] = in.number("/interruptions/" + std::string(to_text(Interruption(c))));
  if (in.has("/goodput_range")) f.goodput_range = in.quantiles("/goodput_range");
  if (in.has("/lost_work_seconds")) f.lost_work_seconds = in.quantiles("/lost_work_seconds");
  read_money(in, f);
  read_assumptions(in, f);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return f;
}

}  // namespace reckon
