#pragma once
#include <string>

#include "sim/catalog/model_graph.h"

namespace reckon {

/// Encoder and decoder of [Vaswani 2017, arXiv:1706.03762]; layers of
/// tensorflow/tensor2tensor:models/transformer.py (transformer_big): norms behind each residual
/// sum, as the paper's section 3.1 has them, no biases in attention, one embedding for both
/// languages and the output, sinusoidal positions. Not modelled: label smoothing.
struct TranslationShape {
  std::int64_t layers = 0;  // of the encoder, and again of the decoder
  std::int64_t hidden = 0, heads = 0, feed_forward = 0, vocabulary = 0;
  std::int64_t sequence_length = 0;  // tokens of the source, and again of the target
  double dropout = 0;
};
/// One sample is a pair of sentences.
Expected<ModelGraph> make_translation_transformer(std::string name, const TranslationShape& shape);

}  // namespace reckon
