#pragma once
#include <span>
#include <string>

#include <tl/expected.hpp>

#include "sim/model/graph.h"

// The shape that each kind of layer makes of its inputs', and what it demands of them.
namespace reckon {

template <class... Fs>
struct overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
overloaded(Fs...) -> overloaded<Fs...>;

/// Why a layer cannot be: the sentence and what to do about it (may be empty).
struct ShapeError {
  std::string what;
  std::string hint;
};

/// "Conv2d", as messages name it.
std::string_view kind_name(const LayerOp& op);

/// Attributes of the layer by itself: positive sizes, groups that divide, rates in [0, 1). nullopt:
/// fine.
std::optional<ShapeError> check_attributes(const LayerOp& op);

/// Shape of the output of one sample. `input` is the model's, for an InputLayer. Attributes have
/// been checked.
tl::expected<Shape, ShapeError> infer_shape(const LayerOp& op, std::span<const Shape* const> inputs,
                                            const Shape& input);

}  // namespace reckon
