#include "sim/accuracy/scoring/evidence_scores.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace reckon {
namespace {

bool is_near(const EvidenceFeatures& a, const EvidenceFeatures& b) {
  // Differences of natural logarithms: factors of 4 and 1.6.
  constexpr double kCount = 1.4, kParameters = 0.5;
  return a.accelerator == b.accelerator && a.network == b.network && a.domain == b.domain &&
         std::abs(a.log_count - b.log_count) < kCount &&
         (a.domain != Domain::language ||
          std::abs(a.log_parameters - b.log_parameters) < kParameters);
}

std::string_view class_of(const EvidenceFeatures& run, std::span<const EvidenceRun> evidence) {
  std::string_view found = kNoEvidence;
  for (const EvidenceRun& e : evidence) {
    if (!is_near(run, e.features)) continue;
    if (run.stack == e.features.stack && run.publisher == e.features.publisher)
      return kNearEvidence;
    found = kOtherEvidence;
  }
  return found;
}

/// Times as rates, rates as times.
void invert(ScoredRun& r) {
  r.predicted = 1 / r.predicted;
  r.low = std::exchange(r.high, 1 / r.low);
  r.low = 1 / r.low;
}

}  // namespace

void add_evidence(std::vector<ScoredRun>& runs, const Evidence& evidence, const Catalog& catalog,
                  HoldOut by) {
  FeatureReader features(catalog);
  for (ScoredRun& r : runs) {
    const auto own = features(r.at);
    if (!own) continue;
    r.evidence = class_of(*own, evidence.runs());
    r.domain = to_text(own->domain);
    EvidenceFeatures question = *own;
    if (by != HoldOut::model) question.source = 0;
    if (by == HoldOut::publisher) question.publisher = 0;
    const Residual residual = evidence.residual(question, r.device_share);
    r.predicted *= std::exp(residual.mean);
    r.low = r.predicted * std::exp(-residual.half_width);
    r.high = r.predicted * std::exp(residual.half_width);
  }
}

void add_evidence_of_others(std::vector<ScoredRun>& runs, std::span<const PublishedRun> evidence,
                            const Catalog& catalog, const EvidenceKernel& kernel) {
  std::set<std::string_view> known;
  for (const PublishedRun& e : evidence) known.insert(e.source);
  std::map<std::string_view, std::vector<std::size_t>> by_source;  // "": of no evidence
  for (std::size_t i = 0; i < runs.size(); ++i)
    by_source[known.contains(runs[i].at.source) ? runs[i].at.source : ""].push_back(i);
  for (const auto& [source, own] : by_source) {
    std::vector<PublishedRun> others;
    std::ranges::copy_if(
        evidence, std::back_inserter(others),
        [&, source = source](const PublishedRun& e) { return e.source != source; });
    std::vector<ScoredRun> scored;
    for (const std::size_t i : own) scored.push_back(runs[i]);
    add_evidence(scored, Evidence(others, catalog, kernel), catalog, HoldOut::source);
    for (std::size_t k = 0; k < own.size(); ++k) runs[own[k]] = scored[k];
  }
}

void add_evidence_to_times(std::vector<ScoredRun>& runs, std::span<const PublishedRun> evidence,
                           const Catalog& catalog, const EvidenceKernel& kernel) {
  std::ranges::for_each(runs, invert);
  add_evidence_of_others(runs, evidence, catalog, kernel);
  std::ranges::for_each(runs, invert);
}

}  // namespace reckon
