#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "sim/model/blocks/blocks.h"
#include "sim/model/zoo/builder.h"

namespace reckon {

/// Builds the blocks of a stack into a list of layers. Names are "PREFIX.layers.I.PART.LAYER".
class StackBuilder {
 public:
  StackBuilder(LayerList& net, const Stack& stack, std::string prefix)
      : net_(net), stack_(stack), prefix_(std::move(prefix)) {}

  /// x (T, hidden) -> (T, hidden). memory: what cross-attention sees, (S, width).
  LayerId build(LayerId x, std::optional<LayerId> memory = std::nullopt,
                std::int64_t memory_width = 0);

  /// Where the stack has one; in the group at hand.
  LayerId last_norm(LayerId x);
  LayerId norm(std::string name, LayerId x, std::int64_t width = 0);
  LayerId linear(std::string_view name, std::int64_t in, std::int64_t out, bool bias, LayerId x);

 private:
  LayerId block(const Block& block, LayerId x);
  LayerId parallel_block(const Block& block, LayerId x);
  LayerId part(const Part& part, LayerId x);
  LayerId summed(const Part& part, LayerId x, LayerId y);
  LayerId apply(const PartOp& op, LayerId x);

  LayerId run(const AttentionPart& a, LayerId x);
  LayerId run(const MambaPart& m, LayerId x);
  LayerId run(const Mamba2Part& m, LayerId x);
  LayerId run(const DeltaPart& r, LayerId x);
  LayerId run(const FeedForwardPart& f, LayerId x);
  LayerId run(const ExpertsPart& e, LayerId x);

  LayerId latent_attention(const AttentionPart& a, LayerId x);
  LayerId query_key_norm(const AttentionPart& a, std::string_view name, std::int64_t heads,
                         LayerId x);
  LayerId attend(const AttentionPart& a, std::vector<LayerId> inputs);
  LayerId convolved(std::string_view name, std::int64_t width, std::int64_t kernel, bool bias,
                    LayerId x);
  LayerId feed_forward(const FeedForwardPart& f, std::string_view inside, LayerId x);
  LayerId activated(const FeedForwardPart& f, const std::string& name, LayerId up, LayerId gate);
  LayerId rotated(const AttentionPart& a, std::string_view name, std::int64_t head_width,
                  LayerId x);
  /// "PREFIX.layers.I.PART.name" of the part at hand.
  std::string named(std::string_view name) const;

  LayerList& net_;
  const Stack& stack_;
  std::string prefix_;
  std::string block_, part_;
  std::optional<LayerId> memory_;
  std::int64_t memory_width_ = 0;
  std::optional<LayerId> relative_bias_;
};

}  // namespace reckon
