#pragma once
#include <string>
#include <string_view>

#include "report/sweep/sweep.h"
#include "sim/forecast/forecast.h"

// `reckon simulate --memo FILE.md`: the page that an engineer gives to who decides.
namespace reckon {

/// First paragraph of the comment that opens a scenario file, on one line, without "Question:" and
/// without indented lines that are commands of reckon; "" where the file does not begin with one.
std::string question_of(std::string_view scenario_text);

/// Where and on what the plan runs: "gcp gke in us-central1: 3 x n1-standard-16 with 2 P100-PCIE-16
/// each (on_demand)".
std::string hardware_text(const Plan& plan);

struct MemoInputs {
  const Plan& plan;
  const Forecast& forecast;
  std::string question;
  const Sweep* alternatives = nullptr;       // of --sweep
  const ServingForecast* serving = nullptr;  // beside the training; answers what is expected of it
};
/// Markdown: question, answer, what was expected, alternatives, risks, assumptions with their
/// effect in money, prices.
std::string memo_markdown(const MemoInputs& memo);

}  // namespace reckon
