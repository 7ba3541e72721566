#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "sim/scenario/step_evidence.h"

// What published runs say of a forecast's step: whose, on what, how fast, how they moved it.
namespace reckon {

/// Lines under "Evidence"; "" where evidence was not asked.
std::string evidence_section(const std::optional<StepEvidence>& evidence, int width);
/// The same in sentences, for memo and page, without markup.
std::string evidence_sentences(const StepEvidence& evidence);
/// Every run that was taken, most alike first.
std::string evidence_table(const StepEvidence& evidence);
/// The runs' measured over predicted rates by how alike they are, with the range that follows.
std::string evidence_svg(const StepEvidence& evidence, std::string_view title);

}  // namespace reckon
