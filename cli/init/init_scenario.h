#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/catalog/catalog.h"

// What `reckon init` writes: the answers to its questions, and the scenario that follows from them
// and from the catalog.
namespace reckon::cli {

struct InitAnswers {
  std::string model, dataset;
  std::string length;       // "tokens: 10B", "epochs: 90"
  std::string accelerator;  // canonical; "": none, it trains on processors
  int count = 1;            // of accelerators; without them of nodes
  std::optional<Provider> provider;
  std::string region;
  CapacityType pricing = CapacityType::on_demand;
  std::vector<std::string> assumed;  // what was not answered, and how it is taken: sentences
};

/// The answer to --accelerator that means none.
inline constexpr const char* kNoAccelerator = "none";

/// The answers as written; nullopt: none was given.
struct WrittenAnswers {
  std::optional<std::string> model, tokens, epochs, dataset, accelerator, count, provider, region,
      pricing;
  /// The one to the question of that option.
  std::optional<std::string>& of(std::string_view option);
};
/// Judged one by one against the catalog; all that is wrong comes at once.
Expected<InitAnswers> judge_answers(const WrittenAnswers& written, const Catalog& catalog);
/// Of one answer: what is wrong with it, or nullopt.
std::optional<Diagnostic> judge_answer(std::string_view option, const std::string& written,
                                       const Catalog& catalog);

/// The largest of the catalog whose samples the model reads; "" where none is.
std::string default_dataset(const std::string& model, const Catalog& catalog);

/// A commented scenario that `reckon simulate` accepts as it is; it says what was assumed. Of the
/// machines and places that offer the accelerators it takes the cheapest (a known price before
/// none), of the strategies the first that is simulated and fits in memory, of the batches the
/// largest power of two that fits. Machines of one's own, and of providers whose machines without
/// accelerators the catalog does not have, are given by a size to be corrected. An error says why
/// there is none.
Expected<std::string> scenario_for(const InitAnswers& answers, const Catalog& catalog);

}  // namespace reckon::cli
