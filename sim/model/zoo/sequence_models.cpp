#include "sim/model/zoo/sequence_models.h"

#include <algorithm>
#include <array>

#include "sim/model/zoo/language.h"
#include "sim/model/zoo/speech.h"
#include "sim/model/zoo/translation.h"

namespace reckon {
namespace {

/// Pairs of frames and symbols, of words and words grow with its square.
constexpr std::int64_t kLongestOfPairs = 1 << 14;

/// [Vaswani 2017, table 3, "big"]; section 5.1: 37,000 tokens that both languages share. Sentences
/// of WMT 2014 are shorter than 64 tokens, with few exceptions.
Expected<ModelGraph> transformer_big(std::string name, std::int64_t length) {
  return make_translation_transformer(std::move(name), {.layers = 6,
                                                        .hidden = 1024,
                                                        .heads = 16,
                                                        .feed_forward = 4096,
                                                        .vocabulary = 37000,
                                                        .sequence_length = length,
                                                        .dropout = 0.3});
}

/// The paper's base model (table 3) over the words of Multi30k that stand there five times or more:
/// jadore801120/attention-is-all-you-need-pytorch, README, which Gavel trains.
Expected<ModelGraph> transformer_multi30k(std::string name, std::int64_t length) {
  return make_translation_transformer(std::move(name), {.layers = 6,
                                                        .hidden = 512,
                                                        .heads = 8,
                                                        .feed_forward = 2048,
                                                        .vocabulary = 3149,
                                                        .sequence_length = length,
                                                        .dropout = 0.1,
                                                        .source_vocabulary = 2909});
}

/// NVIDIA/DeepLearningExamples:PyTorch/LanguageModeling/Transformer-XL/pytorch/wt103_base.yaml and
/// wt103_large.yaml: WikiText-103's 267,735 words; `adaptive` as they have it.
TransformerXlShape transformer_xl(bool large, bool adaptive, std::int64_t length) {
  TransformerXlShape s{.layers = 16,
                       .hidden = 512,
                       .heads = 8,
                       .head_width = 64,
                       .feed_forward = 2048,
                       .cutoffs = {267735},
                       .dropout = 0.1,
                       .segment = length};
  if (large) {
    s.layers = 18;
    s.hidden = 1024;
    s.heads = 16;
    s.feed_forward = 4096;
    s.dropout = s.attention_dropout = 0.2;
  }
  if (!adaptive) return s;
  s.cutoffs = {19997, 39997, 199997, 267735};
  s.narrower = large ? 4 : 1;
  return s;
}
template <bool large, bool adaptive>
Expected<ModelGraph> make_xl(std::string name, std::int64_t length) {
  return make_transformer_xl(std::move(name), transformer_xl(large, adaptive, length));
}

/// LibriSpeech's 960 hours of training are 281,241 utterances [Panayotov 2015, table 1]: 12.3 s,
/// 410 frames of 30 ms, and 33 words [9.4 million words: the same, section 3] of about 1.5 pieces
/// each.
constexpr TransducerShape kRnntShape{.frames = 410, .symbols = 50};
Expected<ModelGraph> rnnt(std::string name, std::int64_t length) {
  const std::int64_t symbols = kRnntShape.symbols * length / kRnntShape.frames;
  return make_rnnt(std::move(name), {length, std::max<std::int64_t>(1, symbols)});
}

constexpr std::array kSequenceModels{
    SequenceModel{"transformer_big", 64, kLongestSequence, transformer_big},
    // 12 words a sentence, and start and end; a batch is padded to its longest, about twice that.
    SequenceModel{"transformer_multi30k", 28, kLongestSequence, transformer_multi30k},
    // WMT 2016 without pairs of more than 50 pieces: about 25 a sentence; buckets ten wide pad
    // five more on average.
    SequenceModel{"gnmt", 30, kLongestOfPairs, make_gnmt},
    SequenceModel{"transformer_xl_base", 192, kLongestSequence, make_xl<false, true>},
    SequenceModel{"transformer_xl_large", 384, kLongestSequence, make_xl<true, true>},
    // As lambdal/deeplearning-benchmark:pytorch/results prints its runs: adaptive=False,
    // div_val=1; the large one with tgt_len=256.
    SequenceModel{"transformer_xl_base_softmax", 192, kLongestSequence, make_xl<false, false>},
    SequenceModel{"transformer_xl_large_softmax", 256, kLongestSequence, make_xl<true, false>},
    SequenceModel{"electra_base", 512, 512, make_electra_base},
    // Summaries of XSum [the reference's README]: a text of 1,024 pieces, a summary of 60. Of a
    // length of its own: pre-training, which writes the whole text again.
    SequenceModel{"bart_large", 512, 1024,
                  [](std::string name, std::int64_t length) {
                    return make_bart_large(std::move(name), length, length);
                  }},
    SequenceModel{"bart_large_xsum", 1024, 1024,
                  [](std::string name, std::int64_t length) {
                    return make_bart_large(std::move(name), length,
                                           std::min<std::int64_t>(60, length));
                  }},
    SequenceModel{"rnnt", kRnntShape.frames, kLongestOfPairs, rnnt},
    // The longest utterance of LibriSpeech that is trained on, 16.7 s of frames of 10 ms, to which
    // the references' benchmarks pad, and to a multiple of 16.
    SequenceModel{"jasper", 1680, kLongestSequence, make_jasper},
    SequenceModel{"quartznet", 1680, kLongestSequence, make_quartznet},
    // CMU ARCTIC: 3 s a sentence; a batch is padded to its longest, about 5 s.
    SequenceModel{"deepspeech2", 500, kLongestSequence, make_deepspeech2},
    // bptt of the example.
    SequenceModel{"lstm_lm_wikitext2", 35, kLongestSequence, make_lstm_language_model}};

}  // namespace

std::span<const SequenceModel> sequence_models() { return kSequenceModels; }

}  // namespace reckon
