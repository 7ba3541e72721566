#pragma once
#include "executor/train/layers/layer_part.h"
#include "executor/train/parallel/model_place.h"
#include "sim/base/diagnostic.h"
#include "sim/model/graph.h"

// How the tokens of a sample are shared out: among context ranks, and among tensor ranks by
// sequence parallelism.
namespace reckon {

/// Of 2c equal pieces of the sequence rank r of c has the r-th and, from the end, the r-th: each
/// sees equally many tokens before its own, as sim/step/block_times.h assumes. One rank: all.
TokenPart tokens_of_context(std::int64_t tokens, GroupPlace context);
/// Tokens whose keys and values a context rank has when they went that many ranks round: those of
/// the rank so many before it.
std::vector<TokenRun> tokens_after(int hops, std::int64_t tokens, GroupPlace context);
/// Does any of the rows' tokens attend to any of the columns'?
bool sees_any(const Attention& op, TokenRun rows, TokenRun columns);
/// Of those the tensor rank's share, in their order; `total` tokens in the sequence.
TokenPart part_of_tokens(const TokenPart& of_context, std::int64_t total, GroupPlace tensor);

/// Makes a token, (T, D), of the same token of its inputs alone.
bool token_by_token(const ModelGraph& model, const Layer& layer);

/// Among which a layer's rows are sorted; 0: it has nothing to do with experts.
std::int64_t experts_of(const LayerOp& op);

/// What keeps tokens from being shared out among context ranks, and experts among expert ranks.
void add_token_problems(const ModelGraph& model, const ModelPlace& place, Diagnostics& problems);

}  // namespace reckon
