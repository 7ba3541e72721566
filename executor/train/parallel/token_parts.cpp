#include "executor/train/parallel/token_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/model/shapes.h"

namespace reckon {
namespace {

template <class... Ops>
bool is_one_of(const LayerOp& op) {
  return (std::holds_alternative<Ops>(op) || ...);
}

bool works_on_tokens(const LayerOp& op) {
  return is_one_of<Linear, LayerNorm, RmsNorm, Activation, Dropout, Embedding, PositionEmbedding,
                   RotaryEmbedding, SinusoidalPositions, Add, Multiply, Concat, ScaleBy>(op);
}
bool is_of_experts(const LayerOp& op) {
  return is_one_of<ExpertDispatch, ExpertLinear, ExpertCombine>(op);
}
/// Why a layer cannot have a part of a sequence, or "".
std::string reason_against_context(const Layer& layer, const ModelGraph& model) {
  const std::int64_t tokens = model.sequence_length();
  const auto rows = [&](LayerId id) { return model.layers()[index(id)].output[0]; };
  if (layer.output == Shape{1})  // losses, and what adds them up
    return is_one_of<SoftmaxCrossEntropy, Add, ScaleBy>(layer.op) ? ""
                                                                  : "takes all tokens together";
  if (!is_one_of<InputLayer, Attention>(layer.op) && !works_on_tokens(layer.op) &&
      !is_of_experts(layer.op))
    return "takes all tokens together";
  const bool of_tokens =
      std::ranges::all_of(layer.inputs, [&](LayerId id) { return rows(id) % tokens == 0; });
  if (layer.output[0] % tokens != 0 || !of_tokens)
    return fmt::format("does not work on the {} tokens of the sequence", tokens);
  return "";
}

}  // namespace

std::int64_t experts_of(const LayerOp& op) {
  if (const auto* e = std::get_if<ExpertDispatch>(&op)) return e->experts;
  if (const auto* e = std::get_if<ExpertLinear>(&op)) return e->experts;
  if (const auto* e = std::get_if<ExpertCombine>(&op)) return e->experts;
  return 0;
}

TokenPart tokens_of_context(std::int64_t tokens, GroupPlace context) {
  TokenPart part{.runs = {}, .total = tokens};
  if (context.ranks == 1) return part;
  const std::int64_t pieces = 2 * std::int64_t{context.ranks}, each = tokens / pieces;
  part.runs = {{context.rank * each, each}, {(pieces - 1 - context.rank) * each, each}};
  return part;
}

std::vector<TokenRun> tokens_after(int hops, std::int64_t tokens, GroupPlace context) {
  const int from = (context.rank - hops + context.ranks) % context.ranks;
  return tokens_of_context(tokens, {from, context.ranks}).runs;
}

bool sees_any(const Attention& op, TokenRun rows, TokenRun columns) {
  if (!op.causal) return true;
  return columns.first < rows.first + rows.count &&
         (op.window == 0 || columns.first + columns.count - 1 > rows.first - op.window);
}

TokenPart part_of_tokens(const TokenPart& of_context, std::int64_t total, GroupPlace tensor) {
  TokenPart part{.runs = {}, .total = total};
  std::vector<TokenRun> runs = of_context.runs;
  if (runs.empty()) runs = {{0, total}};
  std::int64_t rows = 0;
  for (const TokenRun& run : runs) rows += run.count;
  const std::int64_t begin = rows / tensor.ranks * tensor.rank, end = begin + rows / tensor.ranks;
  std::int64_t row = 0;
  for (const TokenRun& run : runs) {
    const std::int64_t from = std::max(begin, row), to = std::min(end, row + run.count);
    if (from < to) part.runs.push_back({run.first + from - row, to - from});
    row += run.count;
  }
  return part;
}

bool token_by_token(const ModelGraph& model, const Layer& layer) {
  if (!works_on_tokens(layer.op) || layer.output.size() != 2) return false;
  const bool looks_up = std::holds_alternative<Embedding>(layer.op);
  return std::ranges::all_of(layer.inputs, [&](LayerId id) {
    const Shape& shape = model.layers()[index(id)].output;
    return shape.size() == (looks_up ? 1u : 2u) && shape[0] == layer.output[0];
  });
}

void add_token_problems(const ModelGraph& model, const ModelPlace& place, Diagnostics& problems) {
  const auto add = [&](const Layer& layer, const std::string& what, std::string hint) {
    problems.push_back(
        {.at = {},
         .what = fmt::format("layer '{}' ({}) {}", layer.name, kind_name(layer.op), what),
         .hint = std::move(hint)});
  };
  const std::int64_t pieces = 2 * std::int64_t{place.context.ranks};
  if (place.context.ranks > 1 && model.sequence_length() % pieces != 0)
    problems.push_back({.at = {},
                        .what = fmt::format("{} context ranks do not share out {} tokens evenly",
                                            place.context.ranks, model.sequence_length()),
                        .hint = fmt::format("a sequence_length that {} divides", pieces)});
  for (const Layer& layer : model.layers()) {
    const std::string reason =
        place.context.ranks > 1 ? reason_against_context(layer, model) : std::string();
    if (!reason.empty())
      add(layer, reason + ", which context ranks have a part of each", "context: 1");
    if (const std::int64_t experts = experts_of(layer.op); experts % place.expert.ranks != 0)
      add(layer,
          fmt::format("has {} experts, which {} ranks do not share evenly", experts,
                      place.expert.ranks),
          "an expert degree that divides them");
  }
}

}  // namespace reckon
