#pragma once
#include <string>
#include <vector>

#include "sim/model/graph.h"

// Language models that are no plain transformers.
namespace reckon {

/// Transformer-XL [Dai 2019, arXiv:1901.02860] as kimiyoung/transformer-xl:pytorch and
/// NVIDIA/DeepLearningExamples:PyTorch/LanguageModeling/Transformer-XL/pytorch/mem_transformer.py
/// train it: each segment also attends to the states that each layer made of the one before it,
/// which are as many and have no gradient; scores of distances; adaptive input and output
/// [Grave 2017, arXiv:1609.04309], the output's matrices those of the input. Left out: the two
/// biases of queries that all layers share. A sample is a segment.
struct TransformerXlShape {
  std::int64_t layers = 0, hidden = 0, heads = 0, head_width = 0, feed_forward = 0;
  /// Words by frequency, the last is all. Four parts, or one: a plain softmax. Each part has
  /// an embedding `narrower` times narrower than the part before.
  std::vector<std::int64_t> cutoffs;
  std::int64_t narrower = 1;
  double dropout = 0, attention_dropout = 0;  // probabilities
  std::int64_t segment = 0;
};
Expected<ModelGraph> make_transformer_xl(std::string name, const TransformerXlShape& shape);

/// ELECTRA-base [Clark 2020, arXiv:2003.10555, tables 1 and 6]: a discriminator as BERT-base, which
/// tells replaced tokens, and a generator of a third of its width, which makes them, trained
/// together. They share the embeddings of tokens and segments; that of positions counts twice here.
/// NVIDIA/DeepLearningExamples:TensorFlow2/LanguageModeling/ELECTRA/modeling.py.
Expected<ModelGraph> make_electra_base(std::string name, std::int64_t sequence_length);

}  // namespace reckon
