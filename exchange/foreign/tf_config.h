#pragma once
#include <string>
#include <string_view>

#include "exchange/foreign/imported.h"

namespace reckon {

/// The machines of a cluster of which a file says how many there are and no more.
struct AssumedMachines {
  std::string workers, servers;  // machine types; "": not known
  std::string accelerator;       // of each worker; "": none
  int per_node = 1;
  Provider provider;
  std::string region;
};

/// TensorFlow's TF_CONFIG: {"cluster": {"chief": [...], "worker": [...], "ps": [...]}, "task":
/// {...}}, as tf.distribute's TFConfigClusterResolver reads it. It says how many processes of each
/// role there are; their machines are assumed.
Expected<Imported> import_tf_config(std::string_view json, const std::string& file,
                                    const AssumedMachines& machines);

}  // namespace reckon
