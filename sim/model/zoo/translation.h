#pragma once
#include <string>

#include "sim/model/graph.h"

namespace reckon {

/// Encoder and decoder of [Vaswani 2017, arXiv:1706.03762]; layers of
/// tensorflow/tensor2tensor:models/transformer.py (transformer_big): norms behind each residual
/// sum, as the paper's section 3.1 has them, no biases in attention, one embedding for both
/// languages and the output, sinusoidal positions. Not modelled: label smoothing.
struct TranslationShape {
  std::int64_t layers = 0;  // of the encoder, and again of the decoder
  std::int64_t hidden = 0, heads = 0, feed_forward = 0, vocabulary = 0;
  std::int64_t sequence_length = 0;  // tokens of the source, and again of the target
  double dropout = 0;                // probability
  /// The source has words of its own; 0: both languages share `vocabulary`.
  std::int64_t source_vocabulary = 0;
};
/// One sample is a pair of sentences.
Expected<ModelGraph> make_translation_transformer(std::string name, const TranslationShape& shape);

/// GNMT v2, after [Wu 2016, arXiv:1609.08144] as MLPerf v0.5 to v0.7 and NVIDIA train it:
/// NVIDIA/DeepLearningExamples:PyTorch/Translation/GNMT/seq2seq/models. Four LSTMs of 1,024 on each
/// side, the encoder's first in both directions; additive attention of the decoder's first layer,
/// whose context goes into all others. Its weighted sum is taken here over tanh(query + key), which
/// the scores are made of, in place of the encoder's output: one more read of the pairs. One
/// embedding for both languages; the output has its own weights. A sample is a pair of sentences,
/// `sequence_length` tokens each.
Expected<ModelGraph> make_gnmt(std::string name, std::int64_t sequence_length);

/// BART-large [Lewis 2020, arXiv:1910.13461], 12 layers each of 1,024, norms behind each residual
/// sum: huggingface.co/facebook/bart-large/config.json and
/// NVIDIA/DeepLearningExamples:PyTorch/LanguageModeling/BART. A sample is a pair of texts.
Expected<ModelGraph> make_bart_large(std::string name, std::int64_t source, std::int64_t target);

}  // namespace reckon
