#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "executor/train/layers/layer_part.h"

// What a kernel takes at a time where a rank has some of the tokens of a sample.
namespace reckon::cuda {

/// Rows that stand side by side here and in the sequence: of `samples` samples from `sample` on
/// `count` rows from `row` on, the first of which has that place in its sequence.
struct TokenBlock {
  std::int64_t sample = 0, samples = 1;
  std::int64_t row = 0, place = 0, count = 0;
};
/// All rows of a batch: one block where each sample's are one run, else one a run and sample.
inline std::vector<TokenBlock> token_blocks(const TokenPart& part, std::int64_t batch,
                                            std::int64_t rows) {
  if (part.runs.size() <= 1) return {{.samples = batch, .place = part.place_of(0), .count = rows}};
  std::vector<TokenBlock> blocks;
  for (std::int64_t b = 0; b < batch; ++b) {
    std::int64_t row = 0;
    for (const TokenRun& run : part.runs) {
      blocks.push_back({.sample = b, .row = row, .place = run.first, .count = run.count});
      row += run.count;
    }
  }
  return blocks;
}

/// Of each of `batch` samples the numbers of this rank's tokens.
inline std::vector<float> own_tokens(std::span<const float> numbers, std::int64_t batch,
                                     const TokenPart& part) {
  const auto sample = numbers.size() / static_cast<std::size_t>(batch);
  const auto token = sample / static_cast<std::size_t>(part.total);
  std::vector<float> own;
  for (std::size_t b = 0; b < static_cast<std::size_t>(batch); ++b)
    for (const TokenRun& run : part.runs) {
      const auto first = static_cast<std::size_t>(run.first) * token;
      const auto of_run =
          numbers.subspan(b * sample + first, static_cast<std::size_t>(run.count) * token);
      own.insert(own.end(), of_run.begin(), of_run.end());
    }
  return own;
}

}  // namespace reckon::cuda
