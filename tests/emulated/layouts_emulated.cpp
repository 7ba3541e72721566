// A small language model under layouts of 2 to 8 ranks on an emulated cluster: the steps of
// reckon-worker against `reckon simulate` of the same scenarios, before and after `reckon
// calibrate` on two of them. Links are slow and the model is small, so that a step is what travels
// and who waits for whom: that ranks outnumber the cores hardly shows. Writes a Markdown table;
// exit code 1 where an error is above its bound or the forecast ranks two layouts the wrong way
// round, 77 where namespaces are not allowed.
//
// Arguments: numbers of layouts, which then run alone and without calibration.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>

#include <fmt/format.h>

#include "emulated/emulated_job.h"

namespace {
using namespace reckon;
using namespace reckon::emulated;

/// The median and the worst (docs/measurements/2026-11-27-emulated-layouts.md).
constexpr double kBoundMedian = 0.07, kBoundWorst = 0.25;
/// Of pairs of layouts, so many in the right order.
constexpr double kRightOrder = 0.95;
/// Two layouts whose measured steps differ by less are the same.
constexpr double kSame = 0.05;

/// 430,000 weights, most of them in blocks. 16 sequences of 32 tokens a step.
const std::string kDenseModel =
    "  model: {transformer: {layers: 8, hidden: 64, heads: 4, vocabulary: 480, "
    "sequence_length: 32, positions: 32, tied_output: true}}\n"
    "  dataset: {samples: 100000, bytes_per_sample: 128B}\n";
const std::string kDense = kDenseModel + "  global_batch: 16\n";
/// Between stages alone a message goes through an idle link, whose bucket of 64 kB lets its first
/// part through at once. 32 sequences are four times the bucket.
const std::string kLarge = kDenseModel + "  global_batch: 128\n";
/// 1,100,000 weights, 8 of 9 of which are of four experts; two answer each token.
const std::string kMixture =
    "  model: {transformer: {layers: 4, hidden: 64, heads: 4, vocabulary: 480, "
    "sequence_length: 32, gated_feed_forward: true, rms_norm: true, experts: 4, "
    "experts_per_token: 2}}\n"
    "  dataset: {samples: 100000, bytes_per_sample: 128B}\n  global_batch: 16\n";

struct Case {
  Job job;
  double before = 0, run = 0, exposed = 0, after = 0;
};

Case of(int ranks, std::string name, std::string strategy, bool learned = false,
        const std::string& workload = kDense) {
  return {.job = {.name = std::move(name),
                  .kind = Exchange::layout,
                  .workers = ranks,
                  .workload = workload,
                  .strategy = "{kind: hybrid, " + std::move(strategy) + "}",
                  .learned = learned}};
}

std::vector<Case> cases() {
  return {
      of(2, "ZeRO 1", "data: 2, zero_stage: 1"),
      of(4, "ZeRO 2", "data: 4, zero_stage: 2"),
      of(4, "ZeRO 3", "data: 4, zero_stage: 3"),
      of(2, "tensor 2", "tensor: 2"),
      of(4, "tensor 4, whole sequences", "tensor: 4, sequence_parallel: false"),
      of(4, "pipeline 4, 1F1B, 128 sequences", "pipeline: 4, micro_batch: 32", true, kLarge),
      of(4, "data 2, pipeline 2, GPipe", "data: 2, pipeline: 2, micro_batch: 2, schedule: gpipe"),
      of(2, "context 2", "context: 2"),
      of(4, "tensor 2, pipeline 2", "tensor: 2, pipeline: 2, micro_batch: 4", true),
      of(8, "data 2, tensor 2, pipeline 2, ZeRO 1",
         "data: 2, tensor: 2, pipeline: 2, zero_stage: 1, micro_batch: 4"),
      of(8, "data 8", "data: 8"),
      of(4, "data 4, expert 2", "data: 4, expert: 2", false, kMixture),
  };
}

std::vector<Case> asked(int arguments, char** argument) {
  std::vector<Case> all = cases();
  if (arguments < 2) return all;
  std::vector<Case> some;
  for (int k = 1; k < arguments; ++k) {
    const std::string_view word = argument[k];
    std::size_t number = 0;
    std::from_chars(word.data(), word.data() + word.size(), number);
    if (number < 1 || number > all.size())
      throw std::runtime_error(fmt::format("'{}': layouts are 1 to {}", word, all.size()));
    some.push_back(all[number - 1]);
    some.back().job.learned = false;
  }
  return some;
}

void print(const Case& c) {
  const double before = c.before / c.run - 1, after = c.after / c.run - 1;
  fmt::print("| {} | {} | {} | {:.3f} | {:.3f} | {:.3f} | {:+.1f} % | {:.3f} | {:+.1f} %{} |\n",
             c.job.name, c.job.workers, c.job.megabytes, c.exposed, c.run, c.before, before * 100,
             c.after, after * 100, c.job.learned ? " (calibrated on)" : "");
  std::fflush(stdout);
}

bool print_errors(const std::vector<Case>& all, const char* when, double Case::*said) {
  std::vector<double> errors;
  for (const Case& c : all) errors.push_back(std::abs(c.*said / c.run - 1));
  const double middle = median(errors), worst = std::ranges::max(errors);
  fmt::print("\n{}: median error {:.1f} %, worst {:.1f} %\n", when, middle * 100, worst * 100);
  return middle <= kBoundMedian && worst <= kBoundWorst;
}

/// Pairs whose measured steps differ by more than kSame and that the forecast ranks otherwise.
bool print_order(const std::vector<Case>& all, const char* when, double Case::*said) {
  int pairs = 0, wrong = 0;
  for (std::size_t a = 0; a < all.size(); ++a)
    for (std::size_t b = a + 1; b < all.size(); ++b) {
      if (all[a].job.workload != all[b].job.workload) continue;
      const auto [less, more] = std::minmax(all[a].run, all[b].run);
      if (more / less - 1 <= kSame) continue;
      ++pairs;
      wrong += (all[a].run < all[b].run) != (all[a].*said < all[b].*said);
    }
  fmt::print("\n{}: {} of {} pairs that differ by more than {:.0f} % in the right order\n", when,
             pairs - wrong, pairs, kSame * 100);
  return pairs == 0 || double(pairs - wrong) >= kRightOrder * double(pairs);
}

}  // namespace

int main(int arguments, char** argument) {
  if (const std::string why = EmulatedCluster::why_not(); !why.empty()) {
    fmt::print("SKIPPED: {}\n", why);
    return 77;
  }
  bool good = true;
  try {
    const test::Workspace w;
    w.write("layer/links.yaml", kLayer);
    std::vector<Case> all = asked(arguments, argument);
    const auto file = [](std::size_t k) { return fmt::format("layout-{}.yaml", k); };
    std::string learned;
    for (std::size_t k = 0; k < all.size(); ++k) {
      Case& c = all[k];
      const std::string out = fmt::format("run-{}", k);
      w.write(file(k), scenario(c.job));
      c.before = forecast(w, file(k), "").at("seconds");
      run(w, c.job, file(k), out);
      c.run = measured(w, c.job, out, &StepRecord::seconds);
      c.exposed = measured(w, c.job, out, &StepRecord::exposed_communication);
      c.job.megabytes = fmt::format("{:.2f}", megabytes_sent(w, c.job, out));
      fmt::print(stderr, "{}: forecast {:.3f} s, run {:.3f} s ({:.3f} s communication, {} MB)\n",
                 c.job.name, c.before, c.run, c.exposed, c.job.megabytes);
      if (!c.job.learned) continue;
      w.write(out + "/plan.reckon", scenario(c.job));  // what calibrate takes the job from
      learned += ' ' + out;
    }
    const std::string overlay = learned.empty() ? "" : calibrate(w, learned);
    fmt::print(
        "| layout | ranks | MB sent | communication, run (s) | step, run, median of {} (s) | "
        "forecast (s) | error | calibrated forecast (s) | error |\n"
        "|---|---|---|---|---|---|---|---|---|\n",
        kRuns);
    for (std::size_t k = 0; k < all.size(); ++k) {
      all[k].after = forecast(w, file(k), overlay).at("seconds");
      print(all[k]);
    }
    for (const auto& [when, said] :
         {std::pair{"before calibration", &Case::before}, std::pair{"after it", &Case::after}}) {
      good = print_errors(all, when, said) && good;
      good = print_order(all, when, said) && good;
    }
  } catch (const std::exception& error) {
    fmt::print("failed: {}\n", error.what());
    return 1;
  }
  return good ? 0 : 1;
}
