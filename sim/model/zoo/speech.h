#pragma once
#include <string>

#include "sim/model/graph.h"

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

/// Jasper 10x5 [Li 2019, arXiv:1904.03288, table 1 and section 2.1], with its dense residuals:
/// NVIDIA/DeepLearningExamples:PyTorch/SpeechRecognition/Jasper/configs. One-dimensional
/// convolutions are images of one row; the dilation of the last wide one moves no more data. CTC
/// counts as a cross-entropy over the frames. One sample is an utterance; the sequence length is
/// its frames of 10 ms, 64 filters each.
Expected<ModelGraph> make_jasper(std::string name, std::int64_t frames);

/// QuartzNet 15x5 [Kriman 2020, arXiv:1910.10261, table 1]: separable convolutions in Jasper's
/// order, plain residuals; NVIDIA/DeepLearningExamples:PyTorch/SpeechRecognition/QuartzNet/configs.
/// Otherwise as Jasper.
Expected<ModelGraph> make_quartznet(std::string name, std::int64_t frames);

/// DeepSpeech2 [Amodei 2016, arXiv:1512.02595] as SeanNaren/deepspeech.pytorch:model.py builds it
/// and Sia trained it (siasosp23/artifacts:adaptdl/benchmark/models/deepspeech2/train.py): two
/// convolutions over (161 frequencies, T frames of 10 ms), five bidirectional GRUs of 800 whose
/// directions are added, 29 characters. The second convolution halves the frequencies alone: here
/// it halves time too and has twice the channels, half of them for each frame (the same products
/// and outputs, 32 x 32 x 21 x 11 weights more). Batch norms over the features of a sequence count
/// as layer norms, CTC as a cross-entropy over the frames.
Expected<ModelGraph> make_deepspeech2(std::string name, std::int64_t frames);

/// An LSTM over words: pytorch/examples:word_language_model with its defaults (embedding and hidden
/// 200, two layers, dropout 0.2) on WikiText-2, whose 33,278 words are those of its data.
Expected<ModelGraph> make_lstm_language_model(std::string name, std::int64_t sequence_length);

}  // namespace reckon
