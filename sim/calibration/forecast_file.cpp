#include <nlohmann/json.hpp>

#include "sim/calibration/run_diff.h"

namespace reckon {
namespace {

using Json = nlohmann::json;

/// Takes values out of the document by their path; what is missing is collected.
class ForecastReader {
 public:
  ForecastReader(std::string_view file, const Json& document, Diagnostics& problems)
      : file_(file), document_(document), problems_(problems) {}

  double number(const std::string& path) {
    const Json* value = find(path);
    if (value == nullptr || !value->is_number()) {
      problem(path);
      return 0;
    }
    return value->get<double>();
  }
  Quantiles quantiles(const std::string& path) {
    return {number(path + "/mean"), number(path + "/p5"), number(path + "/p50"),
            number(path + "/p95")};
  }
  bool has(const std::string& path) const { return find(path) != nullptr; }
  std::string text(const std::string& path) {
    const Json* value = find(path);
    if (value == nullptr || !value->is_string()) {
      problem(path);
      return "";
    }
    return value->get<std::string>();
  }

 private:
  const Json* find(const std::string& path) const {
    const Json::json_pointer pointer(path);
    return document_.contains(pointer) ? &document_[pointer] : nullptr;
  }
  void problem(const std::string& path) {
    problems_.push_back({Severity::error,
                         {std::string(file_), 0, 0},
                         "key " + path + " is missing or of another kind",
                         "a forecast is what 'reckon simulate --format json' prints"});
  }

  std::string_view file_;
  const Json& document_;
  Diagnostics& problems_;
};

}  // namespace

Expected<SaidForecast> parse_forecast(std::string_view file, std::string_view text) {
  const Json document = Json::parse(text, nullptr, false);
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
  f.steps = std::int64_t(in.number("/steps"));
  f.time_seconds = in.quantiles("/time_seconds");
  f.step = Seconds{in.number("/step/seconds")};
  f.compute = Seconds{in.number("/step/compute_seconds")};
  f.communication = Seconds{in.number("/step/communication_seconds")};
  f.exposed_communication = Seconds{in.number("/step/exposed_communication_seconds")};
  f.input = Seconds{in.number("/step/input_seconds")};
  f.goodput = in.number("/goodput");
  for (std::size_t c = 0; c < kBadputCauses; ++c)
    f.badput[c] = in.number("/badput/" + std::string(to_text(Badput(c))));
  for (std::size_t c = 0; c < kInterruptionCauses; ++c)
    f.interruptions[c] = in.number("/interruptions/" + std::string(to_text(Interruption(c))));
  if (in.has("/goodput_range")) f.goodput_range = in.quantiles("/goodput_range");
  if (in.has("/lost_work_seconds")) f.lost_work_seconds = in.quantiles("/lost_work_seconds");
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return f;
}

}  // namespace reckon
