#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "sim/accuracy/published_runs.h"
#include "sim/scenario/plan.h"

// What a run or a question is compared by: columns alone, nothing that was measured or predicted.
namespace reckon {

/// A word as a number; 0: it is not said, and is like no other.
using WordId = std::uint64_t;
WordId word_id(std::string_view word);  // "", "unknown", "*-ngc": 0

/// Kinds of networks whose errors have a size of their own.
enum class Domain { language, transformer, vision, recommendation, speech, small, other };
inline constexpr std::size_t kDomains = 7;
std::string_view to_text(Domain domain);

/// Of a network of the zoo by its name, else of what a sample is.
Domain domain_of(std::string_view network, SampleUnit unit);

struct EvidenceFeatures {
  WordId accelerator = 0, architecture = 0;
  double year = 0;  // in which the accelerator was sold first
  Precision precision = Precision::fp32;
  Domain domain = Domain::other;
  WordId network = 0;  // of language models the kind (dense, experts, LoRA), else the zoo's name
  double log_parameters = 0;
  WordId stack = 0, stack_family = 0;
  WordId source = 0, publisher = 0;  // of a question: 0, or the user's own
  char trust = 'A';                  // of how it is documented
  WordId link = 0;                   // between the accelerators of a node
  bool many_nodes = false;
  int accelerators = 1;
  double log_count = 0;  // ln of the accelerators
  double log_batch = 0;  // ln of the samples an accelerator and step
};

/// Features of published runs, one after the other.
class FeatureReader {
 public:
  /// `catalog` stays.
  explicit FeatureReader(const Catalog& catalog) : catalog_(catalog) {}
  /// nullopt: the catalog lacks the accelerator, or the precision is not known
  /// (precision_of_run()).
  std::optional<EvidenceFeatures> operator()(const PublishedRun& run);

 private:
  std::pair<WordId, Domain> network_of(const RunConfiguration& run);

  const Catalog& catalog_;
  using Printed = std::tuple<std::string_view, std::string_view, std::string_view, std::int64_t>;
  std::map<Printed, std::pair<WordId, Domain>> networks_;
  std::map<std::string_view, const Accelerator*> accelerators_;
};
/// Of a job on the first pool of workers of a plan; source and publisher stay 0.
EvidenceFeatures features_of(const Plan& plan, const PlannedWorkload& job);
/// Of hardware and software alone; an empty word is not said.
EvidenceFeatures features_of(const Accelerator& accelerator, std::string_view stack,
                             std::string_view link);
void set_size(EvidenceFeatures& features, int accelerators, double samples);

/// What EvidenceFeatures::network is of: the kind of a language model, else the network's name.
std::string network_of(const ModelGraph& model);

/// mlp06, mlp07, ...: mlperf; other sources are their own publishers.
std::string_view publisher_of(std::string_view source);
/// pytorch-mlperf: mlperf; tf1: tensorflow; stacks of no family are their own.
std::string_view stack_family_of(std::string_view stack);

}  // namespace reckon
