#include "executor/train/parallel/rank_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "executor/train/parallel/token_parts.h"
#include "sim/base/check.h"
#include "sim/model/layer_rules.h"
#include "sim/model/shapes.h"

namespace reckon {
namespace {

/// How a tensor lies on the tensor ranks.
enum class Form : std::uint8_t {
  whole,   // all of it on each
  shared,  // each rank has its tokens (sequence parallelism)
  split    // each rank has its features
};

std::string_view word_of(TensorExchange exchange) {
  switch (exchange) {
    case TensorExchange::none:
      return "";
    case TensorExchange::copy:
      return "copy";
    case TensorExchange::sum:
      return "sum";
    case TensorExchange::gather:
      return "gather";
    case TensorExchange::scatter:
      return "scatter";
    case TensorExchange::collect:
      return "collect";
    case TensorExchange::share:
      return "share";
  }
  return "";
}

class Builder {
 public:
  Builder(const ModelGraph& model, const ModelPlace& place)
      : model_(model), place_(place), sharding_(model.layers().size()), made_(sharding_.size()) {
    if (place.tensor.ranks > 1) shard();
    splits_ = feature_splits(model, sharding_, place.tensor.ranks, problems_);
    result_.place = place;
    add_token_problems(model, place, problems_);
  }

  Expected<RankModel> build() {
    if (!problems_.empty()) return tl::unexpected<Diagnostics>(std::move(problems_));
    for (const Layer& layer : model_.layers()) add(layer);
    check_ties();
    if (!problems_.empty()) return tl::unexpected<Diagnostics>(std::move(problems_));
    for (const Made& m : made_) result_.made.push_back(m.at);
    return std::move(result_);
  }

 private:
  struct Made {
    LayerId at{};  // in result_.layers
    Form form = Form::whole;
    bool rows_of_experts = false;
  };

  /// What follows a loss of split classes (a sum of losses) is whole.
  void shard() {
    sharding_ = shard_layers(model_);
    for (const Layer& layer : model_.layers()) {
      LayerSharding& s = sharding_[index(layer.id)];
      if (s.cut != TensorCut::parts) continue;
      const std::size_t input = index(layer.inputs[0]);
      if (!splits_output(model_.layers()[input], sharding_[input])) s.cut = TensorCut::whole;
    }
  }

  bool splits_tensors() const { return place_.tensor.ranks > 1; }
  Made& made(LayerId id) { return made_[index(id)]; }
  void problem(const Layer& layer, std::string_view what) {
    problems_.push_back(
        {.at = {},
         .what = fmt::format("layer '{}' ({}) {}", layer.name, kind_name(layer.op), what),
         .hint = "another layout, or another network"});
  }

  void add(const Layer& layer) {
    const std::size_t i = index(layer.id);
    const LayerSharding& sharding = sharding_[i];
    result_.begins.push_back(LayerId{static_cast<std::uint32_t>(result_.layers.size())});
    RankLayer local{.layer = layer, .origin = layer.id, .part = {}, .cut = sharding.cut};
    local.has_backward = model_.counts()[i].has_backward;
    Made m;
    m.form = input_form(layer, sharding.cut);
    m.rows_of_experts = makes_expert_rows(layer);
    local.layer.inputs.clear();
    for (std::size_t k = 0; k < layer.inputs.size(); ++k)
      local.layer.inputs.push_back(input_of(layer, k, sharding.cut, m.form));
    if (splits_output(layer, sharding)) m.form = Form::split;
    cut_layer(layer, local);
    local.layer.output = local_shape(layer.output, m.form, i, m.rows_of_experts);
    const bool sums_up = split_rule(layer.op) == SplitRule::sums_up;
    local.part.tokens = tokens_of(sums_up ? shape_of(layer.inputs[0]) : layer.output, m.form);
    check_dropout(layer, m.rows_of_experts);
    m.at = push(std::move(local));
    made_[i] = m;
    if (sharding.cut == TensorCut::row) add_sum(layer);
  }

  const Shape& shape_of(LayerId id) const { return model_.layers()[index(id)].output; }

  /// Of a layer that is whole: its tokens are shared out where one of its inputs' are, if it treats
  /// each by itself.
  Form input_form(const Layer& layer, TensorCut cut) {
    if (cut != TensorCut::whole || !token_by_token(model_, layer)) return Form::whole;
    const bool any = std::ranges::any_of(layer.inputs,
                                         [&](LayerId id) { return made(id).form == Form::shared; });
    return any ? Form::shared : Form::whole;
  }

  LayerId input_of(const Layer& layer, std::size_t k, TensorCut cut, Form form) {
    const LayerId id = layer.inputs[k];
    const bool first = k == 0;
    switch (cut) {
      case TensorCut::whole:
        return converted(layer, id, form);
      case TensorCut::column:
        return first ? for_parts(layer, id) : converted(layer, id, Form::whole);
      case TensorCut::row:
        if (first && split_rule(layer.op) != SplitRule::rows) return as_split(layer, id);
        return converted(layer, id, Form::whole);
      case TensorCut::parts:
        return as_split(layer, id);
    }
    return id;
  }
  LayerId as_split(const Layer& layer, LayerId id) {
    if (made(id).form != Form::split)
      problem(layer, "takes split features together with whole ones");
    return made(id).at;
  }

  /// A whole tensor before layers that each take a part of it.
  LayerId for_parts(const Layer& reader, LayerId id) {
    if (made(id).form == Form::shared) return exchanged(reader, id, TensorExchange::gather);
    const bool gradient = model_.counts()[index(id)].has_backward;
    return gradient ? exchanged(reader, id, TensorExchange::copy) : made(id).at;
  }
  LayerId converted(const Layer& reader, LayerId id, Form wanted) {
    const Form form = made(id).form;
    if (form == wanted) return made(id).at;
    if (form == Form::split) {
      problem(reader, "takes all features of a tensor that tensor ranks have split");
      return made(id).at;
    }
    return exchanged(reader, id,
                     wanted == Form::whole ? TensorExchange::collect : TensorExchange::share);
  }
  /// Made once for all readers.
  LayerId exchanged(const Layer& reader, LayerId id, TensorExchange exchange) {
    const auto [at, is_new] = exchanges_.try_emplace({index(id), exchange});
    if (!is_new) return at->second;
    const Form form = exchange == TensorExchange::share ? Form::shared : Form::whole;
    return at->second = push(exchange_of(id, reader.group, exchange, form));
  }
  void add_sum(const Layer& layer) {
    Made& m = made(layer.id);
    const bool shares = place_.sequence_parallel && token_by_token(model_, layer) &&
                        local_rows(layer.output, m.rows_of_experts) % place_.tensor.ranks == 0;
    const TensorExchange exchange = shares ? TensorExchange::scatter : TensorExchange::sum;
    m.form = shares ? Form::shared : Form::whole;
    m.at = push(exchange_of(layer.id, layer.group, exchange, m.form));
  }
  RankLayer exchange_of(LayerId id, const std::string& group, TensorExchange exchange, Form form) {
    const Layer& source = model_.layers()[index(id)];
    RankLayer e{.layer = {.name = fmt::format("{}.{}", source.name, word_of(exchange)),
                          .group = group,
                          .op = ScaleBy{1},
                          .inputs = {made(id).at}},
                .origin = id,
                .part = {.exchange = exchange}};
    e.layer.output = local_shape(source.output, form, index(id), made(id).rows_of_experts);
    e.has_backward = model_.counts()[index(id)].has_backward;
    return e;
  }

  LayerId push(RankLayer layer) {
    const LayerId id{static_cast<std::uint32_t>(result_.layers.size())};
    layer.layer.id = id;
    result_.layers.push_back(std::move(layer));
    return id;
  }

  /// Sizes of the op, and which part of the whole they are.
  void cut_layer(const Layer& layer, RankLayer& local) {
    const std::size_t i = index(layer.id);
    LayerPart& part = local.part;
    const FeatureSplit& own = splits_[i];
    const FeatureSplit of_input =
        layer.inputs.empty() ? FeatureSplit{} : splits_[index(layer.inputs[0])];
    if (local.cut == TensorCut::column) local.split = own;
    if (local.cut == TensorCut::row) {
      local.split = split_rule(layer.op) == SplitRule::rows
                        ? FeatureSplit{{.width = weights_of(layer.op).weight[0]}}
                        : of_input;
      part.adds_bias = place_.tensor.rank == 0;
      if (local.split.size() != 1) problem(layer, "takes features of several kinds together");
    }
    if (own.size() == 1) part.features = {part_of(own[0], place_.tensor).first, own[0].width};
    const bool shared_kv = std::ranges::any_of(
        own, [&](const FeatureSection& s) { return part_of(s, place_.tensor).sharers > 1; });
    const bool trains_part =
        local.cut == TensorCut::parts || input_form(layer, local.cut) == Form::shared;
    local.sums_weights =
        splits_tensors() && (trains_part || (local.cut == TensorCut::column && shared_kv));
    std::visit(
        overloaded{[&](Linear& l) { cut_matrix(local, l.in, l.out); },
                   [&](ExpertLinear& l) { cut_matrix(local, l.in, l.out); },
                   [&](Embedding& e) {
                     if (local.cut != TensorCut::row) return;
                     const SectionPart rows = part_of(local.split[0], place_.tensor);
                     part.rows = {rows.first, e.rows};
                     e.rows = rows.count;
                   },
                   [&](RmsNorm& n) {
                     if (!own.empty()) n.heads = features_of_rank(own, place_.tensor) / n.width;
                   },
                   [&](Attention& a) {
                     if (own.empty()) return;
                     part.heads = {part_of(own[0], place_.tensor).first / a.head_width, a.heads};
                     const FeatureSection kv{a.kv_heads * a.head_width, a.head_width, true};
                     a.heads = features_of_rank(own, place_.tensor) / a.head_width;
                     a.kv_heads = part_of(kv, place_.tensor).count / a.head_width;
                   },
                   [&](SoftmaxCrossEntropy& s) {
                     if (local.cut != TensorCut::parts) return;
                     const SectionPart classes = part_of(of_input[0], place_.tensor);
                     part.split_classes = true;
                     part.rows = {classes.first, s.classes};
                     s.classes = classes.count;
                   },
                   [](auto&) {}},
        local.layer.op);
    const std::int64_t experts = experts_of(layer.op);
    if (place_.expert.ranks > 1 && experts > 0)
      part.experts = {experts / place_.expert.ranks * place_.expert.rank, experts};
  }
  void cut_matrix(const RankLayer& local, std::int64_t& in, std::int64_t& out) const {
    if (local.cut == TensorCut::column) out = features_of_rank(local.split, place_.tensor);
    if (local.cut == TensorCut::row) in = features_of_rank(local.split, place_.tensor);
  }

  bool makes_expert_rows(const Layer& layer) {
    if (std::holds_alternative<ExpertDispatch>(layer.op)) return true;
    if (std::holds_alternative<ExpertCombine>(layer.op) || layer.inputs.empty()) return false;
    return made(layer.inputs[0]).rows_of_experts;
  }

  /// Rows of one sample before tensor ranks share them. Of experts' rows there is memory for those
  /// of all ranks: all of them may choose the experts of one.
  std::int64_t local_rows(const Shape& shape, bool rows_of_experts) const {
    return shape[0] / place_.context.ranks * (rows_of_experts ? place_.expert.ranks : 1);
  }
  Shape local_shape(Shape shape, Form form, std::size_t i, bool rows_of_experts) const {
    const bool tokens =
        shape.size() == 2 || std::holds_alternative<InputLayer>(model_.layers()[i].op);
    if (tokens) shape[0] = local_rows(shape, rows_of_experts);
    if (form == Form::shared) shape[0] /= place_.tensor.ranks;
    if (form == Form::split && !splits_[i].empty())
      shape.back() = features_of_rank(splits_[i], place_.tensor);
    return shape;
  }
  TokenPart tokens_of(const Shape& shape, Form form) const {
    if (shape.size() == 3) return {};
    const TokenPart own = tokens_of_context(shape[0], place_.context);
    return form == Form::shared ? part_of_tokens(own, shape[0], place_.tensor) : own;
  }

  void check_dropout(const Layer& layer, bool rows_of_experts) {
    const auto* dropout = std::get_if<Dropout>(&layer.op);
    if (dropout == nullptr || dropout->rate <= 0) return;
    if (rows_of_experts && place_.context.ranks * place_.expert.ranks > 1)
      problem(layer, "drops rows of experts, whose order is another on each rank");
    if (splits_[index(layer.id)].size() > 1) problem(layer, "drops features of several kinds");
  }

  /// A matrix and its owner are cut alike: the owner's rows are the outputs of a product.
  void check_ties() {
    for (const Layer& layer : model_.layers()) {
      if (!layer.tied_to) continue;
      const auto first_dimension = [&](LayerId id) -> FeatureSplit {
        const TensorCut cut = sharding_[index(id)].cut;
        const LayerOp& op = model_.layers()[index(id)].op;
        if (cut == TensorCut::row && split_rule(op) == SplitRule::rows)
          return {{.width = weights_of(op).weight[0]}};
        if (cut == TensorCut::row) return {{.width = -1}};  // along its second dimension
        return cut == TensorCut::column ? splits_[index(id)] : FeatureSplit{};
      };
      if (first_dimension(layer.id) != first_dimension(*layer.tied_to))
        problem(layer, fmt::format("shares the matrix of '{}', which tensor ranks cut another way",
                                   model_.layers()[index(*layer.tied_to)].name));
    }
  }

  const ModelGraph& model_;
  ModelPlace place_;
  std::vector<LayerSharding> sharding_;
  Diagnostics problems_;
  std::vector<FeatureSplit> splits_;
  std::vector<Made> made_;
  std::map<std::pair<std::size_t, TensorExchange>, LayerId> exchanges_;
  RankModel result_;
};

}  // namespace

Expected<RankModel> make_rank_model(const ModelGraph& model, const ModelPlace& place) {
  return Builder(model, place).build();
}

RankModel whole_model(const ModelGraph& model) { return std::move(*make_rank_model(model, {})); }

Diagnostics model_parallel_problems(const ModelGraph& model, const Layout& layout) {
  auto made = make_rank_model(model, place_in_model(layout, {}));
  return made ? Diagnostics{} : std::move(made.error());
}

}  // namespace reckon
