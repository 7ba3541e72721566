#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "exchange/graphs/operator_graph.h"

// A network as an ONNX file [github.com/onnx/onnx, docs/IR.md], for one sample: an axis without a
// fixed size is a batch of one where it is the first, and `sequence_length` elsewhere. Shapes of
// the values between are inferred by the ONNX library (onnx::shape_inference). Weights are those
// initializers that are real numbers and no single one; a batch norm's mean and variance are none.
// Trained scalars are not told apart from constants.
namespace reckon {

/// reckon was built with the ONNX library (Debian: libonnx-dev, libprotobuf-dev).
bool reads_onnx();
/// Any bytes are answered: with a graph, or with all that is wrong. Built without the library: an
/// error that says so.
Expected<OperatorGraph> read_onnx_graph(std::string_view bytes, const std::string& file,
                                        std::optional<std::int64_t> sequence_length);

}  // namespace reckon
