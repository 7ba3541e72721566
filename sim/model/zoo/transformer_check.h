#pragma once
#include "sim/model/zoo/zoo.h"

namespace reckon {

/// All that is wrong with the dimensions of a transformer: `given` are the user's, `d` the same
/// with defaults in place of zeros.
Diagnostics check_transformer(const TransformerDimensions& given, const TransformerDimensions& d);

}  // namespace reckon
