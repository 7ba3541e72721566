#pragma once
#include <cstdint>
#include <vector>

#include "executor/train/recipe/schedule.h"

namespace reckon::cuda {

/// By layer: elements from a row of its output to the next where it makes logits that only a loss
/// of the same part reads, so that rows begin at 16 bytes; 0 elsewhere. Vocabularies are odd
/// (GPT-2's has 50,257 words), and the three products are several times as slow where the length
/// that is not a multiple of eight is anywhere in them: so the weights have rows of zeros too,
/// device_layout().
std::vector<std::int64_t> logit_strides(const RankModel& model, LayerSpan part);

/// The model with rows of that length, for the sizes of tensors alone.
RankModel with_strides(RankModel model, const std::vector<std::int64_t>& strides);

}  // namespace reckon::cuda
