#pragma once
#include <string>

#include "sim/model/zoo/builder.h"

// What the builders of recurrent networks share.
namespace reckon {

/// Gates and their recurrence over (T, in): four gates are an LSTM's, three a GRU's. Both biases
/// of torch.nn.LSTM and torch.nn.GRU.
struct RecurrentLayer {
  std::int64_t in = 0, hidden = 0, gates = 4;
};

inline LayerId recurrent_layer(LayerList& net, const std::string& name, const RecurrentLayer& op,
                               LayerId x) {
  x = net.add(name + ".gates", Linear{op.in, op.gates * op.hidden}, x);
  return net.add(name, Recurrence{op.hidden, op.gates}, x);
}

}  // namespace reckon
