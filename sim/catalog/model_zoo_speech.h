#pragma once
#include <string>

#include "sim/catalog/model_graph.h"

namespace reckon {

/// RNN transducer [Graves 2012, arXiv:1211.3711; He 2018, arXiv:1811.06621] as MLPerf trained it on
/// LibriSpeech: mlcommons/training:retired_benchmarks/rnnt/pytorch, configs/baseline_v3-1023sp.yaml
/// and rnnt/model.py. A frame is 30 ms of sound (80 filters of 10 ms, three stacked), a symbol one
/// of 1,023 word pieces. LSTMs have both biases of torch.nn.LSTM. Its loss counts as a
/// cross-entropy over all pairs of frame and symbol.
struct TransducerShape {
  std::int64_t frames = 0;   // of an utterance
  std::int64_t symbols = 0;  // of its text
};
/// One sample is an utterance; the sequence length is its frames.
Expected<ModelGraph> make_rnnt(std::string name, const TransducerShape& shape);

/// An LSTM over words: pytorch/examples:word_language_model with its defaults (embedding and hidden
/// 200, two layers, dropout 0.2) on WikiText-2, whose 33,278 words are those of its data.
Expected<ModelGraph> make_lstm_language_model(std::string name, std::int64_t sequence_length);

}  // namespace reckon
