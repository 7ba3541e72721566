#include "report/run/metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

namespace reckon {
namespace {

struct Label {
  const char* name;
  std::string value;
};

std::string number_text(double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", v);
}

/// Backslash, quote and line feed are escaped in the value of a label.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

class Families {
 public:
  explicit Families(std::string scenario) : scenario_(escaped(scenario)) {}

  void family(const char* name, const char* type, const char* help) {
    name_ = name;
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void sample(double value, const std::vector<Label>& labels = {}) {
    text_ += fmt::format("{}{{scenario=\"{}\"", name_, scenario_);
    for (const Label& l : labels) text_ += fmt::format(",{}=\"{}\"", l.name, escaped(l.value));
    text_ += fmt::format("}} {}\n", number_text(value));
  }
  void gauge(const char* name, const char* help, double value) {
    family(name, "gauge", help);
    sample(value);
  }
  void counter(const char* name, const char* help, double value) {
    family(name, "counter", help);
    sample(value);
  }
  void quantiles(const char* name, const char* help, const Quantiles& q, double offset) {
    family(name, "gauge", help);
    sample(offset + q.p5, {{"quantile", "0.05"}});
    sample(offset + q.p50, {{"quantile", "0.5"}});
    sample(offset + q.p95, {{"quantile", "0.95"}});
  }
  std::string take() { return std::move(text_); }

 private:
  std::string scenario_, text_;
  const char* name_ = "";
};

}  // namespace

std::string run_metrics(const std::string& scenario, const RunStatus& s,
                        std::chrono::system_clock::time_point now) {
  Families f(scenario);
  f.family("reckon_run_phase", "gauge", "What rank 0 does: 1 at the phase it is in.");
  f.sample(1, {{"phase", s.phase}});
  f.gauge("reckon_run_steps", "Optimizer steps of the whole job.", double(s.steps));
  f.gauge("reckon_run_steps_done", "Steps done; decreases when lost steps are repeated.",
          double(s.steps_done));
  if (s.loss) f.gauge("reckon_run_loss", "Mean loss of the last step's samples.", *s.loss);
  if (s.samples_per_second.v > 0)
    f.gauge("reckon_run_samples_per_second", "Samples trained on a second, of all workers.",
            s.samples_per_second.v);
  if (s.step.count() > 0)
    f.gauge("reckon_run_step_seconds", "Median wall time of the last 50 steps.", s.step.count());
  f.gauge("reckon_run_step_forecast_seconds", "Wall time of a step as it was forecast.",
          s.step_forecast.count());
  f.gauge("reckon_run_elapsed_seconds", "Wall time since the first start of the run.",
          s.elapsed.count());
  const double began =
      std::chrono::duration<double>(now.time_since_epoch()).count() - s.elapsed.count();
  f.quantiles("reckon_run_finish_timestamp_seconds",
              "Finish time of the run (Unix time): quantiles of the live forecast.",
              s.estimate.time_seconds, began);
  if (s.estimate.cost_usd)
    f.quantiles("reckon_run_cost_usd", "Cost of the run: quantiles of the live forecast.",
                *s.estimate.cost_usd, 0);
  if (s.estimate.miss_probability)
    f.gauge("reckon_run_deadline_miss_probability", "Probability of missing the deadline.",
            *s.estimate.miss_probability);
  f.counter("reckon_run_starts_total", "Starts of the job's processes.", double(s.attempt + 1));
  f.counter("reckon_run_interruptions_total", "Times the job lost a process or was asked to stop.",
            double(s.interruptions));
  return f.take();
}

}  // namespace reckon
