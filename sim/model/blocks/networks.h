#pragma once
#include "sim/model/blocks/blocks.h"

// Networks around stacks of blocks. Each builder counts a sample of `tokens` tokens; all that is
// wrong comes at once.
namespace reckon {

/// What a language model is trained on, and so which heads it has.
enum class LanguageTask {
  next_token,    // a decoder; all tokens are predicted
  masked_token,  // an encoder; ceil(0.15 T) tokens, as make_transformer
  classes        // a class of the whole sequence, from its first token
};

struct LanguageNetwork {
  Stack stack;
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;             // rows of a learned table; 0: none
  std::int64_t position_rows_unused = 0;  // of them, before the first (RoBERTa, OPT: 2)
  std::int64_t token_types = 0;
  double embedding_scale = 1;  // factor
  bool embedding_norm = false;
  LanguageTask task = LanguageTask::next_token;
  bool tied_output = true;
  bool output_bias = false;
  double logits_softcap = 0;  // c of c tanh(logit / c); 0: none
  double logits_scale = 1;    // factor
  std::int64_t classes = 0;
  /// Of a masked-token head: a dense layer, its activation and a norm before the output.
  bool head_dense = false, head_dense_bias = true;
  ActivationKind head_activation = ActivationKind::gelu;
  /// Of classes: a dense layer and tanh of the first token, as BERT's pooler.
  bool pooler = false;
  std::string prefix = "model";
};
Expected<ModelGraph> make_network(std::string name, const LanguageNetwork& network,
                                  std::int64_t tokens);

/// An encoder and a decoder of one width [Vaswani 2017]. What is encoded is text of as many tokens
/// as are decoded, or sound.
struct SoundInput {
  std::int64_t mel_bins = 80;  // features of a frame
  std::int64_t frames = 3000;  // halved by the second of two convolutions [Radford 2022, 2.2]
};
struct EncoderDecoder {
  Stack encoder, decoder;
  std::int64_t vocabulary = 0;
  std::int64_t decoder_positions = 0;  // rows of a learned table; 0: none
  std::int64_t encoder_positions = 0;
  std::int64_t position_rows_unused = 0;
  bool embedding_norm = false;  // behind positions (BART)
  std::optional<SoundInput> sound = std::nullopt;
  bool tied_embeddings = true;  // the encoder's are the decoder's
  bool tied_output = true;
  double output_scale = 1;  // factor on the decoder's output before its head
};
Expected<ModelGraph> make_network(std::string name, const EncoderDecoder& network,
                                  std::int64_t tokens);

/// An image as the tokens of its patches. A convolution whose kernels do not overlap is a product
/// of each patch, (channels * patch * patch).
struct VisionTower {
  Stack stack;
  std::int64_t patches = 0;      // of an image
  std::int64_t patch_width = 0;  // numbers of a patch
  bool patch_bias = false;
  bool class_token = false;
  std::int64_t positions = 0;  // rows of a learned table; 0: none
  bool first_norm = false;     // before the blocks (CLIP)
};

/// How the tokens of an image come to those of the text: steps, one behind the other.
struct DropClassToken {};
struct JoinSteps {
  std::int64_t tokens = 4;  // so many become one, as wide as all of them
};
struct PoolSquare {
  std::int64_t side = 4;  // averages squares of so many by so many tokens
};
struct NormStep {
  NormKind kind = NormKind::layer;
};
struct LinearStep {
  std::int64_t out = 0;
  bool bias = true;
};
using ProjectorStep =
    std::variant<DropClassToken, JoinSteps, PoolSquare, NormStep, LinearStep, Activation>;

/// A language model that reads an image before the text; `tokens` are those of the text.
struct VisionLanguage {
  VisionTower vision;
  std::vector<ProjectorStep> projector;
  LanguageNetwork language;
};
Expected<ModelGraph> make_network(std::string name, const VisionLanguage& network,
                                  std::int64_t tokens);
/// Tokens of one image in the language model's sequence.
std::int64_t image_tokens(const VisionLanguage& network);

/// CLIP and SigLIP: an image and a text as vectors, compared with all others of the batch.
struct DualEncoder {
  VisionTower vision;
  LanguageNetwork text;    // without head; its task says nothing
  std::int64_t width = 0;  // of the common vectors
  bool sigmoid = false;    // SigLIP: pairs by themselves, a learned bias
  /// CLIP: projections of the class token and of one token of the text, without biases. SigLIP: a
  /// learned query over the image's tokens with an MLP of this width, and a head of the text.
  std::int64_t pooling_heads = 0, pooling_width = 0;
  std::int64_t batch = 32768;  // [Radford 2021, section 2.5; Zhai 2023, section 4.1]
};
Expected<ModelGraph> make_network(std::string name, const DualEncoder& network,
                                  std::int64_t tokens);

/// FLUX.1 [black-forest-labs/flux; diffusers transformer_flux.py]: `double_blocks` of two streams
/// that attend jointly, then `single_blocks` of one. The encoders of text and image are not of the
/// graph: their outputs come as inputs. tokens: of the image's latents, (height/16)(width/16).
struct FluxTransformer {
  std::int64_t double_blocks = 19, single_blocks = 38, heads = 24, head_width = 128;
  std::int64_t latent_channels = 64, text_width = 4096, pooled_width = 768;
  std::int64_t text_tokens = 512;
  bool guidance = false;
};
Expected<ModelGraph> make_network(std::string name, const FluxTransformer& network,
                                  std::int64_t tokens);

/// DiT [Peebles 2023, arXiv:2212.09748], adaLN-Zero; facebookresearch/DiT:models.py.
struct DiffusionTransformer {
  std::int64_t layers = 28, hidden = 1152, heads = 16;
  std::int64_t patch = 2, channels = 4, side = 32;  // of the latents
  std::int64_t classes = 1000;
  bool learns_deviation = true;  // twice as many channels come out
};
Expected<ModelGraph> make_network(std::string name, const DiffusionTransformer& network);

}  // namespace reckon
